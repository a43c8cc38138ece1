package workflows

import (
	"errors"

	"go.temporal.io/sdk/workflow"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/notify"
)

// Reconciled is what one run of Reconcile has put right.
type Reconciled struct{ SMS, Call activities.Reconciled }

// Reconcile puts right what no notification's own workflow does, on a schedule: it settles rows whose
// workflows are gone or know nothing of it, and finds rows for sends that the carrier shows. Each
// channel is reconciled by itself, so that an error of one holds up nothing of the other.
func Reconcile(ctx workflow.Context) (done Reconciled, err error) {
	ctx = reconcileOptions.apply(ctx)
	sms := workflow.ExecuteActivity(ctx, a.Reconcile, notify.SMS)
	call := workflow.ExecuteActivity(ctx, a.Reconcile, notify.Call)
	err = errors.Join(sms.Get(ctx, &done.SMS), call.Get(ctx, &done.Call))
	return done, err
}
