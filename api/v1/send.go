package v1

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

type sendRequest struct {
	Channel    string            `json:"channel" enum:"SMS,CALL" example:"SMS" doc:"How it reaches the recipient."`
	To         string            `json:"to" example:"090-1234-5678" doc:"A phone number as people write it: national for DEFAULT_REGION, or with + and the country code."`
	Body       *string           `json:"body,omitempty" example:"ご予約は明日10時です。" doc:"What the recipient reads (SMS, at most 1,600 characters) or hears (CALL: plain text, spoken in its language; at most 4,000 characters with the TwiML around it). Either body or template_id."`
	TemplateID *int64            `json:"template_id,omitempty" doc:"A template of the same channel; its current version is used."`
	Params     map[string]string `json:"params,omitempty" doc:"A value for each placeholder of the template, and no others. A blank one counts as missing."`
	SendAt     *string           `json:"send_at,omitempty" format:"date-time" example:"2026-04-01T10:00:00+09:00" doc:"It is not sent before: RFC 3339 with an offset, up to 35 days ahead. Without it, it is sent at once."`
	Reference  *string           `json:"reference,omitempty" maxLength:"255" doc:"Your own name for the notification."`
}

type acceptedOutput struct {
	Location        string `header:"Location" doc:"Where to read what becomes of the notification."`
	ContentLanguage string `header:"Content-Language" doc:"The language of error_message: ja or en."`
	Vary            string `header:"Vary"`
	Replayed        string `header:"Idempotent-Replayed" doc:"true where this is the first answer to the same request, repeated."`
	Body            rendered
}

// rendered is a Notification in JSON, as it is sent.
type rendered struct{ text jsontext.Value }

// MarshalJSONTo writes it as it is.
func (r rendered) MarshalJSONTo(to *jsontext.Encoder) error { return to.WriteValue(r.text) }

// Schema is that of a Notification.
func (rendered) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[Notification](), true, "")
}

const notificationsPath = "/api/v1/notifications"

func (a *API) registerSend(to huma.API) {
	send := operation("send-notification", http.MethodPost, "/notifications", "Notifications", ScopeSend, "Send an SMS or a call",
		"The answer comes as soon as the notification is in the ledger; from then on it is sent, whatever dies. Read what became of it at the address in Location.",
		http.StatusConflict)
	send.DefaultStatus = http.StatusAccepted
	huma.Register(to, withBody(send), a.send)
}

type sendInput struct {
	IdempotencyKey
	Body           body[sendRequest]
	AcceptLanguage string `header:"Accept-Language" doc:"Chooses the language of error_message: ja, or else en." example:"ja"`
}

func (a *API) send(ctx context.Context, in *sendInput) (*acceptedOutput, error) {
	if len(in.Body.Wrong) > 0 {
		_, err := a.check(ctx, in.Body.Value, in.Body.Wrong)
		return nil, err
	}
	once, err := in.once(ctx, "POST "+notificationsPath, in.Body.Value)
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	draft, err := a.check(ctx, in.Body.Value, nil)
	if err != nil {
		return a.answeredBefore(ctx, once, err)
	}
	language := notify.MatchLanguage(in.AcceptLanguage)
	if draft.Once = once; once != nil {
		once.Answer = func(n store.Notification) (store.Answer, error) { return a.answer(ctx, n, language) }
	}
	direct := a.startsDirectly(draft)
	if direct {
		draft.RelayIn = directStart
	}
	accepted, err := a.accepts.Do(ctx, draft)
	switch {
	case err != nil:
		return nil, a.fail(ctx, err)
	case accepted.Err != nil:
		return nil, a.keyProblem(ctx, accepted.Err)
	case accepted.Replay != nil:
		return replay(*accepted.Replay), nil
	}
	acceptedTotal.WithLabelValues(string(draft.Channel)).Inc()
	if direct {
		a.start(draft.ID, draft.Channel)
	}
	answer, err := a.answer(ctx, accepted.Notification, language)
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	return &acceptedOutput{Location: answer.Location, ContentLanguage: string(language), Vary: "Accept-Language", Body: rendered{answer.Body}}, nil
}

// answer is what is said to an acceptance.
func (a *API) answer(ctx context.Context, n store.Notification, language notify.Language) (store.Answer, error) {
	text, err := json.Marshal(a.shown(ctx, n, language))
	if err != nil {
		return store.Answer{}, fmt.Errorf("write the answer: %w", err)
	}
	return store.Answer{Status: http.StatusAccepted, Location: notificationsPath + "/" + n.ID.String(), Body: text}, nil
}

func replay(first store.Answer) *acceptedOutput {
	return &acceptedOutput{Location: first.Location, Vary: "Accept-Language", Replayed: "true", Body: rendered{first.Body}}
}

// answeredBefore repeats the first answer to a request that would be refused now, for example because
// its send_at has passed. Without one, the answer is the refusal.
func (a *API) answeredBefore(ctx context.Context, once *store.Once, refusal error) (*acceptedOutput, error) {
	var p *problem.Problem
	if once == nil || !errors.As(refusal, &p) || p.Status != http.StatusUnprocessableEntity {
		return nil, refusal
	}
	first, err := a.Store.FirstAnswer(ctx, *once)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, refusal
	case err != nil:
		return nil, a.keyProblem(ctx, err)
	}
	return replay(first), nil
}

// directStart is how long the relay leaves a notification alone whose workflow is started beside its request.
const directStart = time.Second

// startsDirectly reports whether the notification's workflow is started beside its request. What
// comes in a surge, and what waits for its time, is left to the relay in the worker.
func (a *API) startsDirectly(n store.NewNotification) bool {
	now := time.Now()
	surging := a.surge.accepted(now)
	return !surging && (n.SendAt == nil || !n.SendAt.After(now))
}

// start has a workflow started. It marks nothing: the workflow's first claim does, and the relay
// starts what finds too many starts in flight, or fails.
func (a *API) start(id uuid.UUID, channel notify.Channel) {
	a.Starts.Submit(func(ctx context.Context) {
		if err := a.Starter.StartNotification(ctx, id, channel); err != nil {
			a.Logger.WarnContext(ctx, "workflow not started: left to the relay", "notification_id", id, "error", err)
		}
	})
}
