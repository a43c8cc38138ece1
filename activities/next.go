package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// How often the notifications of a stopped sender look whether they may go on. Resuming the sender wakes them
// earlier. A single may be held for weeks, and each look adds to its history.
const (
	heldRecheck       = 5 * time.Minute
	heldSingleRecheck = 24 * time.Hour
)

// queueRecheck is how often a single looks whether the carrier's queue has room.
const queueRecheck = 2 * time.Second

// next reads from the ledger what the workflow has left to do, and chooses what comes first.
func (a *Activities) next(ctx context.Context, ref Ref) (Next, error) {
	left, err := a.Store.Outstanding(ctx, ref.owner(), a.Terms.StatusCheckDelay, ref.ahead(), a.Terms.SendDeadline)
	if err == nil && left.ExpireIn > 0 && left.ExpireIn <= time.Millisecond {
		if err = a.Store.Expire(ctx, ref.owner(), a.Terms.SendDeadline, store.Failure{Kind: store.EventExpired,
			FailureCode: notify.CodeSendDeadline, Message: notify.LedgerMessage(notify.CodeSendDeadline, notify.SMS, "")}); err == nil {
			left, err = a.Store.Outstanding(ctx, ref.owner(), a.Terms.StatusCheckDelay, ref.ahead(), a.Terms.SendDeadline)
		}
	}
	if err != nil {
		return Next{}, err
	}
	var choices []Next
	if left.Accepted > 0 {
		in := left.SendIn
		switch {
		case left.Held && ref.ID != nil && !ref.owner().OfBatch():
			in = max(in, heldSingleRecheck)
		case left.Held:
			in = max(in, heldRecheck)
		case left.Queued:
			in = max(in, queueRecheck)
		case left.ExpireIn > 0:
			in = min(in, left.ExpireIn)
		}
		choices = append(choices, Next{Action: Send, In: in})
	}
	if left.Sending > 0 {
		// The worker that claimed it died, or still waits for the carrier's answer.
		choices = append(choices, Next{Action: LookUp, In: left.LookUpIn + a.Terms.answerLimit()})
	}
	if left.Pending > 0 {
		choices = append(choices, Next{Action: CheckStatus, In: left.CheckIn})
	}
	if len(choices) == 0 {
		return a.done(ctx, ref)
	}
	first := choices[0]
	for _, each := range choices[1:] {
		if each.In < first.In {
			first = each
		}
	}
	return first, nil
}

// done ends the workflow. A single notification's final status is its workflow's result.
func (a *Activities) done(ctx context.Context, ref Ref) (Next, error) {
	next := Next{Action: Done}
	if ref.ID == nil {
		return next, nil
	}
	n, err := a.Store.Notification(ctx, *ref.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return Next{}, temporal.NewNonRetryableApplicationError("the ledger has no such notification", "NotFound", nil)
	case err != nil:
		return Next{}, err
	case n.Status.Final():
		next.Status = n.Status
	}
	return next, nil
}

// retryAfter makes the error by which Temporal runs the activity again after a pause. It is benign:
// a notification that waits is no failure of the worker.
func retryAfter(pause time.Duration, why string) error {
	return temporal.NewApplicationErrorWithOptions(why, "RetryLater", temporal.ApplicationErrorOptions{
		NextRetryDelay: max(pause, 10*time.Millisecond), Category: temporal.ApplicationErrorCategoryBenign,
	})
}

// detached keeps a write to the ledger going when the activity is canceled: a worker that stops
// must not leave a claim behind that it could have ended.
func detached(ctx context.Context) context.Context {
	return context.WithoutCancel(ctx)
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
