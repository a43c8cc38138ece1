package v1

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/settlement"
	"github.com/todoku/todoku/store"
)

// Pauses between two looks at a claim that is waited for.
const (
	firstClaimLook = 25 * time.Millisecond
	laterClaimLook = 250 * time.Millisecond
)

type cancelOutput struct {
	Status          int
	ContentLanguage string `header:"Content-Language" doc:"The language of error_message: ja or en."`
	Vary            string `header:"Vary"`
	Body            Notification
}

func (a *API) registerCancel(to huma.API) {
	cancel := operation("cancel-notification", http.MethodPost, "/notifications/{id}/cancel", "Notifications", ScopeSend, "Cancel a notification that was not sent",
		"200: it is CANCELED and is not sent. While it is being sent, the answer waits for what Twilio says, at most for some 15 seconds: "+
			"200 when Twilio did not take it, 409 when it did. 202: nobody can tell yet whether Twilio took it, or it is a call that waits in Twilio's queue, "+
			"which Twilio is asked to cancel; it becomes CANCELED if it is not made, and otherwise shows what became of it. A receipt of Twilio's beats CANCELED.",
		http.StatusNotFound, http.StatusConflict)
	cancel.Responses = map[string]*huma.Response{"202": {
		Description: "Nobody can tell yet whether Twilio took it, or Twilio is asked to cancel a call that it has queued.",
		Content:     map[string]*huma.MediaType{"application/json": {Schema: to.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Notification](), true, "")}},
	}}
	huma.Register(to, cancel, a.cancel)
}

func (a *API) cancel(ctx context.Context, in *notificationInput) (*cancelOutput, error) {
	wish, err := a.awaitCancel(ctx, in)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, problem.NoNotification()
	case err != nil:
		return nil, a.fail(ctx, err)
	}
	status := http.StatusOK
	switch wish.Status {
	case notify.Canceled:
	case notify.Sending:
		status = http.StatusAccepted
	case notify.Pending:
		if wish.Queued {
			status = http.StatusAccepted
			break
		}
		return nil, problem.New(problem.AlreadySent, "Twilio has the notification: it cannot be canceled any more")
	default:
		return nil, problem.New(problem.AlreadyFinal, "the notification's status is final: it cannot be canceled any more")
	}
	n, err := a.find(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if wish.Just {
		a.Notifier.Notify(ctx, settlement.Final{ID: n.ID, WorkflowID: ownerOf(n.ID, wish.WorkflowID), Status: notify.Canceled})
	}
	if wish.Queued {
		a.wake(n, wish.WorkflowID)
	}
	out := a.show(ctx, n, in.AcceptLanguage)
	return &cancelOutput{status, out.ContentLanguage, out.Vary, out.Body}, nil
}

// wake lets the owner of a notification look at the ledger now. Where that fails, it does at its next status check.
func (a *API) wake(n store.Notification, workflowID *string) {
	a.Starts.Submit(func(ctx context.Context) {
		if _, err := a.Starter.Wake(ctx, ownerOf(n.ID, workflowID)); err != nil {
			a.Logger.WarnContext(ctx, "workflow not woken: left to its next status check", "notification_id", n.ID, "error", err)
		}
	})
}

// awaitCancel asks for it until no claim holds the row any more, or the claim has run out.
func (a *API) awaitCancel(ctx context.Context, in *notificationInput) (store.Cancellation, error) {
	for pause := firstClaimLook; ; pause = min(2*pause, laterClaimLook) {
		wish, err := a.Store.Cancel(ctx, in.ID)
		if err != nil || wish.Status != notify.Sending || wish.RanOut {
			return wish, err
		}
		select {
		case <-ctx.Done():
			return wish, ctx.Err()
		case <-time.After(pause):
		}
	}
}
