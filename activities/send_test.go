package activities_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/notify"
)

func TestSendPostsOnceAndKeepsTheSID(t *testing.T) {
	for _, channel := range []notify.Channel{notify.SMS, notify.Call} {
		t.Run(string(channel), func(t *testing.T) {
			b := newBench(t)
			ref := b.accept(channel, recipient, "Your prescription is ready.")
			next, err := b.Send(t.Context(), ref)
			b.want(ref, next, err, activities.CheckStatus, notify.Pending)
			if next.In.Round(time.Second) != b.Terms.StatusCheckDelay {
				t.Errorf("the status is checked after %v, want %v", next.In, b.Terms.StatusCheckDelay)
			}
			row := b.row(ref)
			if row.TwilioSID == nil || row.SentAt == nil || row.Attempts != 1 || shown(row.TwilioStatus) != "queued" {
				t.Errorf("the row is %+v", row)
			}
			next, err = b.Send(t.Context(), ref)
			b.want(ref, next, err, activities.CheckStatus, notify.Pending)
			if n := b.creates(); n != 1 {
				t.Errorf("%d creates, want 1", n)
			}
		})
	}
}

func TestSendOfAnUnknownNotificationFailsForGood(t *testing.T) {
	b := newBench(t)
	unknown := uuid.New()
	if _, err := b.Send(t.Context(), activities.Ref{ID: &unknown, WorkflowID: "x"}); err == nil {
		t.Error("no error")
	}
}

func TestPermanentErrorsAreFinalAtOnce(t *testing.T) {
	b := newBench(t)
	for to, code := range map[string]string{
		"+15005550001": "21211", "+15005550002": "21612", "+15005550003": "21408", "+15005550004": "21610", "+15005550009": "21614",
	} {
		ref := b.accept(notify.SMS, to, "hello")
		next, err := b.Send(t.Context(), ref)
		b.want(ref, next, err, activities.Done, notify.Failed)
		if row := b.row(ref); shown(row.TwilioErrorCode) != code || row.Attempts != 1 || row.TwilioSID != nil {
			t.Errorf("%s: the row has error %v, %d attempts, SID %v", code, shown(row.TwilioErrorCode), row.Attempts, shown(row.TwilioSID))
		}
	}
	if n := b.creates(); n != 0 {
		t.Errorf("%d creates, want none", n)
	}
}

func TestSafeErrorsAreRetriedAfterGrowingPauses(t *testing.T) {
	b := newBench(t)
	b.Terms.SendDeadline = 24 * time.Hour
	ref := b.acceptFrom("+15005550008", notify.SMS) // Twilio's magic number whose queue is full: 21611
	for attempt, want := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, time.Minute, time.Minute} {
		_, err := b.Send(t.Context(), ref)
		// What is left of it when the error is made: a machine that is busy has used some of it.
		if got := b.wantRetry(err); got > want || got <= want/2 {
			t.Errorf("after try %d the pause is %v, want %v or a little less", attempt+1, got, want)
		}
		if row := b.row(ref); int(row.Attempts) != attempt+1 || row.Status != notify.Accepted {
			t.Errorf("after try %d the row counts %d and is %s", attempt+1, row.Attempts, row.Status)
		}
		b.skipPause(ref)
	}
}

func TestARowThatIsNotDueWaitsWithoutATry(t *testing.T) {
	b := newBench(t)
	ref := b.acceptFrom("+15005550008", notify.SMS)
	_, err := b.Send(t.Context(), ref)
	b.wantRetry(err)
	_, err = b.Send(t.Context(), ref)
	if pause := b.wantRetry(err); pause < time.Second || pause > 2*time.Second {
		t.Errorf("it waits %v, want what is left of 2 s", pause)
	}
	if row := b.row(ref); row.Attempts != 1 {
		t.Errorf("%d attempts, want 1", row.Attempts)
	}
}

func TestTheSendDeadlineEndsRetries(t *testing.T) {
	b := newBench(t)
	ref := b.acceptFrom("+15005550008", notify.SMS)
	_, err := b.Send(t.Context(), ref)
	b.wantRetry(err)
	b.Terms.SendDeadline = time.Nanosecond
	b.skipPause(ref)
	next, err := b.Send(t.Context(), ref)
	b.want(ref, next, err, activities.Done, notify.Failed)
	if row := b.row(ref); shown(row.FailureCode) != notify.CodeSendDeadline {
		t.Errorf("the failure is %v, want SEND_DEADLINE", shown(row.FailureCode))
	}
}

func TestA429SlowsTheSenderAndDoesNotCount(t *testing.T) {
	b := newBench(t)
	b.behave(`{"fault": {"kind": "rate_limited", "count": 1, "retry_after_s": 7}}`)
	ref := b.accept(notify.SMS, recipient, "hello")
	_, err := b.Send(t.Context(), ref)
	if pause := b.wantRetry(err); pause != 7*time.Second {
		t.Errorf("the pause is %v, want the 7 s that the carrier asked for", pause)
	}
	if row := b.row(ref); row.Attempts != 0 || row.Status != notify.Accepted {
		t.Errorf("the row counts %d attempts and is %s", row.Attempts, row.Status)
	}
	_, err = b.Send(t.Context(), b.accept(notify.SMS, recipient, "another"))
	if pause := b.wantRetry(err); pause < 5*time.Second || pause > 7*time.Second {
		t.Errorf("another notification of the sender waits %v, want about 6 s", pause)
	}
}

