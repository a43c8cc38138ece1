package v1

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/store"
)

type rescheduleRequest struct {
	SendAt string `json:"send_at" format:"date-time" example:"2026-04-01T10:00:00+09:00" doc:"It is not sent before: RFC 3339 with an offset, up to 35 days ahead."`
}

func (a *API) registerReschedule(to huma.API) {
	huma.Register(to, withBody(operation("reschedule-notification", http.MethodPatch, "/notifications/{id}", "Notifications", ScopeSend,
		"Change when a notification is sent", "Until it is taken to be sent for the first time.", http.StatusNotFound, http.StatusConflict)), a.reschedule)
}

func (a *API) reschedule(ctx context.Context, in *struct {
	ID             uuid.UUID `path:"id" format:"uuid"`
	AcceptLanguage string    `header:"Accept-Language" doc:"Chooses the language of error_message: ja, or else en." example:"ja"`
	Body           body[rescheduleRequest]
}) (*notificationOutput, error) {
	wrong := in.Body.Wrong
	sendAt := checkSendAt(&wrong, &in.Body.Value.SendAt, a.Store.Now(ctx))
	if err := wrong.Problem(); err != nil {
		return nil, err
	}
	moved, err := a.Store.Reschedule(ctx, in.ID, *sendAt)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, problem.NoNotification()
	case err != nil:
		return nil, a.fail(ctx, err)
	case !moved.Moved && moved.Status.Final():
		return nil, problem.New(problem.AlreadyFinal, "the notification's status is final: its time cannot be changed any more")
	case !moved.Moved:
		return nil, problem.New(problem.AlreadyClaimed, "the notification was taken to be sent: its time cannot be changed any more")
	}
	n, err := a.find(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	a.followMove(n, moved)
	out := a.show(ctx, n, in.AcceptLanguage)
	return &out, nil
}

// followMove lets what is due earlier than before be sent in time: a workflow that is there would
// sleep until the former moment. Where none is, one is started now, or by the relay when it is due.
func (a *API) followMove(n store.Notification, moved store.Rescheduled) {
	if !moved.Earlier {
		return
	}
	a.Starts.Submit(func(ctx context.Context) {
		alive, err := a.Starter.Wake(ctx, ownerOf(n.ID, moved.WorkflowID))
		if err == nil && !alive && moved.Due && moved.WorkflowID == nil {
			err = a.Starter.StartNotification(ctx, n.ID, n.Channel)
		}
		if err != nil {
			a.Logger.WarnContext(ctx, "workflow not woken: left to the relay", "notification_id", n.ID, "error", err)
		}
	})
}
