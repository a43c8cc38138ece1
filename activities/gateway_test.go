package activities_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// stopped returns the sender of that channel, which must be stopped.
func (b *bench) stopped(channel notify.Channel) store.Sender {
	b.t.Helper()
	senders, err := b.Store.Senders(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	for _, s := range senders {
		if s.ID == b.sender[channel] && s.StoppedAt != nil {
			return s
		}
	}
	b.t.Fatalf("the sender of %s runs", channel)
	return store.Sender{}
}

func TestWhatAGatewayAnswersIsLookedForAndSentOnce(t *testing.T) {
	for _, forwarded := range []bool{true, false} {
		t.Run(fmt.Sprint("forwarded ", forwarded), func(t *testing.T) {
			b := newBench(t)
			b.behave(fmt.Sprintf(`{"fault": {"kind": "gateway", "count": 1, "http_status": 400, "body": "{}", "forwarded": %v}}`, forwarded))
			ref := b.accept(notify.SMS, recipient, "hello")
			next, err := b.Send(t.Context(), ref)
			b.want(ref, next, err, activities.LookUp, notify.Sending)
			next = b.resolve(ref, next)
			if next.Action == activities.Send {
				b.skipPause(ref)
				if _, err = b.Send(t.Context(), ref); err != nil {
					t.Fatal(err)
				}
			}
			if row := b.row(ref); row.TwilioSID == nil || b.creates() != 1 {
				t.Errorf("the row is %s after %d creates", row.Status, b.creates())
			}
		})
	}
}

func TestTenAnswersOfAGatewayInARowStopTheSenderAndNameIt(t *testing.T) {
	b := newBench(t)
	b.behave(`{"fault": {"kind": "gateway", "http_status": 451}}`)
	shard, rows := b.acceptShard(notify.SMS, 12)
	if _, err := b.Send(t.Context(), shard); err != nil {
		t.Fatal(err)
	}
	s := b.stopped(notify.SMS)
	if shown(s.StopCode) != notify.CodeGatewayAnswered || !strings.Contains(*s.StopReason, "HTTP 451, Server: simulated-gateway") {
		t.Errorf("stopped by %v: %v", shown(s.StopCode), shown(s.StopReason))
	}
	for _, ref := range rows {
		if row := b.row(ref); row.Status.Final() {
			t.Errorf("a row is %s", row.Status)
		}
	}
}

func TestALimitOfTheAccountStopsEverySenderHoweverItComes(t *testing.T) {
	for _, status := range []int{400, 403, 429} {
		t.Run(fmt.Sprint("HTTP ", status), func(t *testing.T) {
			b := newBench(t)
			b.behave(fmt.Sprintf(`{"fault": {"kind": "twilio_error", "error_code": 63038, "http_status": %d}}`, status))
			ref := b.accept(notify.SMS, recipient, "hello")
			next, err := b.Send(t.Context(), ref)
			b.want(ref, next, err, activities.Send, notify.Held)
			if row := b.row(ref); row.Attempts != 0 {
				t.Errorf("%d attempts are counted", row.Attempts)
			}
			for _, channel := range []notify.Channel{notify.SMS, notify.Call} {
				if s := b.stopped(channel); shown(s.StopCode) != "63038" || !strings.Contains(*s.StopReason, "number of messages for 24 hours") {
					t.Errorf("stopped by %v: %v", shown(s.StopCode), shown(s.StopReason))
				}
			}
		})
	}
}

func TestARowThatPanicsTwiceIsABadRowAndItsNeighboursAreSent(t *testing.T) {
	b := newBench(t)
	bad := b.accept(notify.SMS, recipient, "hello")
	b.Terms.CallbackURL = func(_ notify.Channel, id uuid.UUID) string {
		if id == *bad.ID {
			panic("no address for " + recipient)
		}
		return ""
	}
	shard, rows := b.acceptShard(notify.SMS, 5)
	if _, err := b.Send(t.Context(), shard); err != nil {
		t.Fatal(err)
	}
	for _, ref := range rows {
		if row := b.row(ref); row.Status != notify.Pending {
			t.Errorf("a neighbour is %s", row.Status)
		}
	}
	if row := b.row(bad); row.Status != notify.Accepted {
		t.Fatalf("after one panic the row is %s", row.Status)
	}
	b.skipPause(bad)
	if _, err := b.Send(t.Context(), shard); err != nil {
		t.Fatal(err)
	}
	if row := b.row(bad); row.Status != notify.Failed || shown(row.FailureCode) != notify.CodeBadRow {
		t.Errorf("the row is %s, %v", row.Status, shown(row.FailureCode))
	}
}

func TestARowThatPanicsOnTheWireIsLookedForFirst(t *testing.T) {
	b := newBench(t)
	client := b.Carrier
	ref := b.accept(notify.SMS, recipient, "hello")
	for range 2 {
		b.Carrier = nil // its use panics
		next, err := b.Send(t.Context(), ref)
		b.want(ref, next, err, activities.LookUp, notify.Sending)
		b.Carrier = client
		b.resolve(ref, next)
		b.skipPause(ref)
	}
	if row := b.row(ref); row.Status != notify.Failed || shown(row.FailureCode) != notify.CodeBadRow {
		t.Errorf("the row is %s, %v", row.Status, shown(row.FailureCode))
	}
}

func TestRowsOfAShardAreAskedForWhileOthersAreStillSent(t *testing.T) {
	b := newBench(t)
	b.Terms.StatusCheckDelay, b.Terms.SMSSendInterval, b.Terms.Turn = time.Second, 100*time.Millisecond, time.Minute
	shard, rows := b.acceptShard(notify.SMS, 60)
	sent := make(chan error, 1)
	go func() { _, err := b.Send(t.Context(), shard); sent <- err }()
	for {
		select {
		case err := <-sent:
			t.Fatalf("all was sent, and nothing was asked for (%v)", err)
		case <-time.After(50 * time.Millisecond):
		}
		if b.row(rows[0]).Status == notify.Success {
			break
		}
	}
	if b.creates() == len(rows) {
		t.Error("it was asked for after all was sent")
	}
	<-sent
}
