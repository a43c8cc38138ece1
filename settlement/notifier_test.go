package settlement_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/devstack/devstacktest"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/settlement"
	"github.com/todoku/todoku/store"
)

func TestMain(m *testing.M) { devstacktest.Main(m) }

// signals records what workflows are told, and fails for those that are named.
type signals struct {
	mu    sync.Mutex
	tried []string
	fails func(workflowID string) bool
}

func (s *signals) Settled(_ context.Context, workflowID string, status notify.Status) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried = append(s.tried, workflowID+" "+string(status))
	if s.fails != nil && s.fails(workflowID) {
		return errors.New("Temporal is away")
	}
	return nil
}

func (s *signals) want(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.tried)
	if !slices.Equal(s.tried, want) {
		t.Errorf("the signals are %q, want %q", s.tried, want)
	}
	s.tried = nil
}

func newNotifier(s *store.Store) (*settlement.Notifier, *signals) {
	to := &signals{}
	return &settlement.Notifier{Store: s, Workflows: to, Log: slog.New(slog.DiscardHandler)}, to
}

// singles are rows that have workflows of their own.
func singles(n int) (rows []settlement.Final) {
	for range n {
		id := uuid.New()
		rows = append(rows, settlement.Final{ID: id, WorkflowID: notify.NotificationWorkflowID(id), Status: notify.Success})
	}
	return rows
}

func TestANotificationsOwnWorkflowIsToldWithoutAnotherLook(t *testing.T) {
	t.Parallel()
	n, told := newNotifier(nil)
	row := singles(1)[0]
	if !n.Notify(t.Context(), row) {
		t.Error("it says that a workflow was not told")
	}
	told.want(t, row.WorkflowID+" SUCCESS")
}

func TestAnOwnerOfManyIsToldOnceWhenItsLastRowIsFinal(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), devstacktest.Ledger(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	sender, err := s.EnsureSender(t.Context(), notify.SMS, "+15005550006")
	if err != nil {
		t.Fatal(err)
	}
	const shard = "relay/1"
	n, told := newNotifier(s)
	ids := []uuid.UUID{uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())}
	for _, id := range ids {
		body, to := "x", "+12025550143"
		if _, err := s.Accept(t.Context(), store.NewNotification{ID: id, Channel: notify.SMS, SenderID: sender,
			To: notify.PhoneNumber{E164: to, National: to}, ToHash: []byte(to), Message: &body}); err != nil {
			t.Fatal(err)
		}
		claims, err := s.Claim(t.Context(), store.ClaimTerms{Owner: store.Owner{WorkflowID: shard, Single: &id}, Limit: 1, Lease: time.Minute})
		if err != nil || len(claims) != 1 {
			t.Fatalf("claims %v, error %v", claims, err)
		}
	}
	settle := func(ids ...uuid.UUID) {
		t.Helper()
		var receipts []notify.Receipt
		for _, id := range ids {
			receipts = append(receipts, notify.Receipt{NotificationID: id.String(), Channel: notify.SMS, Word: "delivered", Source: notify.FromWebhook})
		}
		settled, err := s.Settle(t.Context(), receipts...)
		if err != nil {
			t.Fatal(err)
		}
		if !n.Notify(t.Context(), settlement.JustFinal(settled)...) {
			t.Error("it says that a workflow was not told")
		}
	}
	settle(ids[0])
	told.want(t)
	settle(ids...)
	told.want(t, shard+" SUCCESS")
	settle(ids...) // a repeat
	told.want(t)
	n.Notify(t.Context(), settlement.Canceled([]string{shard, shard})...)
	told.want(t, shard+" CANCELED")
}

func TestOneWorkflowThatCannotBeToldKeepsNoOtherFromIt(t *testing.T) {
	t.Parallel()
	n, told := newNotifier(nil)
	rows := singles(30)
	told.fails = func(workflowID string) bool { return workflowID == rows[0].WorkflowID }
	if n.Notify(t.Context(), rows...) {
		t.Error("it says that every workflow was told")
	}
	if len(told.tried) != len(rows) {
		t.Errorf("%d workflows were tried, want all %d", len(told.tried), len(rows))
	}
}

func TestWhileTemporalIsAwayNotifySoonGivesUp(t *testing.T) {
	t.Parallel()
	n, told := newNotifier(nil)
	told.fails = func(string) bool { return true }
	if n.Notify(t.Context(), singles(1000)...) {
		t.Error("it says that every workflow was told")
	}
	if len(told.tried) > 20 {
		t.Errorf("%d workflows were tried", len(told.tried))
	}
}

func TestNotifyDoesNotWaitWhereItCanSubmit(t *testing.T) {
	t.Parallel()
	n, told := newNotifier(nil)
	var submitted []func(context.Context)
	n.Submit = func(do func(context.Context)) bool {
		submitted = append(submitted, do)
		return len(submitted) < 3
	}
	rows := singles(3)
	n.Notify(t.Context(), rows...)
	told.want(t)
	for _, do := range submitted[:2] { // there was no room for the third
		do(t.Context())
	}
	want := []string{rows[0].WorkflowID + " SUCCESS", rows[1].WorkflowID + " SUCCESS"}
	slices.Sort(want)
	told.want(t, want...)
}