func TestASenderErrorStopsTheSenderAndNotTheRow(t *testing.T) {
	b := newBench(t)
	ref := b.acceptFrom("+15005550007", notify.SMS) // Twilio's magic number that cannot send: 21606
	other := b.accept(notify.SMS, recipient, "hello")
	next, err := b.Send(t.Context(), ref)
	b.want(ref, next, err, activities.Send, notify.Held)
	if row := b.row(ref); row.Status != notify.Held || row.Attempts != 0 {
		t.Errorf("the row is %s after %d attempts, want HELD and none", row.Status, row.Attempts)
	}
	next, err = b.Send(t.Context(), ref)
	b.want(ref, next, err, activities.Send, notify.Held)
	if next.In < 24*time.Hour {
		t.Errorf("a single that is held looks again after %v: want a day, or when it is woken", next.In)
	}
	senders, err := b.Store.Senders(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range senders {
		if stopped := s.Address == "+15005550007"; stopped != (s.StoppedAt != nil) || stopped && shown(s.StopCode) != "21606" {
			t.Errorf("sender %d: stopped %v, code %v", s.ID, s.StoppedAt != nil, shown(s.StopCode))
		}
	}
	next, err = b.Send(t.Context(), other)
	b.want(other, next, err, activities.CheckStatus, notify.Pending)
}

func TestACanceledActivityGivesItsClaimBack(t *testing.T) {
	b := newBench(t)
	b.Terms.SMSSendInterval = 500 * time.Millisecond
	first := b.accept(notify.SMS, recipient, "first")
	next, err := b.Send(t.Context(), first)
	b.want(first, next, err, activities.CheckStatus, notify.Pending)
	ref := b.accept(notify.SMS, recipient, "second")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // within its wait for a slot
	defer cancel()
	_, err = b.Send(ctx, ref)
	b.wantRetry(err)
	if row := b.row(ref); row.Status != notify.Accepted || row.Attempts != 0 {
		t.Errorf("the row is %s after %d attempts, want ACCEPTED and none", row.Status, row.Attempts)
	}
}

func TestAnErrorNeverRepeatsNumbersOrTexts(t *testing.T) {
	b := newBench(t)
	const secret = "the words of the prescription"
	for _, fault := range []string{"refuse", "http_500", "html_503", "rate_limited"} {
		b.behave(fmt.Sprintf(`{"fault": {"kind": %q, "count": 1}}`, fault))
		ref := b.accept(notify.SMS, recipient, secret)
		_, err := b.Send(t.Context(), ref)
		events, readErr := b.Store.Events(t.Context(), *ref.ID)
		if readErr != nil {
			t.Fatal(readErr)
		}
		said := fmt.Sprint(err)
		for _, e := range events {
			said += fmt.Sprint(shown(e.Detail))
		}
		for _, private := range []string{secret, recipient, "5550143", strings.Repeat("0", 32)} {
			if strings.Contains(said, private) {
				t.Errorf("%s: %q repeats %q", fault, said, private)
			}
		}
	}
}

func TestTheSendDeadlineHoldsForASlowedSenderToo(t *testing.T) {
	b := newBench(t)
	b.Terms.SendDeadline = 300 * time.Millisecond
	b.behave(`{"fault": {"kind": "rate_limited", "count": 1, "retry_after_s": 3600}}`)
	ref := b.accept(notify.SMS, recipient, "hello")
	_, err := b.Send(t.Context(), ref)
	if pause := b.wantRetry(err); pause > time.Second {
		t.Errorf("it waits %v, longer than its deadline", pause)
	}
	time.Sleep(b.Terms.SendDeadline)
	next, err := b.Send(t.Context(), ref)
	b.want(ref, next, err, activities.Done, notify.Failed)
	if row := b.row(ref); shown(row.FailureCode) != notify.CodeSendDeadline {
		t.Errorf("the failure is %v, want SEND_DEADLINE", shown(row.FailureCode))
	}
}

func TestWhatIsNotYetWrittenWhenASenderIsStoppedGoesBack(t *testing.T) {
	b := newBench(t)
	const cannotSend = "+15005550007" // Twilio's magic number: 21606
	sender, err := b.Store.EnsureSender(t.Context(), notify.SMS, cannotSend)
	if err != nil {
		t.Fatal(err)
	}
	b.sender[notify.SMS] = sender
	b.behave(`{"latency_ms": 300}`)
	const shards, rows, connections = 6, 64, 64
	var waiting []activities.Ref
	for range shards {
		shard, _ := b.acceptShard(notify.SMS, rows)
		waiting = append(waiting, shard)
	}
	var sending sync.WaitGroup
	for _, shard := range waiting {
		sending.Go(func() {
			if _, err := b.Send(t.Context(), shard); err != nil {
				t.Error(err)
			}
		})
	}
	sending.Wait()
	var posted, uncounted int
	b.queryRow(&posted, `SELECT count(*) FROM notification_events WHERE error_code = '21606'`)
	b.queryRow(&uncounted, `SELECT count(*) FROM notifications WHERE status = 'ACCEPTED' AND attempts = 0`)
	if posted == 0 || posted > 2*connections {
		t.Errorf("%d were posted: want those that were on the wire when the sender was stopped, on %d connections", posted, connections)
	}
	if uncounted != shards*rows {
		t.Errorf("%d of %d rows are accepted and uncounted", uncounted, shards*rows)
	}
}
