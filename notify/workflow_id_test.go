package notify_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/todoku/todoku/notify"
)

func TestAWorkflowOfABatchNamesTheBatch(t *testing.T) {
	batch := uuid.MustParse("01890000-0000-7000-8000-000000000002")
	for workflowID, want := range map[string]string{
		notify.BatchWorkflowID(batch):                             batch.String(),
		notify.ShardWorkflowID(batch, 12):                         batch.String(),
		notify.SuccessorWorkflowID(notify.BatchWorkflowID(batch)): batch.String(),
		notify.NotificationWorkflowID(batch):                      "",
		"relay/7":                                                 "",
	} {
		if got, ok := notify.BatchOfWorkflow(workflowID); ok != (want != "") || ok && got != want {
			t.Errorf("the batch of %s is %q, %t: want %q", workflowID, got, ok, want)
		}
	}
}

func TestASuccessorIsNumbered(t *testing.T) {
	for workflowID, want := range map[string]string{
		"relay/7": "relay/7/r1", "relay/7/r1": "relay/7/r2", "batch/a/12/r9": "batch/a/12/r10", "batch/a/remote": "batch/a/remote/r1",
	} {
		if got := notify.SuccessorWorkflowID(workflowID); got != want {
			t.Errorf("the successor of %s is %s, want %s", workflowID, got, want)
		}
	}
}
