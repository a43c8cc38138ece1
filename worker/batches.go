package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/todoku/todoku/outbox"
	"github.com/todoku/todoku/settlement"
	"github.com/todoku/todoku/starter"
	"github.com/todoku/todoku/store"
)

const (
	batchInterval = 500 * time.Millisecond
	batchLimit    = 20          // batches that one look takes on
	foldLimit     = 50_000      // changes that are folded at once
	batchAge      = time.Second // by then whoever accepted a batch has started its workflow, or never will

	// neglectedAfter is how much later than it said a batch's workflow may look at it.
	neglectedAfter = 10 * time.Second
)

// Batches does for bulk requests what must happen whether or not Temporal is there: it writes down
// what was canceled, keeps the counts short and the rates measured, and marks what is finished. It
// also starts workflows of batches and of carrier checks that have none, and replaces batches' that are
// gone. Every worker runs one; they share the work.
type Batches struct {
	Store   *store.Store
	Starter *starter.Starter
	Log     *slog.Logger
}

// Run goes on until ctx ends.
func (b *Batches) Run(ctx context.Context) {
	repeat(ctx, b.Log, "batches", batchInterval, "batches wait until the database and Temporal answer again", b.look)
}

// look does each thing whether or not another one fails.
func (b *Batches) look(ctx context.Context) error {
	_, foldErr := b.Store.FoldBatchMoves(ctx, foldLimit)
	return errors.Join(foldErr, b.Store.SampleBatches(ctx), b.cancel(ctx), b.cancelQueuedCalls(ctx), b.finish(ctx), b.start(ctx), b.replace(ctx), b.check(ctx))
}

// cancel writes CANCELED, and tells the workflows that have nothing left to wait for.
func (b *Batches) cancel(ctx context.Context) error {
	notifier := settlement.Notifier{Store: b.Store, Workflows: b.Starter, Log: b.Log}
	for told := true; ; {
		n, owners, err := b.Store.CancelChunk(ctx)
		if err != nil || n == 0 {
			return err
		}
		if told { // while Temporal is away, workflows find out by themselves
			told = notifier.Notify(ctx, settlement.Canceled(owners)...)
		}
	}
}

// cancelQueuedCalls wakes the workflows whose calls the carrier is to be asked to cancel. One that is not woken does so
// at its next status check.
func (b *Batches) cancelQueuedCalls(ctx context.Context) error {
	owners, err := b.Store.CancelQueuedCalls(ctx)
	for _, owner := range owners {
		_, wakeErr := b.Starter.Wake(ctx, owner)
		err = errors.Join(err, wakeErr)
	}
	return err
}

func (b *Batches) finish(ctx context.Context) error {
	finished, err := b.Store.FinishBatches(ctx)
	for _, batch := range finished {
		b.Log.Info("batch finished", "batch_id", batch.ID)
		_, wakeErr := b.Starter.Wake(ctx, batch.WorkflowID)
		err = errors.Join(err, wakeErr)
	}
	return err
}

func (b *Batches) start(ctx context.Context) error {
	waiting, err := b.Store.UnstartedBatches(ctx, batchAge, batchLimit)
	for _, batch := range waiting {
		startErr := outbox.StartBatch(ctx, b.Store, b.Starter, batch)
		if err = errors.Join(err, startErr); starter.Away(startErr) {
			return err
		}
	}
	return err
}

// replace wakes the workflows that do not look after their batches, and replaces those that are
// closed or gone.
func (b *Batches) replace(ctx context.Context) error {
	neglected, err := b.Store.NeglectedBatches(ctx, neglectedAfter, batchLimit)
	for _, batch := range neglected {
		alive, wakeErr := b.Starter.Wake(ctx, batch.WorkflowID)
		if starter.Away(wakeErr) {
			return errors.Join(err, wakeErr)
		}
		if wakeErr != nil || alive {
			err = errors.Join(err, wakeErr)
			continue
		}
		if replaceErr := b.Store.BequeathBatch(ctx, batch); replaceErr != nil {
			err = errors.Join(err, replaceErr)
			continue
		}
		b.Log.Warn("replaced a batch's workflow that is closed or gone", "workflow_id", batch.WorkflowID)
	}
	return err
}

// check starts the workflows of checks that were asked for.
func (b *Batches) check(ctx context.Context) error {
	waiting, err := b.Store.UnstartedCarrierChecks(ctx, batchLimit)
	for _, check := range waiting {
		startErr := b.Starter.StartCarrierCheck(ctx, check.ID, check.BatchID)
		if startErr == nil {
			startErr = b.Store.MarkCarrierCheckStarted(ctx, check.ID)
		}
		if err = errors.Join(err, startErr); starter.Away(startErr) {
			return err
		}
	}
	return err
}
