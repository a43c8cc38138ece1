package store_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

func TestOnlyOneOfManyClaimsSucceeds(t *testing.T) {
	s := openStore(t)
	id := accept(t, s, notify.SMS, false)
	var mu sync.Mutex
	var tokens int
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			c, err := s.Claim(t.Context(), terms(id))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			} else if c.Token != nil {
				tokens++
			} else if c.Status != notify.Sending || c.LeaseLeft <= 0 {
				t.Errorf("a losing claim reads %s with %v left: want SENDING and the lease", c.Status, c.LeaseLeft)
			}
		})
	}
	wg.Wait()
	if tokens != 1 {
		t.Errorf("%d claims succeeded, want 1", tokens)
	}
}

func TestTheFirstWorkflowOwnsTheRow(t *testing.T) {
	s := openStore(t)
	id := accept(t, s, notify.SMS, false)
	c := claim(t, s, id)
	if held, err := s.GiveBack(t.Context(), id, *c.Token, store.Retry{Kind: store.EventTryFailed}); err != nil || !held {
		t.Fatal(held, err)
	}
	other := terms(id)
	other.WorkflowID = "relay/1"
	if c, err := s.Claim(t.Context(), other); err != nil || c.Token != nil || c.WorkflowID == nil || *c.WorkflowID != "notification/"+id.String() {
		t.Errorf("another workflow's claim: %+v, error %v; want none, and the owner named", c, err)
	}
	if claim(t, s, id).Attempts != 2 {
		t.Error("the second try of the owner is not counted as the second")
	}
}

func TestAClaimWaitsForItsTime(t *testing.T) {
	s := openStore(t)
	id := accept(t, s, notify.SMS, false)
	c := claim(t, s, id)
	if _, err := s.GiveBack(t.Context(), id, *c.Token, store.Retry{After: time.Minute, Uncounted: true, Kind: store.EventTryFailed, ErrorCode: "20429"}); err != nil {
		t.Fatal(err)
	}
	c, err := s.Claim(t.Context(), terms(id))
	if err != nil || c.Token != nil || c.Wait < 50*time.Second || c.Wait > time.Minute {
		t.Errorf("claim %+v, error %v: want none, and almost a minute to wait", c, err)
	}
	if c.Attempts != 0 {
		t.Errorf("attempts %d: an uncounted try was counted", c.Attempts)
	}
}

func TestSlotsOfOneSenderAreAnIntervalApart(t *testing.T) {
	s := openStore(t)
	sender, err := s.EnsureSender(t.Context(), notify.SMS, "MG"+uuid.NewString())
	if err != nil {
		t.Fatal(err)
	}
	const interval = 300 * time.Millisecond
	var starts []time.Time
	for {
		paced := terms(acceptFrom(t, s, notify.SMS, sender))
		paced.SMSInterval = interval
		before := time.Now()
		c, err := s.Claim(t.Context(), paced)
		if err != nil {
			t.Fatal(err)
		}
		if c.Token == nil {
			if c.Wait <= 0 || c.Status != notify.Accepted {
				t.Errorf("no slot is free and the claim says %s, wait %v", c.Status, c.Wait)
			}
			break
		}
		starts = append(starts, before.Add(c.Wait))
	}
	if len(starts) < 3 || len(starts) > 6 {
		t.Fatalf("%d slots were reserved within a second, want about 4", len(starts))
	}
	for i := 1; i < len(starts); i++ {
		if gap := starts[i].Sub(starts[i-1]); gap < interval-50*time.Millisecond {
			t.Errorf("slots %d and %d are %v apart, want %v", i-1, i, gap, interval)
		}
	}
}

