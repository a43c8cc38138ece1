package activities_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// rings records a call of one caller, of which these words were told that long ago.
func (b *bench) rings(from string, ago time.Duration, reason string, words ...notify.InboundWord) uuid.UUID {
	b.t.Helper()
	sid := fmt.Sprintf("CA%032x", [16]byte(uuid.New()))
	caller, _ := notify.ParseCaller(from)
	for _, word := range words {
		if _, err := b.Store.RecordInbound(b.t.Context(), notify.InboundEvent{
			CallID: notify.InboundID(sid), CallSID: sid, Key: string(word), Kind: string(word), Word: word, At: time.Now().Add(-ago),
			Source: notify.FromWebhook, From: from, To: "+15005550006", FromHash: caller.Hash(b.Terms.PhoneHashKey), Reason: reason,
		}); err != nil {
			b.t.Fatal(err)
		}
	}
	return notify.InboundID(sid)
}

func (b *bench) becauseOf(id uuid.UUID) (reason string) {
	b.t.Helper()
	c, err := b.Store.InboundCall(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	if c.FollowUpReason != nil {
		reason = *c.FollowUpReason
	}
	return reason
}

func TestOnePersonGetsOneFollowUpADay(t *testing.T) {
	b := newInboundBench(t, sorry)
	var calls []uuid.UUID
	for range 4 {
		calls = append(calls, b.rings("+819012345678", 2*time.Minute, "", notify.WordWaiting, notify.WordHungUp))
	}
	calls = append(calls, b.rings("+819012345678", 2*time.Minute, "", notify.WordWaiting, notify.WordTimedOut)) // of another kind
	var g sync.WaitGroup
	for _, id := range calls { // they end at once, on several workers
		g.Go(func() {
			if next, err := b.FollowInbound(t.Context(), id); err != nil || !next.Done {
				t.Errorf("next is %+v, error %v", next, err)
			}
		})
	}
	g.Wait()
	sent, _, err := b.Store.Notifications(t.Context(), store.Filter{}, nil, 10)
	if err != nil || len(sent) != 1 {
		t.Fatalf("%d notifications, error %v, want 1", len(sent), err)
	}
	refused := 0
	for _, id := range calls {
		if b.becauseOf(id) == notify.FollowUpAlready {
			refused++
		}
	}
	if refused != 4 {
		t.Errorf("%d say why they get none, want 4", refused)
	}
	b.execute(`UPDATE inbound_calls SET follow_up_at = follow_up_at - interval '24 hours'`)
	if next := b.follow(b.rings("+819012345678", 2*time.Minute, "", notify.WordHungUp)); next.FollowUp != notify.FollowUpSMS {
		t.Errorf("on the next day: %+v", next)
	}
}

func TestNoFollowUpOnceSomebodyHasSpokenWithTheCaller(t *testing.T) {
	b := newInboundBench(t, sorry)
	missed := b.rings("+819012345678", 3*time.Minute, "", notify.WordWaiting, notify.WordHungUp)
	again := b.rings("+819012345678", 2*time.Minute, "", notify.WordWaiting)
	if next := b.follow(missed); next.Done || next.In <= 0 {
		t.Errorf("while the caller waits again: %+v", next)
	}
	c, err := b.Store.InboundCall(t.Context(), again)
	if err != nil {
		t.Fatal(err)
	}
	b.tellOfCall(again, c.CallSID, "+819012345678", time.Minute, notify.WordAnswered)
	if next := b.follow(missed); !next.Done || next.FollowUp != notify.FollowUpNone || b.becauseOf(missed) != notify.FollowUpSpoken {
		t.Errorf("after an answer: %+v, because %s", next, b.becauseOf(missed))
	}
}

func TestAnAnswerCancelsAFollowUpThatIsNotSentYet(t *testing.T) {
	b := newInboundBench(t, sorry)
	missed := b.rings("+819012345678", 2*time.Minute, "", notify.WordWaiting, notify.WordHungUp)
	other := b.rings("+819012340000", 2*time.Minute, "", notify.WordWaiting, notify.WordHungUp)
	for _, id := range []uuid.UUID{missed, other} {
		if next := b.follow(id); next.FollowUp != notify.FollowUpSMS {
			t.Fatalf("next is %+v", next)
		}
	}
	if _, err := b.Store.WithdrawFollowUps(t.Context(), b.rings("+819012345678", 0, "", notify.WordAnswered)); err != nil {
		t.Fatal(err)
	}
	if canceled, accepted := b.count(notify.Canceled), b.count(notify.Accepted); canceled != 1 || accepted != 1 || b.becauseOf(missed) != notify.FollowUpSpoken {
		t.Errorf("%d canceled and %d accepted, because %s", canceled, accepted, b.becauseOf(missed))
	}
}

func TestFollowUpsHaveABudgetForTheHour(t *testing.T) {
	for name, test := range map[string]struct {
		limits store.FollowUpLimits
		reason string
		words  []notify.InboundWord
		want   int
	}{
		"over all":                        {store.FollowUpLimits{PerHour: 3}, "", []notify.InboundWord{notify.WordHungUp}, 3},
		"no limit":                        {store.FollowUpLimits{TurnedAwayPerHour: 1}, "", []notify.InboundWord{notify.WordHungUp}, 6},
		"turned away by a limit on calls": {store.FollowUpLimits{PerHour: 100, TurnedAwayPerHour: 2}, notify.TurnedAwayBusy, []notify.InboundWord{notify.WordTurnedAway}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			policy := sorry
			policy.FollowUps.Full = policy.FollowUps.Abandoned
			b := newInboundBench(t, policy)
			b.Terms.Inbound.FollowUps = test.limits
			var g sync.WaitGroup
			for n := range 6 {
				id := b.rings(fmt.Sprintf("+81901234%04d", n), 2*time.Minute, test.reason, test.words...)
				g.Go(func() {
					if _, err := b.FollowInbound(t.Context(), id); err != nil {
						t.Error(err)
					}
				})
			}
			g.Wait()
			if got := b.count(notify.Accepted); got != test.want {
				t.Errorf("%d follow-ups, want %d", got, test.want)
			}
		})
	}
}
