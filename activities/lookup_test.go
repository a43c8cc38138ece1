package activities_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/notify"
)

// resolve runs LookUp as the workflow does, until it answers with something else.
func (b *bench) resolve(ref activities.Ref, next activities.Next) activities.Next {
	b.t.Helper()
	for next.Action == activities.LookUp {
		time.Sleep(next.In)
		var err error
		if next, err = b.LookUp(b.t.Context(), ref); err != nil {
			b.t.Fatal(err)
		}
	}
	return next
}

func TestAnAmbiguousSendThatTheCarrierHasIsFound(t *testing.T) {
	for _, channel := range []notify.Channel{notify.SMS, notify.Call} {
		for _, fault := range []string{"accept_then_drop", "http_500_after_accept", "html_503_after_accept"} {
			t.Run(fmt.Sprint(channel, " ", fault), func(t *testing.T) {
				b := newBench(t)
				b.behave(fmt.Sprintf(`{"fault": {"kind": %q, "count": 1}}`, fault))
				ref := b.accept(channel, recipient, "hello")
				next, err := b.Send(t.Context(), ref)
				b.want(ref, next, err, activities.LookUp, notify.Sending)
				next = b.resolve(ref, next)
				if row := b.row(ref); row.TwilioSID == nil || row.Status != notify.Pending && row.Status != notify.Success {
					t.Errorf("the answer is %+v and the row %s with SID %v", next, row.Status, shown(row.TwilioSID))
				}
				if n := b.creates(); n != 1 {
					t.Errorf("%d creates, want 1", n)
				}
			})
		}
	}
}

func TestAnAmbiguousSendThatTheCarrierNeverHadIsSentAgain(t *testing.T) {
	for _, channel := range []notify.Channel{notify.SMS, notify.Call} {
		for _, fault := range []string{"refuse", "http_500", "html_503"} {
			t.Run(fmt.Sprint(channel, " ", fault), func(t *testing.T) {
				b := newBench(t)
				b.behave(fmt.Sprintf(`{"fault": {"kind": %q, "count": 1}}`, fault))
				ref := b.accept(channel, recipient, "hello")
				started := time.Now()
				next, err := b.Send(t.Context(), ref)
				b.want(ref, next, err, activities.LookUp, notify.Sending)
				next = b.resolve(ref, next)
				b.want(ref, next, nil, activities.Send, notify.Accepted)
				if waited := time.Since(started); waited < b.Terms.AmbiguityWindow {
					t.Errorf("it was given back after %v, before the ambiguity window had passed", waited)
				}
				b.skipPause(ref)
				next, err = b.Send(t.Context(), ref)
				b.want(ref, next, err, activities.CheckStatus, notify.Pending)
				if n := b.creates(); n != 1 {
					t.Errorf("%d creates, want 1", n)
				}
			})
		}
	}
}

func TestTwinsShareWhatTheCarrierShows(t *testing.T) {
	b := newBench(t)
	b.behave(`{"fault": {"kind": "http_500_after_accept", "count": 2}}`)
	refs := []activities.Ref{b.accept(notify.SMS, recipient, "hello"), b.accept(notify.SMS, recipient, "hello")}
	answers := make([]activities.Next, len(refs))
	for i, ref := range refs {
		next, err := b.Send(t.Context(), ref)
		b.want(ref, next, err, activities.LookUp, notify.Sending)
		answers[i] = next
	}
	for i, ref := range refs {
		b.resolve(ref, answers[i])
	}
	if one, other := b.row(refs[0]).TwilioSID, b.row(refs[1]).TwilioSID; one == nil || other == nil || *one == *other {
		t.Errorf("the twins have the SIDs %v and %v, want two different ones", shown(one), shown(other))
	}
}

func TestSendsToSeveralNumbersAreLookedForAtTheSameTime(t *testing.T) {
	b := newBench(t)
	b.behave(`{"fault": {"kind": "http_500_after_accept", "count": 20}}`)
	_, shard := b.sendBatch(20)
	var asked atomic.Int32
	met := make(chan struct{})
	b.listing = func() {
		if asked.Add(1) == 2 {
			close(met)
		}
		select {
		case <-met:
		case <-time.After(5 * time.Second):
			t.Error("the carrier is asked for one number, and then for the next")
		}
	}
	if next := b.resolve(shard, activities.Next{Action: activities.LookUp, In: b.Terms.AnswerLimit}); next.Action == activities.Send {
		t.Errorf("the activity answers %+v, though the carrier has them all", next)
	}
	if left, creates := b.count(notify.Sending), b.creates(); left != 0 || creates != 20 {
		t.Errorf("%d are left and %d creates, want none and 20", left, creates)
	}
}

