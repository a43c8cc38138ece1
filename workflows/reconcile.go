package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/notify"
)

// ReconcileTimeout is how long one run of Reconcile may take. While it runs the next ones are
// skipped, so it must end even when no worker takes its activities.
const ReconcileTimeout = 15 * time.Minute

// Reconciled is what one run of Reconcile has put right.
type Reconciled struct{ SMS, Call activities.Reconciled }

// Reconcile puts right what no notification's own workflow does, on a schedule: it settles rows whose
// workflows are gone or know nothing of it, and finds rows for sends that the carrier shows. Each
// channel is reconciled by itself, so that an error of one holds up nothing of the other.
func Reconcile(ctx workflow.Context) (done Reconciled, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              activities.StatusCheckQueue,
		StartToCloseTimeout:    10 * time.Minute,
		ScheduleToCloseTimeout: ReconcileTimeout - time.Minute,
		HeartbeatTimeout:       activities.HeartbeatTimeout,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 10 * time.Second, MaximumAttempts: 3}, // the next run tries again
	})
	sms := workflow.ExecuteActivity(ctx, a.Reconcile, notify.SMS)
	call := workflow.ExecuteActivity(ctx, a.Reconcile, notify.Call)
	err = errors.Join(sms.Get(ctx, &done.SMS), call.Get(ctx, &done.Call))
	return done, err
}