func TestAStoppedSenderHoldsItsRows(t *testing.T) {
	s := openStore(t)
	address := "MG" + uuid.NewString()
	sender, err := s.EnsureSender(t.Context(), notify.SMS, address)
	if err != nil {
		t.Fatal(err)
	}
	id := acceptFrom(t, s, notify.SMS, sender)
	if err := s.StopSender(t.Context(), sender, false, "21606", "the sender cannot send"); err != nil {
		t.Fatal(err)
	}
	if c, err := s.Claim(t.Context(), terms(id)); err != nil || c.Token != nil || !c.Held {
		t.Errorf("claim %+v, error %v: want it held", c, err)
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

func TestADoubtfulRowIsTakenOverOnlyWhenItsClaimHasRunOut(t *testing.T) {
	s := openStore(t)
	id := accept(t, s, notify.SMS, false)
	short := terms(id)
	short.Lease = 10 * time.Millisecond
	first, err := s.Claim(t.Context(), short)
	if err != nil || first.Token == nil {
		t.Fatal(first, err)
	}
	if d, err := s.TakeDoubtful(t.Context(), id, short.WorkflowID, time.Minute); err != nil || d.Token != nil || d.Status != notify.Sending {
		t.Errorf("within the grace: %+v, error %v; want no token", d, err)
	}
	time.Sleep(20 * time.Millisecond)
	if d, err := s.TakeDoubtful(t.Context(), id, "another workflow", 0); err != nil || d.Token != nil {
		t.Errorf("another workflow took it over: %+v, error %v", d, err)
	}
	d, err := s.TakeDoubtful(t.Context(), id, short.WorkflowID, 0)
	if err != nil || d.Token == nil || d.Twins < 1 {
		t.Fatalf("after the deadline: %+v, error %v; want a fresh token", d, err)
	}
	if held, err := s.Refuse(t.Context(), id, *first.Token, store.Failure{Kind: store.EventRefused}); err != nil || held {
		t.Errorf("the former holder moved the row: %v, error %v", held, err)
	}
	if err := s.NoteEmptyLookup(t.Context(), id, *d.Token); err != nil {
		t.Fatal(err)
	}
	again, err := s.TakeDoubtful(t.Context(), id, short.WorkflowID, 0)
	if err != nil || again.EmptyLookups != 1 || again.SinceLookup <= 0 {
		t.Errorf("after an empty lookup: %+v, error %v", again, err)
	}
	if held, err := s.GiveBack(t.Context(), id, *again.Token, store.Retry{Kind: store.EventNotAtCarrier}); err != nil || !held {
		t.Errorf("given back: %v, error %v", held, err)
	}
	if c := claim(t, s, id); c.Attempts != 2 {
		t.Errorf("attempts %d, want 2", c.Attempts)
	}
}

func TestOurOwnMovesAreATable(t *testing.T) {
	s := openStore(t)
	id := accept(t, s, notify.SMS, false)
	for _, from := range notify.Statuses {
		for _, to := range notify.Statuses {
			move := notify.Move{From: from, To: to}
			if move.Allowed() && !move.NeedsToken() {
				continue
			}
			if moved, err := s.Decide(t.Context(), id, move, store.Failure{}); err == nil || moved {
				t.Errorf("%s to %s was made without a claim", from, to)
			}
		}
	}
	decide(t, s, id, notify.Cancel, "")
	if moved, err := s.Decide(t.Context(), id, notify.Skip, store.Failure{Kind: store.EventExpired}); err != nil || moved {
		t.Errorf("a canceled row was skipped: %v, error %v", moved, err)
	}
}

func TestTheRelaySeesDueRowsWithoutAWorkflow(t *testing.T) {
	s := openStore(t)
	id := accept(t, s, notify.SMS, false)
	if !unstarted(t, s, id, 0) {
		t.Error("an accepted row is not seen")
	}
	if unstarted(t, s, id, time.Hour) {
		t.Error("a row is seen before its time")
	}
	if err := s.MarkStarted(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if unstarted(t, s, id, 0) {
		t.Error("a started row is still seen")
	}
}

func unstarted(t *testing.T, s *store.Store, id uuid.UUID, age time.Duration) bool {
	t.Helper()
	rows, err := s.Unstarted(t.Context(), age, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if row.ID == id {
			return true
		}
	}
	return false
}
