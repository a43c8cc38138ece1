package v1

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// Notification is one SMS or call as the API shows it.
type Notification struct {
	ID              uuid.UUID         `json:"id" format:"uuid"`
	Channel         notify.Channel    `json:"channel" enum:"SMS,CALL,LINE_TEXT,LINE_CARD"`
	Status          notify.Status     `json:"status" enum:"ACCEPTED,HELD,SENDING,PENDING,SUCCESS,FAILED,UNKNOWN,SKIPPED,CANCELED" doc:"HELD: its batch is paused, or its sender is stopped, see /api/v1/senders. SUCCESS, FAILED, UNKNOWN, SKIPPED and CANCELED are final."`
	To              string            `json:"to" example:"*********5678" doc:"The number in E.164; all but the last 4 digits are masked unless the key has the scope pii."`
	ToNational      string            `json:"to_national,omitempty" example:"*********5678" doc:"The number as people in its country write it, masked likewise."`
	Body            *string           `json:"body,omitempty" doc:"What was written, where no template was used."`
	TemplateID      *int64            `json:"template_id,omitempty"`
	TemplateVersion *int32            `json:"template_version,omitempty" doc:"The version that was current when the notification was accepted."`
	Params          map[string]string `json:"params,omitempty"`
	Reference       *string           `json:"reference,omitempty" doc:"The caller's own name for the notification."`
	BatchID         *uuid.UUID        `json:"batch_id,omitempty" format:"uuid" doc:"The batch that it is part of."`
	ScheduleID      *int64            `json:"schedule_id,omitempty" doc:"The schedule whose run it is part of."`
	TwilioSID       *string           `json:"twilio_sid" example:"SM00000000000000000000000000000001"`
	TwilioStatus    *string           `json:"twilio_status" example:"delivered" doc:"Twilio's own word."`
	ErrorCode       *string           `json:"error_code" example:"30003" doc:"Twilio's error code, or ours in capitals, such as SEND_DEADLINE, AMBIGUOUS_SEND, NO_RECEIPT, NOT_ANSWERED, ANSWERED_BY_MACHINE."`
	ErrorMessage    *string           `json:"error_message" doc:"Why it did not arrive, for people, in Japanese or English by Accept-Language."`
	Segments        *int32            `json:"segments" doc:"SMS: how many segments Twilio counts."`
	DurationSeconds *int32            `json:"duration_seconds" doc:"Calls: how long, in seconds."`
	AnsweredBy      *string           `json:"answered_by" example:"human" doc:"Calls with machine detection: human, machine_start, …"`
	Attempts        int32             `json:"attempts" doc:"How often it was posted to Twilio."`
	CreatedAt       time.Time         `json:"created_at"`
	SendAt          time.Time         `json:"send_at" doc:"It is not sent before."`
	SentAt          *time.Time        `json:"sent_at" doc:"When Twilio accepted it."`
	UpdatedAt       time.Time         `json:"updated_at"`
	WorkflowID      string            `json:"workflow_id" example:"notification/0190b0a0-0000-7000-8000-000000000000"`
	WorkflowURL     *string           `json:"workflow_url" doc:"The workflow in Temporal's Web UI, where one is configured."`
}

type notificationOutput struct {
	ContentLanguage string `header:"Content-Language" doc:"The language of error_message: ja or en."`
	Vary            string `header:"Vary"`
	Body            Notification
}

type notificationInput struct {
	ID             uuid.UUID `path:"id" format:"uuid"`
	AcceptLanguage string    `header:"Accept-Language" doc:"Chooses the language of error_message: ja, or else en." example:"ja"`
}

func (a *API) registerNotifications(to huma.API) {
	a.registerSend(to)

	huma.Register(to, operation("list-notifications", http.MethodGet, "/notifications", "Notifications", ScopeRead,
		"List notifications", "Newest first, a page at a time. What is given must all fit."), a.listNotifications)

	huma.Register(to, operation("get-notification", http.MethodGet, "/notifications/{id}", "Notifications", ScopeRead,
		"Read one notification", "", http.StatusNotFound), a.notification)

	huma.Register(to, operation("list-notification-events", http.MethodGet, "/notifications/{id}/events", "Notifications", ScopeRead,
		"Read a notification's timeline", "What happened to it and what Twilio said of it, oldest first, repeats and contradictions included.",
		http.StatusNotFound), a.events)

	a.registerCancel(to)
	a.registerReschedule(to)
}

func (a *API) notification(ctx context.Context, in *notificationInput) (*notificationOutput, error) {
	n, err := a.find(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	out := a.show(ctx, n, in.AcceptLanguage)
	return &out, nil
}

func (a *API) show(ctx context.Context, n store.Notification, acceptLanguage string) notificationOutput {
	language := notify.MatchLanguage(acceptLanguage)
	return notificationOutput{ContentLanguage: string(language), Vary: "Accept-Language", Body: a.shown(ctx, n, language)}
}

// shown is a notification as the caller may see it.
func (a *API) shown(ctx context.Context, n store.Notification, language notify.Language) Notification {
	workflowID := ownerOf(n.ID, n.WorkflowID)
	shown := Notification{
		ID: n.ID, Channel: n.Channel, Status: n.Status, To: n.To, ToNational: n.ToNational,
		Body: n.Message, TemplateID: n.TemplateID, TemplateVersion: n.TemplateVersion, Params: n.Params, Reference: n.Reference, BatchID: n.BatchID, ScheduleID: n.ScheduleID,
		TwilioSID: n.TwilioSID, TwilioStatus: n.TwilioStatus, ErrorCode: cmp.Or(n.TwilioErrorCode, n.FailureCode),
		ErrorMessage: failureMessage(n, language),
		Segments:     n.Segments, DurationSeconds: n.DurationSeconds, AnsweredBy: n.AnsweredBy, Attempts: n.Attempts,
		CreatedAt: n.CreatedAt, SendAt: n.SendAt, SentAt: n.SentAt, UpdatedAt: n.UpdatedAt,
		WorkflowID: workflowID, WorkflowURL: known(a.Starter.WorkflowURL(workflowID)),
	}
	if !seesNumbers(ctx) {
		shown.To, shown.ToNational = notify.Mask(n.To), notify.Mask(n.ToNational)
	}
	return shown
}

// ownerOf is the workflow that carries a notification, or will.
func ownerOf(id uuid.UUID, workflowID *string) string {
	if workflowID != nil {
		return *workflowID
	}
	return notify.NotificationWorkflowID(id)
}

// failureMessage says why a notification did not arrive, or nothing while it still may.
func failureMessage(n store.Notification, language notify.Language) *string {
	switch n.Status {
	case notify.Failed, notify.Unknown, notify.Skipped, notify.Canceled:
		code := valueOf(cmp.Or(n.TwilioErrorCode, n.FailureCode))
		return known(notify.FailureMessage(code, n.Channel, valueOf(n.TwilioStatus), language))
	}
	return nil
}

// known is s, or nil when it is empty.
func known(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func valueOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
