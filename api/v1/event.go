package v1

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/store"
)

// Event is one entry of a notification's timeline.
type Event struct {
	At           time.Time       `json:"at"`
	Kind         store.EventKind `json:"kind" example:"receipt" doc:"accepted, receipt, conflicting_final, second_sid, unknown_word, try_failed, refused, ambiguous, not_at_carrier, deadline_passed, sender_stopped, rescheduled, cancel_requested or canceled."`
	Status       *string         `json:"status" doc:"Of the notification after the event."`
	Source       *string         `json:"source" example:"webhook" doc:"How we learnt it: create (Twilio's answer), webhook (its callback) or poll (we asked)."`
	TwilioStatus *string         `json:"twilio_status"`
	TwilioSID    *string         `json:"twilio_sid"`
	ErrorCode    *string         `json:"error_code"`
	Detail       *string         `json:"detail"`
}

func (a *API) events(ctx context.Context, in *struct {
	ID uuid.UUID `path:"id" format:"uuid"`
}) (*struct{ Body list[Event] }, error) {
	if _, err := a.find(ctx, in.ID); err != nil {
		return nil, err
	}
	timeline, err := a.Store.Events(ctx, in.ID)
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	return &struct{ Body list[Event] }{list[Event]{mapped(timeline, showEvent)}}, nil
}

func showEvent(e store.Event) Event {
	return Event{
		At: e.At, Kind: e.Kind, Status: e.Status, Source: e.Source,
		TwilioStatus: e.TwilioStatus, TwilioSID: e.TwilioSID, ErrorCode: e.ErrorCode, Detail: e.Detail,
	}
}

// find reads a notification. Its error is an answer.
func (a *API) find(ctx context.Context, id uuid.UUID) (store.Notification, error) {
	n, err := a.Store.Notification(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return n, problem.NoNotification()
	case err != nil:
		return n, a.fail(ctx, err)
	}
	return n, nil
}
