package activities

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"

	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// heldRecheck is how often a notification of a stopped sender looks whether it may go on. Resuming
// wakes it earlier.
const heldRecheck = 5 * time.Minute

// Send claims the notification and posts it, at most once. An error that it returns is safe to
// retry and says after how long; an answer that was lost is not retried but looked up.
func (a *Activities) Send(ctx context.Context, ref Ref) (Next, error) {
	claimedAt := time.Now() // before the database's clock starts the lease, so we never believe it longer than it is
	claim, err := a.Store.Claim(ctx, store.ClaimTerms{
		ID: ref.ID, WorkflowID: ref.WorkflowID, Lease: a.Terms.lease(), Ahead: slotAhead,
		SMSInterval: a.Terms.SMSSendInterval, CallInterval: a.Terms.CallSendInterval,
	})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return Next{}, temporal.NewNonRetryableApplicationError("the ledger has no such notification", "NotFound", nil)
	case err != nil:
		return Next{}, err
	case claim.Token == nil:
		return a.unclaimed(ref, claim)
	case claim.SinceFirst > a.Terms.SendDeadline:
		return a.refuse(ctx, ref, *claim.Token, store.Failure{Kind: store.EventExpired, FailureCode: notify.CodeSendDeadline,
			Message: notify.LedgerMessage(notify.CodeSendDeadline, claim.Channel, "")})
	}
	body, err := claim.Body()
	if err != nil {
		return a.refuse(ctx, ref, *claim.Token, store.Failure{Kind: store.EventRefused, FailureCode: notify.CodeBadTemplate,
			Message: notify.LedgerMessage(notify.CodeBadTemplate, claim.Channel, ""), Detail: err.Error()})
	}
	if err := sleep(ctx, claim.Wait); err != nil {
		return a.giveBack(ctx, ref, *claim.Token, store.Retry{Kind: store.EventTryFailed, Uncounted: true, Detail: "the worker stopped before it posted"})
	}
	receipt, err := a.Carrier.Create(ctx, a.create(ref.ID, claim, body, claimedAt.Add(a.Terms.lease())))
	if err != nil {
		return a.failed(ctx, ref, claim, err)
	}
	receipt.NotificationID, receipt.Source = ref.ID.String(), notify.FromCreate
	return a.settle(ctx, ref, receipt)
}

// create fills the carrier's request from the claim.
func (a *Activities) create(id uuid.UUID, claim store.Claim, body string, deadline time.Time) carrier.Create {
	req := carrier.Create{Channel: claim.Channel, To: claim.To, Body: body, DetectMachine: claim.RequireHuman, Deadline: deadline}
	if strings.HasPrefix(claim.From, "MG") {
		req.MessagingServiceSID = claim.From
	} else {
		req.From = claim.From
	}
	if a.Terms.CallbackURL != nil {
		req.StatusCallback = a.Terms.CallbackURL(claim.Channel, id)
	}
	return req
}

// unclaimed says what to do with a row that could not be claimed.
func (a *Activities) unclaimed(ref Ref, claim store.Claim) (Next, error) {
	next := Next{Status: claim.Status}
	switch {
	case claim.WorkflowID != nil && *claim.WorkflowID != ref.WorkflowID:
		next.Action = Done // another workflow owns it
	case claim.Status == notify.Sending:
		// The worker that claimed it died, or still waits for the carrier's answer.
		next.Action, next.In = LookUp, max(0, claim.LeaseLeft+a.Terms.answerLimit())
	case claim.Status == notify.Pending:
		next.Action, next.In = CheckStatus, a.Terms.StatusCheckDelay
	case claim.Status.Final():
		next.Action = Done
	case claim.Held:
		next.Action, next.In, next.Status = Send, heldRecheck, notify.Held
	default: // ACCEPTED, and not due or without a free slot
		return Next{}, retryAfter(claim.Wait, "waits for a slot or for its time")
	}
	return next, nil
}

