package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/notify"
)

// BatchInput names the batch to carry.
type BatchInput struct {
	ID      uuid.UUID
	Channel notify.Channel
}

// firstTurn is after how long a batch that has begun, or was woken, shows how far it has come. The pauses
// grow to [activities.CarryTurn].
const firstTurn = 2 * time.Second

// Batch carries a bulk request until every notification of it is final: it has its shards started in
// order, and shows in Temporal's Web UI how far it has come. The shards carry the notifications.
func Batch(ctx workflow.Context, in BatchInput) error {
	wake := workflow.GetSignalChannel(ctx, WakeSignal)
	settled := workflow.GetSignalChannel(ctx, SettledSignal)
	for turn := firstTurn; ; {
		carried, err := carryBatch(ctx, in, turn)
		if err != nil {
			return err
		}
		workflow.SetCurrentDetails(ctx, carried.Details)
		switch {
		case carried.Done:
			drain(wake, settled)
			return nil
		case workflow.GetInfo(ctx).GetCurrentHistoryLength() > longHistory:
			// A signal that came meanwhile is not missed: the next run begins by looking at the ledger.
			drain(wake, settled)
			return workflow.NewContinueAsNewError(ctx, Batch, in)
		}
		rest(ctx, carried.In, wake, settled)
		if turn = min(2*turn, activities.CarryTurn); carried.In > 0 {
			turn = firstTurn
		}
	}
}

// rest waits for a signal, at most d.
func rest(ctx workflow.Context, d time.Duration, signals ...workflow.ReceiveChannel) {
	if drain(signals...) {
		return
	}
	ctx, cancelTimer := workflow.WithCancel(ctx)
	defer cancelTimer()
	if signaled := waitForSignal(ctx, d, signals...); signaled != nil {
		signaled.ReceiveAsync(nil)
	}
}

func carryBatch(ctx workflow.Context, in BatchInput, turn time.Duration) (carried activities.Carried, err error) {
	err = workflow.ExecuteActivity(batchOptions(in.Channel).apply(ctx), a.CarryBatch, in.ID, turn).Get(ctx, &carried)
	return carried, err
}
