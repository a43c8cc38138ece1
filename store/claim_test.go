package store_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

func TestOnlyOneOfManyClaimsSucceeds(t *testing.T) {
	s := openStore(t)
	id := accept(t, s, notify.SMS, false)
	var claimed atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			claims, err := s.Claim(t.Context(), terms(id))
			if err != nil {
				t.Error(err)
			}
			claimed.Add(int64(len(claims)))
		})
	}
	wg.Wait()
	if claimed.Load() != 1 {
		t.Errorf("%d claims succeeded, want 1", claimed.Load())
	}
	if left := noClaim(t, s, terms(id)); left.Sending != 1 || left.LookUpIn <= 0 {
		t.Errorf("what is left is %+v: want the row SENDING for the rest of its lease", left)
	}
}

func TestTheFirstWorkflowOwnsTheRow(t *testing.T) {
	s := openStore(t)
	id := accept(t, s, notify.SMS, false)
	c := claim(t, s, id)
	if held, err := s.GiveBack(t.Context(), id, c.Token, store.Retry{Kind: store.EventTryFailed}); err != nil || !held {
		t.Fatal(held, err)
	}
	other := terms(id)
	other.Owner.WorkflowID = "relay/1"
	if left := noClaim(t, s, other); left != (store.Outstanding{}) {
		t.Errorf("another workflow has left to do %+v, want nothing", left)
	}
	if claim(t, s, id).Attempts != 2 {
		t.Error("the second try of the owner is not counted as the second")
	}
}

func TestAClaimWaitsForItsTime(t *testing.T) {
	s := openStore(t)
	id := accept(t, s, notify.SMS, false)
	c := claim(t, s, id)
	if _, err := s.GiveBack(t.Context(), id, c.Token, store.Retry{After: time.Minute, Uncounted: true, Kind: store.EventTryFailed, ErrorCode: "20429"}); err != nil {
		t.Fatal(err)
	}
	if left := noClaim(t, s, terms(id)); left.Accepted != 1 || left.SendIn < 50*time.Second || left.SendIn > time.Minute {
		t.Errorf("what is left is %+v: want almost a minute to wait", left)
	}
	if n, err := s.Notification(t.Context(), id); err != nil || n.Attempts != 0 {
		t.Errorf("attempts %d, error %v: an uncounted try was counted", n.Attempts, err)
	}
}

func TestSlotsOfOneSenderAreAnIntervalApart(t *testing.T) {
	const interval = 300 * time.Millisecond
	for _, groupSize := range []int{1, 2, 32} {
		t.Run(fmt.Sprint("in groups of ", groupSize), func(t *testing.T) {
			s := openStore(t)
			owner := store.Owner{WorkflowID: shard(t, s, 10)}
			var starts []time.Time
			for {
				claims, err := s.Claim(t.Context(), store.ClaimTerms{Owner: owner, Limit: groupSize, Lease: time.Minute, Ahead: time.Second, SMSInterval: interval})
				if err != nil {
					t.Fatal(err)
				}
				if len(claims) == 0 {
					break
				}
				for _, c := range claims {
					starts = append(starts, c.StartsAt)
				}
			}
			if len(starts) < 4 || len(starts) > 10 {
				t.Fatalf("%d slots were reserved a second ahead, want about 4", len(starts))
			}
			for i := 1; i < len(starts); i++ {
				if gap := starts[i].Sub(starts[i-1]); gap < interval/2 {
					t.Errorf("slots %d and %d are %v apart, want %v", i-1, i, gap, interval)
				}
			}
			left, err := s.Outstanding(t.Context(), owner, time.Minute, time.Second, time.Hour)
			if err != nil || left.SendIn <= 0 || left.SendIn > interval {
				t.Errorf("what is left is %+v, error %v: want the time until the next slot may be reserved", left, err)
			}
		})
	}
}

func TestAStoppedSenderHoldsItsRows(t *testing.T) {
	s := openStore(t)
	const address = "MG00000000000000000000000000000000"
	sender, err := s.EnsureSender(t.Context(), notify.SMS, address)
	if err != nil {
		t.Fatal(err)
	}
	id := acceptFrom(t, s, notify.SMS, sender)
	if err := s.StopSender(t.Context(), sender, false, "21606", "the sender cannot send"); err != nil {
		t.Fatal(err)
	}
	if left := noClaim(t, s, terms(id)); !left.Held {
		t.Errorf("what is left is %+v: want it held", left)
	}
	if n, err := s.Notification(t.Context(), id); err != nil || n.Status != notify.Held {
		t.Errorf("the row reads as %s, error %v: want HELD", n.Status, err)
	}
	resumed, err := s.ResumeSender(t.Context(), sender)
	if err != nil || resumed.StoppedAt != nil || resumed.Waiting != 1 {
		t.Errorf("resumed %+v, error %v", resumed, err)
	}
	if c := claim(t, s, id); c.From != address {
		t.Errorf("the claim's sender is %q", c.From)
	}
	if _, err := s.ResumeSender(t.Context(), -1); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("resuming an unknown sender: %v", err)
	}
}

func TestTheTimeForWhichASenderWasStoppedIsNotCounted(t *testing.T) {
	s := openStore(t)
	id := accept(t, s, notify.SMS, false)
	c := claim(t, s, id)
	if _, err := s.GiveBack(t.Context(), id, c.Token, store.Retry{Kind: store.EventStopped}); err != nil {
		t.Fatal(err)
	}
	if err := s.StopSender(t.Context(), c.SenderID, false, "21606", "the sender cannot send"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second)
	if _, err := s.ResumeSender(t.Context(), c.SenderID); err != nil {
		t.Fatal(err)
	}
	if c := claim(t, s, id); c.SinceFirst > 2500*time.Millisecond {
		t.Errorf("%v count towards the deadline: the time of the stop is among it", c.SinceFirst)
	}
}

