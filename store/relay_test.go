package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

func TestTheRelaySeesDueRowsWithoutAWorkflow(t *testing.T) {
	s := openStore(t)
	id := accept(t, s, notify.SMS, false)
	unstarted := func(age time.Duration) []store.Unstarted {
		t.Helper()
		rows, err := s.Unstarted(t.Context(), age, 10)
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	if rows := unstarted(0); len(rows) != 1 || *rows[0].Single != id || rows[0].WorkflowID != nil {
		t.Errorf("unstarted are %+v, want the accepted row", rows)
	}
	if rows := unstarted(time.Hour); len(rows) != 0 {
		t.Errorf("unstarted are %+v before their time", rows)
	}
	if err := s.MarkStarted(t.Context(), store.Owner{Single: &id, WorkflowID: "notification/" + id.String()}); err != nil {
		t.Fatal(err)
	}
	if rows := unstarted(0); len(rows) != 0 {
		t.Errorf("unstarted are %+v after the start", rows)
	}
}

func TestABurstIsAssignedToShards(t *testing.T) {
	s := openStore(t)
	for range 5 {
		accept(t, s, notify.SMS, false)
	}
	accept(t, s, notify.Call, false)
	var sizes []int
	for n := -1; n != 0; {
		var err error
		if n, err = s.AssignShard(t.Context(), 0, 3); err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, n)
	}
	if !slices.Equal(sizes, []int{3, 2, 1, 0}) {
		t.Fatalf("the shards have %v rows: want no more than 3 in each, and one sender's only", sizes)
	}
	rows, err := s.Unstarted(t.Context(), 0, 10)
	if err != nil || len(rows) != 3 {
		t.Fatalf("unstarted are %+v, error %v: want three shards", rows, err)
	}
	var shards []store.Owner
	for _, row := range rows {
		shards = append(shards, store.Owner{WorkflowID: *row.WorkflowID})
	}
	if err := s.MarkStarted(t.Context(), shards...); err != nil {
		t.Fatal(err)
	}
	if rows, err := s.Unstarted(t.Context(), 0, 10); err != nil || len(rows) != 0 {
		t.Errorf("unstarted are %+v, error %v, after the start", rows, err)
	}
}

// shard accepts n notifications that one workflow owns, and returns its ID.
func shard(t *testing.T, s *store.Store, n int) string {
	t.Helper()
	for range n {
		accept(t, s, notify.SMS, false)
	}
	if assigned, err := s.AssignShard(t.Context(), 0, n); err != nil || assigned != n {
		t.Fatalf("%d rows were assigned, error %v: want %d", assigned, err, n)
	}
	rows, err := s.Unstarted(t.Context(), 0, 1)
	if err != nil || len(rows) != 1 {
		t.Fatalf("unstarted are %+v, error %v", rows, err)
	}
	return *rows[0].WorkflowID
}
