package worker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// acceptBatch accepts n SMS to different numbers, in shards of the size.
func (h *house) acceptBatch(n, shardSize int) store.Batch {
	h.t.Helper()
	body, next := "Your prescription is ready.", 0
	b, _, err := h.store.AcceptBatch(h.t.Context(), store.NewBatch{
		ID: uuid.Must(uuid.NewV7()), Channel: notify.SMS, Message: &body, SenderID: h.sender, ShardSize: shardSize,
		Recipients: func() (store.BatchRecipient, bool, error) {
			if next == n {
				return store.BatchRecipient{}, false, nil
			}
			next++
			number := notify.PhoneNumber{E164: fmt.Sprintf("+1202555%04d", next), National: "x"}
			return store.BatchRecipient{ID: uuid.Must(uuid.NewV7()), Row: next, To: number, ToHash: []byte(number.E164)}, true, nil
		},
		Rejected: func() (int, []store.Rejected) { return 0, nil },
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return b
}

// awaitBatch waits until the batch is as the condition says.
func (h *house) awaitBatch(id uuid.UUID, what string, is func(store.Batch) bool) store.Batch {
	h.t.Helper()
	var b store.Batch
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var err error
		if b, err = h.store.Batch(h.t.Context(), id); err != nil {
			h.t.Fatal(err)
		}
		if is(b) {
			return b
		}
	}
	h.t.Fatalf("it did not come to this: %s; the batch is %+v", what, b)
	return b
}

func finished(b store.Batch) bool { return b.FinishedAt != nil }

func TestABatchIsCarriedThroughPauseAndResumption(t *testing.T) {
	h := newHouse(t)
	b := h.acceptBatch(2000, 100)
	h.awaitBatch(b.ID, "some of it is sent", func(b store.Batch) bool { return b.Pending+b.Success > 50 })
	if ok, err := h.store.PauseBatch(t.Context(), b.ID, nil); err != nil || !ok {
		t.Fatal(ok, err)
	}
	paused := h.awaitBatch(b.ID, "nothing is in flight", func(b store.Batch) bool { return b.Sending == 0 })
	time.Sleep(500 * time.Millisecond)
	if later := h.awaitBatch(b.ID, "the same", func(store.Batch) bool { return true }); later.Accepted != paused.Accepted || later.State() != store.BatchPaused {
		t.Errorf("%d of %d were sent while it was paused", paused.Accepted-later.Accepted, paused.Accepted)
	}
	if ok, err := h.store.ResumeBatch(t.Context(), b.ID); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if _, err := h.starter.Wake(t.Context(), b.WorkflowID); err != nil {
		t.Fatal(err)
	}
	if b = h.awaitBatch(b.ID, "it is finished", finished); b.Success != 2000 {
		t.Errorf("the counts are %+v", b.Counts)
	}
	if n := h.creates(); n != 2000 {
		t.Errorf("%d creates, want 2,000", n)
	}
	if err := h.starter.Client().GetWorkflow(t.Context(), b.WorkflowID, "").Get(t.Context(), nil); err != nil {
		t.Errorf("the workflow ends with %v", err)
	}
}

func TestACanceledBatchEndsWithItsWorkflows(t *testing.T) {
	h := newHouse(t)
	b := h.acceptBatch(2000, 100)
	h.awaitBatch(b.ID, "some of it is sent", func(b store.Batch) bool { return b.Pending+b.Success > 50 })
	if ok, err := h.store.CancelBatch(t.Context(), b.ID); err != nil || !ok {
		t.Fatal(ok, err)
	}
	b = h.awaitBatch(b.ID, "it is finished", finished)
	if b.Counts.Canceled == 0 || b.Counts.Canceled+b.Success != 2000 || b.State() != store.BatchCanceled {
		t.Errorf("it is %s with %+v", b.State(), b.Counts)
	}
	if n := h.creates(); int64(n) != b.Success {
		t.Errorf("%d creates, %d successes", n, b.Success)
	}
	for _, id := range []string{b.WorkflowID, notify.ShardWorkflowID(b.ID, 0)} {
		if err := h.starter.Client().GetWorkflow(t.Context(), id, "").Get(t.Context(), nil); err != nil {
			t.Errorf("the workflow %s ends with %v", id, err)
		}
	}
}

func TestAtASlowPaceEachNotificationOfABatchHasAWorkflow(t *testing.T) {
	h := newHouse(t)
	b := h.acceptBatch(5, 1)
	h.awaitBatch(b.ID, "it is finished", finished)
	for n := range 5 {
		var status notify.Status
		if err := h.starter.Client().GetWorkflow(t.Context(), notify.ShardWorkflowID(b.ID, n), "").Get(t.Context(), &status); err != nil || status != notify.Success {
			t.Errorf("workflow %d ends with %s, error %v", n, status, err)
		}
	}
}

func TestABatchWhoseWorkflowIsGoneIsCarriedByAnother(t *testing.T) {
	h := newHouse(t)
	b := h.acceptBatch(10, 1)
	if ok, err := h.store.PauseBatch(t.Context(), b.ID, nil); err != nil || !ok {
		t.Fatal(ok, err)
	}
	c := h.starter.Client()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if run, err := c.DescribeWorkflow(t.Context(), b.WorkflowID, ""); err == nil && run.RawResponse.WorkflowExecutionInfo.HistoryLength > 10 {
			break // it waits for the resumption
		}
		if time.Now().After(end) {
			t.Fatal("the workflow was not started")
		}
	}
	if err := c.TerminateWorkflow(t.Context(), b.WorkflowID, "", "lost, for the test"); err != nil {
		t.Fatal(err)
	}
	if ok, err := h.store.ResumeBatch(t.Context(), b.ID); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if b = h.awaitBatch(b.ID, "it is finished", finished); !strings.HasSuffix(b.WorkflowID, "/r1") || b.Success != 10 {
		t.Errorf("%s has carried %+v", b.WorkflowID, b.Counts)
	}
}

func TestACarrierCheckIsMadeByAWorker(t *testing.T) {
	h := newHouse(t)
	b := h.acceptBatch(50, 10)
	h.awaitBatch(b.ID, "it is finished", finished)
	check, err := h.store.RequestCarrierCheck(t.Context(), b.ID)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); check.EndedAt == nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the check does not end: %+v", check)
		}
		if check, err = h.store.CarrierCheck(t.Context(), b.ID); err != nil {
			t.Fatal(err)
		}
	}
	if check.Failure != nil || check.Differences() != 0 || check.Compared != 50 || check.Listed != 50 {
		t.Errorf("the check is %+v", check)
	}
	if err := h.starter.Client().GetWorkflow(t.Context(), notify.CarrierCheckWorkflowID(check.ID), "").Get(t.Context(), nil); err != nil {
		t.Errorf("its workflow ends with %v", err)
	}
}
