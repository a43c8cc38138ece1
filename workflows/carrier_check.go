package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/todoku/todoku/activities"
)

// CarrierCheckInput names a check of a batch against the carrier's own list.
type CarrierCheckInput struct{ ID uuid.UUID }

// CarrierCheckTimeout is how long a check is tried for while the carrier cannot be listed.
const CarrierCheckTimeout = 2 * time.Hour

// CarrierCheck makes the check, or notes that it could not be made. What it finds is in the ledger.
func CarrierCheck(ctx workflow.Context, in CarrierCheckInput) error {
	check := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              activities.StatusCheckQueue,
		StartToCloseTimeout:    CarrierCheckTimeout,
		ScheduleToCloseTimeout: CarrierCheckTimeout,
		HeartbeatTimeout:       activities.HeartbeatTimeout,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 5 * time.Second, MaximumInterval: time.Minute},
	})
	err := workflow.ExecuteActivity(check, a.CompareBatch, in.ID).Get(ctx, nil)
	if err == nil {
		return nil
	}
	giveUp := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           activities.StatusCheckQueue,
		StartToCloseTimeout: time.Minute,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, MaximumInterval: time.Minute},
	})
	if giveUpErr := workflow.ExecuteActivity(giveUp, a.GiveUpCarrierCheck, in.ID).Get(ctx, nil); giveUpErr != nil {
		return giveUpErr
	}
	return err
}