func TestADoubtfulRowIsTakenOverOnlyWhenItsClaimHasRunOut(t *testing.T) {
	s := openStore(t)
	id := accept(t, s, notify.SMS, false)
	short := terms(id)
	short.Lease = 10 * time.Millisecond
	claims, err := s.Claim(t.Context(), short)
	if err != nil || len(claims) != 1 {
		t.Fatal(claims, err)
	}
	take := func(workflowID string, grace time.Duration, want int) []store.Doubtful {
		t.Helper()
		rows, err := s.TakeDoubtful(t.Context(), store.Owner{WorkflowID: workflowID}, grace)
		if err != nil || len(rows) != want {
			t.Fatalf("took %+v, error %v: want %d", rows, err, want)
		}
		return rows
	}
	take(short.Owner.WorkflowID, time.Minute, 0)
	time.Sleep(20 * time.Millisecond)
	take("another workflow", 0, 0)
	d := take(short.Owner.WorkflowID, 0, 1)[0]
	if d.Token == claims[0].Token {
		t.Error("it was taken over without a fresh token")
	}
	if r, err := s.Rivals(t.Context(), id, 0); err != nil || r != (store.Rivals{Twins: 1}) {
		t.Errorf("rivals are %+v, error %v: want none", r, err)
	}
	if held, err := s.Refuse(t.Context(), id, claims[0].Token, store.Failure{Kind: store.EventRefused}); err != nil || held {
		t.Errorf("the former holder moved the row: %v, error %v", held, err)
	}
	if err := s.NoteAbsent(t.Context(), id, d.Token); err != nil {
		t.Fatal(err)
	}
	d = take(short.Owner.WorkflowID, 0, 1)[0]
	if d.Absent <= 0 {
		t.Errorf("after a list without it: %+v", d)
	}
	if held, err := s.GiveBack(t.Context(), id, d.Token, store.Retry{Kind: store.EventNotAtCarrier}); err != nil || !held {
		t.Errorf("given back: %v, error %v", held, err)
	}
	if c := claim(t, s, id); c.Attempts != 2 {
		t.Errorf("attempts %d, want 2", c.Attempts)
	}
}

func TestAShardIsClaimedInGroups(t *testing.T) {
	s := openStore(t)
	owner := store.Owner{WorkflowID: shard(t, s, 10)}
	seen := map[uuid.UUID]bool{}
	for _, want := range []int{4, 4, 2, 0} {
		claims, err := s.Claim(t.Context(), store.ClaimTerms{Owner: owner, Limit: 4, Lease: time.Minute})
		if err != nil || len(claims) != want {
			t.Fatalf("%d claims, error %v: want %d", len(claims), err, want)
		}
		for _, c := range claims {
			seen[c.ID] = true
		}
	}
	if len(seen) != 10 {
		t.Errorf("%d different rows were claimed, want 10", len(seen))
	}
}

// TestAMissedSlotGivesWayToTheSlotsBehindIt reserves another slot for a claim that missed its own: at
// once while nobody has one behind it, so that it holds up nobody, else behind the last.
func TestAMissedSlotGivesWayToTheSlotsBehindIt(t *testing.T) {
	const interval = 10 * time.Second
	for _, behind := range []int{0, 1, 3} {
		t.Run(fmt.Sprint(behind, " behind it"), func(t *testing.T) {
			s := openStore(t)
			paced := store.ClaimTerms{Owner: store.Owner{WorkflowID: shard(t, s, 5)}, Limit: 1 + behind, Lease: time.Minute, Ahead: time.Hour, SMSInterval: interval}
			claims, err := s.Claim(t.Context(), paced)
			if err != nil || len(claims) != 1+behind {
				t.Fatal(claims, err)
			}
			missed, last := claims[0], claims[behind]
			asked := time.Now()
			next, err := s.NextSlot(t.Context(), missed, interval)
			if err != nil {
				t.Fatal(err)
			}
			if behind == 0 && (next.Before(asked.Add(-time.Second)) || next.After(time.Now().Add(time.Second))) {
				t.Errorf("the next slot begins in %v, want at once", time.Until(next))
			}
			if gap := next.Sub(last.StartsAt); behind > 0 && (gap-interval).Abs() > time.Second {
				t.Errorf("the next slot begins %v after the last, want %v", gap, interval)
			}
			paced.Limit = 1
			after, err := s.Claim(t.Context(), paced)
			if err != nil || len(after) != 1 {
				t.Fatal(after, err)
			}
			if gap := after[0].StartsAt.Sub(next); (gap - interval).Abs() > time.Second {
				t.Errorf("the slot behind it begins %v after it, want %v", gap, interval)
			}
			if err := s.StopSender(t.Context(), missed.SenderID, false, "21606", "no number of ours"); err != nil {
				t.Fatal(err)
			}
			if next, err := s.NextSlot(t.Context(), missed, interval); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("a stopped sender gives the slot %v, error %v", next, err)
			}
		})
	}
}

func TestWhatWasAcceptedWithABlankParameterIsSent(t *testing.T) {
	for value, want := range map[string]string{"": "様", "\u3000": "\u3000様", "佐藤": "佐藤様"} {
		accepted := store.Claim{TemplateBody: new("{{name}}様"), Params: map[string]string{"name": value}}
		if text, err := accepted.Body(); err != nil || text != want {
			t.Errorf("%q is sent as %q, error %v: want %q", value, text, err, want)
		}
	}
}
