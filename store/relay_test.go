package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

func TestTheRelaySeesDueRowsWithoutAWorkflow(t *testing.T) {
	s := openStore(t)
	id := accept(t, s, notify.SMS, false)
	unstarted := func(leaveOut ...int64) []store.Unstarted {
		t.Helper()
		rows, err := s.Unstarted(t.Context(), leaveOut, 10)
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	if rows := unstarted(); len(rows) != 1 || *rows[0].Single != id || rows[0].Successor != nil {
		t.Errorf("unstarted are %+v, want the accepted row", rows)
	}
	waiting, err := s.Waiting(t.Context(), 10)
	if err != nil || len(waiting) != 1 || waiting[0].Count != 1 {
		t.Fatalf("waiting are %+v, error %v", waiting, err)
	}
	if rows := unstarted(waiting[0].SenderID); len(rows) != 0 {
		t.Errorf("unstarted are %+v, with its sender left out", rows)
	}
	if err := s.MarkStarted(t.Context(), store.Owner{Single: &id, WorkflowID: "notification/" + id.String()}); err != nil {
		t.Fatal(err)
	}
	if rows := unstarted(); len(rows) != 0 {
		t.Errorf("unstarted are %+v after the start", rows)
	}
}

func TestAClaimProvesTheStart(t *testing.T) {
	s := openStore(t)
	claim(t, s, accept(t, s, notify.SMS, false))
	if rows, err := s.Unstarted(t.Context(), nil, 10); err != nil || len(rows) != 0 {
		t.Errorf("unstarted are %+v, error %v, after the claim", rows, err)
	}
}

func TestAShardAdoptsWhatWaits(t *testing.T) {
	s := openStore(t)
	var sender int64
	for range 5 {
		sender = claimable(t, s, accept(t, s, notify.SMS, false))
	}
	call := accept(t, s, notify.Call, false)
	seen := map[uuid.UUID]string{}
	for _, want := range []int{3, 2, 0} {
		shard, err := s.NewShardID(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		claims, err := s.Claim(t.Context(), store.ClaimTerms{Owner: store.Owner{WorkflowID: shard}, Adopt: sender, Limit: 3, Lease: time.Minute})
		if err != nil || len(claims) != want {
			t.Fatalf("%d claims, error %v: want %d", len(claims), err, want)
		}
		for _, c := range claims {
			seen[c.ID] = shard
		}
	}
	if len(seen) != 5 || seen[call] != "" {
		t.Errorf("adopted were %v: want the five SMS, each once", seen)
	}
	for id, shard := range seen {
		if n, err := s.Notification(t.Context(), id); err != nil || *n.WorkflowID != shard {
			t.Errorf("the owner is %v, error %v, want %s", n.WorkflowID, err, shard)
		}
	}
}

// A batch that runs reserves half a second ahead: its sender's next slot never lies in the past.
func TestAnOwnerThatSleepsIsSeenWhileABatchUsesTheSlots(t *testing.T) {
	s, db := openLedger(t)
	id := accept(t, s, notify.SMS, false)
	owner := store.Owner{Single: &id, WorkflowID: "notification/" + id.String()}
	if err := s.MarkStarted(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	b := acceptBatch(t, s, 1, 1)
	if err := s.MarkShardsStarted(t.Context(), b.ID, 1); err != nil {
		t.Fatal(err)
	}
	both := []string{notify.ShardWorkflowID(b.ID, 0), owner.WorkflowID}
	for next, want := range map[string][]string{"500 ms": both, "-1 min": both, "2 s": nil} {
		if _, err := db.Exec(t.Context(), `
			WITH single AS (UPDATE notifications SET send_at = now() - '1 min'::interval, started_at = now() - '1 min'::interval),
				batch AS (UPDATE batches SET shard_started_at = now() - '1 min'::interval)
			UPDATE senders SET next_slot = now() + $1::text::interval`, next); err != nil {
			t.Fatal(err)
		}
		idle, err := s.Idle(t.Context(), 10*time.Second, time.Second, nil, 10)
		slices.Sort(idle)
		if err != nil || !slices.Equal(idle, want) {
			t.Errorf("with the next slot in %s idle are %v, error %v: want %v", next, idle, err, want)
		}
	}
}

func TestASuccessorGetsWhatIsUnfinished(t *testing.T) {
	s := openStore(t)
	owner := shard(t, s, 3)
	for _, want := range []string{owner + "/r1", owner + "/r2"} {
		if n, err := s.Bequeath(t.Context(), owner); err != nil || n != 3 {
			t.Fatalf("%d rows were given to a successor, error %v: want 3", n, err)
		}
		rows, err := s.Unstarted(t.Context(), nil, 10)
		if err != nil || len(rows) != 1 || *rows[0].Successor != want {
			t.Fatalf("unstarted are %+v, error %v: want %s", rows, err, want)
		}
		owner = want
	}
	if finished, err := s.Finished(t.Context(), []string{owner, "relay/999"}); err != nil || len(finished) != 1 || finished[0] != "relay/999" {
		t.Errorf("finished are %v, error %v: want only the owner that has nothing", finished, err)
	}
}

// claimable returns the row's sender.
func claimable(t *testing.T, s *store.Store, id uuid.UUID) int64 {
	t.Helper()
	senders, err := s.Senders(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.Notification(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, sender := range senders {
		if sender.Channel == n.Channel && sender.Address == n.Sender {
			return sender.ID
		}
	}
	t.Fatal("the row has no sender")
	return 0
}

// shard accepts n notifications that one workflow owns and that are to be sent, and returns its ID.
func shard(t *testing.T, s *store.Store, n int) string {
	t.Helper()
	var sender int64
	for range n {
		sender = claimable(t, s, accept(t, s, notify.SMS, false))
	}
	id, err := s.NewShardID(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	claims, err := s.Claim(t.Context(), store.ClaimTerms{Owner: store.Owner{WorkflowID: id}, Adopt: sender, Limit: n, Lease: time.Minute})
	if err != nil || len(claims) != n {
		t.Fatalf("%d claims, error %v: want %d", len(claims), err, n)
	}
	for _, c := range claims {
		if held, err := s.GiveBack(t.Context(), c.ID, c.Token, store.Retry{Kind: store.EventTryFailed, Uncounted: true}); err != nil || !held {
			t.Fatal(held, err)
		}
	}
	return id
}
