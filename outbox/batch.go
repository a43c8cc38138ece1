// Package outbox brings to Temporal what the ledger says must be started. Whatever it does may be done twice: what was
// started before is not started again.
package outbox

import (
	"context"

	"github.com/google/uuid"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// BatchStarter starts the workflow that carries a batch. One that was started before is success.
type BatchStarter interface {
	StartBatch(ctx context.Context, workflowID string, id uuid.UUID, channel notify.Channel) error
}

// StartBatch starts the workflow of a batch, and notes in the ledger that Temporal has it. After an error the worker's
// loop of batches does both again.
func StartBatch(ctx context.Context, ledger *store.Store, temporal BatchStarter, b store.BatchWorkflow) error {
	if err := temporal.StartBatch(ctx, b.WorkflowID, b.ID, b.Channel); err != nil {
		return err
	}
	return ledger.MarkBatchStarted(ctx, b.ID, b.WorkflowID)
}