// failed ends the claim as the class of the carrier's error demands.
func (a *Activities) failed(ctx context.Context, ref Ref, claim store.Claim, err error) (Next, error) {
	failure, ok := errors.AsType[*carrier.Error](err)
	if !ok {
		return Next{}, err // not from the carrier: the row stays SENDING, and the next attempt looks it up
	}
	code := ""
	if failure.Code != 0 {
		code = strconv.Itoa(failure.Code)
	}
	switch failure.Class {
	case carrier.SafeToRetry:
		retry := store.Retry{Kind: store.EventTryFailed, ErrorCode: code, Detail: failure.Error(), After: pause(claim.Attempts)}
		switch {
		case failure.HTTPStatus == 429:
			retry.Uncounted, retry.After = true, max(failure.RetryAfter, time.Second)
			if err := a.Store.DelaySender(ctx, claim.SenderID, retry.After); err != nil {
				return Next{}, err
			}
		case errors.Is(failure, carrier.ErrDeadline), ctx.Err() != nil:
			retry.Uncounted, retry.After = true, 0 // nothing was written
		}
		return a.giveBack(ctx, ref, *claim.Token, retry)
	case carrier.Sender, carrier.AllSenders:
		all := failure.Class == carrier.AllSenders
		if err := a.Store.StopSender(ctx, claim.SenderID, all, code, failure.Error()); err != nil {
			return Next{}, err
		}
		a.Log.ErrorContext(ctx, "sender stopped: resume it when the cause is mended",
			"sender_id", claim.SenderID, "all", all, "error_code", code, "error", failure)
		return a.giveBack(ctx, ref, *claim.Token, store.Retry{Kind: store.EventStopped, Uncounted: true, ErrorCode: code, Detail: failure.Error()})
	case carrier.Ambiguous:
		if err := a.Store.NoteAmbiguous(detached(ctx), ref.ID, *claim.Token, failure.Error()); err != nil {
			return Next{}, err
		}
		return Next{Action: LookUp, In: a.Terms.answerLimit(), Status: notify.Sending}, nil
	default:
		return a.refuse(ctx, ref, *claim.Token, store.Failure{Kind: store.EventRefused, ErrorCode: code,
			Message: notify.LedgerMessage(code, claim.Channel, ""), Detail: failure.Error()})
	}
}

// giveBack returns the row to the ledger. The answer is an error, so that Temporal's retry policy
// tries again, unless the sender is stopped.
func (a *Activities) giveBack(ctx context.Context, ref Ref, token uuid.UUID, retry store.Retry) (Next, error) {
	held, err := a.Store.GiveBack(detached(ctx), ref.ID, token, retry)
	switch {
	case err != nil:
		return Next{}, err
	case !held:
		return a.Send(ctx, ref) // a receipt was faster: read what the row is now
	case retry.Kind == store.EventStopped:
		return Next{Action: Send, In: heldRecheck, Status: notify.Held}, nil
	}
	return Next{}, retryAfter(retry.After, retry.Detail)
}

// refuse ends the row for good.
func (a *Activities) refuse(ctx context.Context, ref Ref, token uuid.UUID, failure store.Failure) (Next, error) {
	held, err := a.Store.Refuse(detached(ctx), ref.ID, token, failure)
	switch {
	case err != nil:
		return Next{}, err
	case !held:
		return a.Send(ctx, ref) // a receipt was faster: read what the row is now
	}
	return Next{Action: Done, Status: notify.Failed}, nil
}

// settle writes what the carrier said. It goes on trying while the database is away: what it
// carries may be the only proof that the carrier accepted the notification.
func (a *Activities) settle(ctx context.Context, ref Ref, receipt notify.Receipt) (Next, error) {
	var settled []store.Settled
	var err error
	for wait := 100 * time.Millisecond; ; wait *= 2 {
		settled, err = a.Store.Settle(detached(ctx), receipt)
		if err == nil || !store.IsOutage(err) || wait > 10*time.Second || sleep(ctx, wait) != nil {
			break
		}
	}
	if err != nil {
		return Next{}, err
	}
	for _, s := range settled {
		if s.ID == ref.ID {
			if s.SecondSID {
				secondSIDs.Inc()
				a.Log.ErrorContext(ctx, "the carrier accepted a notification twice", "notification_id", ref.ID)
			}
			return a.follow(s.Status), nil
		}
	}
	return Next{}, temporal.NewNonRetryableApplicationError("the ledger has no such notification", "NotFound", nil)
}

// follow says what comes after a row that was just sent or settled.
func (a *Activities) follow(status notify.Status) Next {
	if status.Final() {
		return Next{Action: Done, Status: status}
	}
	return Next{Action: CheckStatus, In: a.Terms.StatusCheckDelay, Status: status}
}

// pause is how long to wait after the n-th counted try: 2, 4 and 8 s for the three retries, then
// twice as long each time, up to a minute, until SEND_DEADLINE.
func pause(attempts int32) time.Duration {
	return min(time.Second<<min(max(attempts, 1), 10), time.Minute)
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