func TestFewerSendsThanTwinsLeaveThemUnknown(t *testing.T) {
	b := newBench(t)
	b.behave(`{"fault": {"kind": "http_500_after_accept", "count": 1}}`)
	first := b.accept(notify.SMS, recipient, "hello")
	next, err := b.Send(t.Context(), first)
	b.want(first, next, err, activities.LookUp, notify.Sending)
	b.behave(`{"fault": {"kind": "http_500", "count": 1}}`)
	second := b.accept(notify.SMS, recipient, "hello")
	next, err = b.Send(t.Context(), second)
	b.want(second, next, err, activities.LookUp, notify.Sending)
	next = b.resolve(first, next)
	b.want(first, next, nil, activities.Done, notify.Unknown)
	if row := b.row(first); shown(row.FailureCode) != notify.CodeAmbiguousSend {
		t.Errorf("the failure is %v, want AMBIGUOUS_SEND", shown(row.FailureCode))
	}
}

func TestAReceiptBeatsALookup(t *testing.T) {
	b := newBench(t)
	b.behave(`{"fault": {"kind": "http_500", "count": 1}}`)
	ref := b.accept(notify.SMS, recipient, "hello")
	next, err := b.Send(t.Context(), ref)
	b.want(ref, next, err, activities.LookUp, notify.Sending)
	if _, err := b.Store.Settle(t.Context(), notify.Receipt{NotificationID: (*ref.ID).String(), Channel: notify.SMS, Word: "delivered", Source: notify.FromWebhook}); err != nil {
		t.Fatal(err)
	}
	next, err = b.LookUp(t.Context(), ref)
	b.want(ref, next, err, activities.Done, notify.Success)
}

func TestAWorkerThatDiedBeforeItPostedIsReplaced(t *testing.T) {
	b := newBench(t)
	b.Terms.Lease = 50 * time.Millisecond
	ref := b.accept(notify.SMS, recipient, "hello")
	b.claim(ref) // and nothing more
	next, err := b.Send(t.Context(), ref)
	b.want(ref, next, err, activities.LookUp, notify.Sending)
	b.Terms.Lease = 5 * time.Second
	next = b.resolve(ref, next)
	b.want(ref, next, nil, activities.Send, notify.Accepted)
}

// TestASendOfARivalIsNotTaken has two notifications to one number: the first one's create was lost,
// and the second one is on the wire when the first is looked up.
func TestASendOfARivalIsNotTaken(t *testing.T) {
	for name, text := range map[string]string{"same text": "hello", "another text": "good evening"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.behave(`{"fault": {"kind": "http_500", "count": 1}}`)
			first := b.accept(notify.SMS, recipient, "hello")
			next, err := b.Send(t.Context(), first)
			b.want(first, next, err, activities.LookUp, notify.Sending)
			time.Sleep(b.Terms.AnswerLimit)

			b.behave(`{"latency_ms": 700}`)
			second := b.accept(notify.SMS, recipient, text)
			sent := make(chan error)
			go func() {
				_, err := b.Send(t.Context(), second)
				sent <- err
			}()
			for b.creates() == 0 {
				time.Sleep(5 * time.Millisecond) // the carrier has the second one, and has not answered
			}
			if next, err = b.LookUp(t.Context(), first); err != nil || next.Action != activities.LookUp {
				t.Fatalf("the activity answers %+v, error %v: want it to look again", next, err)
			}
			if row := b.row(first); row.Status != notify.Sending {
				t.Fatalf("the first row is %s with SID %v", row.Status, shown(row.TwilioSID))
			}
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
			b.behave(`{}`)
			next = b.resolve(first, next)
			b.want(first, next, nil, activities.Send, notify.Accepted)
			if row := b.row(second); row.TwilioSID == nil || row.Status != notify.Pending && row.Status != notify.Success {
				t.Errorf("the second row is %s with SID %v", row.Status, shown(row.TwilioSID))
			}
		})
	}
}
