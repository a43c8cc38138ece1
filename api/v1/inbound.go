package v1

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// InboundCall is a call that came in, as the API shows it.
type InboundCall struct {
	ID             uuid.UUID           `json:"id" format:"uuid"`
	State          notify.InboundState `json:"state" enum:"RECEIVED,WAITING,RESERVED,ANSWERED,FINISHED,CALLBACK_REQUESTED,TIMED_OUT,TURNED_AWAY,ABANDONED,MISSED" doc:"RECEIVED: hears the greeting. WAITING: in the queue. RESERVED: an operator's phone rings. ANSWERED: speaks with an operator. The others are final: FINISHED spoke with an operator, ABANDONED hung up before, MISSED came in while Todoku could not be reached."`
	From           *string             `json:"from" example:"*********5678" doc:"The caller's number, or what the caller showed; masked unless the key has the scope pii."`
	To             *string             `json:"to" example:"+81501234567" doc:"The number that was called."`
	OperatorSID    *string             `json:"operator_sid" example:"WK00000000000000000000000000000001" doc:"The TaskRouter worker who answered, or whose phone rings."`
	OperatorName   *string             `json:"operator_name"`
	Reason         *string             `json:"reason" example:"too_many_calls" doc:"Why it was turned away (closed, queue_full, too_many_calls, too_fast, not_set_up, queue_error), or Twilio's reason for the end."`
	ReceivedAt     *time.Time          `json:"received_at"`
	WaitingAt      *time.Time          `json:"waiting_at" doc:"When it entered the queue."`
	ReservedAt     *time.Time          `json:"reserved_at" doc:"When an operator's phone rang for the first time."`
	AnsweredAt     *time.Time          `json:"answered_at"`
	EndedAt        *time.Time          `json:"ended_at"`
	WaitSeconds    *float64            `json:"wait_seconds" doc:"From the queue to an operator, or to the end; null while it waits."`
	TalkSeconds    *float64            `json:"talk_seconds" doc:"From an operator to the end; null without either."`
	FollowUp       *string             `json:"follow_up" example:"sms" doc:"What is done about a caller who spoke with nobody: none, sms, call or task; null until that is decided."`
	FollowUpReason *string             `json:"follow_up_reason" example:"the caller showed no number that can be called" doc:"Why nothing is done, or something else than was wanted. already_spoken: an operator has spoken with the caller in another call. already_followed_up: the caller got a follow-up within the last 24 hours. hourly_budget: as many callers got one within the hour as may. too_late: a missed call was found more than 24 hours after its end. Others are a sentence, or why the number may not be reached."`
	NotificationID *string             `json:"notification_id" format:"uuid" doc:"The SMS or call that is sent to the caller."`
	TaskSID        *string             `json:"follow_up_task_sid" doc:"The TaskRouter task of calling back."`
	FollowedUpAt   *time.Time          `json:"followed_up_at"`
	CreatedAt      time.Time           `json:"created_at" doc:"When it was first heard of: of a missed call, when it was found."`
	UpdatedAt      time.Time           `json:"updated_at"`
	CallSID        string              `json:"call_sid" example:"CA00000000000000000000000000000001"`
	QueueTaskSID   *string             `json:"task_sid" example:"WT00000000000000000000000000000001" doc:"Its TaskRouter task."`
	WorkflowID     string              `json:"workflow_id" example:"inbound/0190b0a0-0000-7000-8000-000000000000"`
	WorkflowURL    *string             `json:"workflow_url" doc:"The workflow in Temporal's Web UI, where one is configured."`
}

// InboundCallPage is a part of the list of calls that came in.
type InboundCallPage struct {
	Items      []InboundCall `json:"items" nullable:"false"`
	NextCursor *string       `json:"next_cursor" doc:"Give it as cursor to read on; null on the last page."`
}

// InboundEvent is one entry of a call's timeline.
type InboundEvent struct {
	At           time.Time          `json:"at" doc:"When it happened, by Twilio's clock where it tells."`
	RecordedAt   time.Time          `json:"recorded_at" doc:"When we were told."`
	Kind         string             `json:"kind" example:"reservation.accepted" doc:"In Twilio's words; poll and a status: found when Twilio was asked."`
	Meaning      notify.InboundWord `json:"meaning" example:"answered" doc:"received, waiting, holding, ringing, reserved, released, answered, wrap_up, finished, hung_up, missed, turned_away, timed_out, callback_requested, callback_task or noted. wrap_up: an operator has ended, and another one may still talk. missed: found in Twilio's list, and nobody of us was asked what to do with it."`
	Source       notify.Source      `json:"source" enum:"webhook,poll" doc:"How we learnt it: Twilio told it, or we asked."`
	OperatorSID  *string            `json:"operator_sid"`
	OperatorName *string            `json:"operator_name"`
	Reservation  *string            `json:"reservation_sid"`
	Reason       *string            `json:"reason"`
}

func (a *API) registerInbound(to huma.API) {
	huma.Register(to, operation("list-inbound-calls", http.MethodGet, "/inbound/calls", "Inbound calls", ScopeRead,
		"List the calls that came in", "Newest first, a page at a time. What is given must all fit."), a.listInboundCalls)

	huma.Register(to, operation("get-inbound-call", http.MethodGet, "/inbound/calls/{id}", "Inbound calls", ScopeRead,
		"Read one call that came in", "", http.StatusNotFound), a.inboundCall)

	huma.Register(to, operation("list-inbound-call-events", http.MethodGet, "/inbound/calls/{id}/events", "Inbound calls", ScopeRead,
		"Read a call's timeline", "What Twilio told of it, in the order in which it happened. An event that was told more than once is there once.",
		http.StatusNotFound), a.inboundCallEvents)

	huma.Register(to, operation("get-inbound-statistics", http.MethodGet, "/inbound/statistics", "Inbound calls", ScopeRead,
		"Read how the queue and the operators are doing", "What is happening now, and what became of the calls that came in lately."), a.inboundStatistics)
}

type inboundListInput struct {
	Cursor      string `query:"cursor" doc:"next_cursor of the page before."`
	Limit       int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
	State       string `query:"state" example:"ABANDONED" doc:"Only those in this state."`
	Phone       string `query:"phone" example:"090-1234-5678" doc:"Only from this caller: the whole number, in any form that can be called; a + is written %2B in a query."`
	CreatedFrom string `query:"created_from" example:"2026-04-01T00:00:00+09:00" doc:"First heard of then or later: RFC 3339 with an offset."`
	CreatedTo   string `query:"created_to" example:"2026-04-02T00:00:00+09:00" doc:"First heard of before then."`
}

func (a *API) listInboundCalls(ctx context.Context, in *inboundListInput) (*struct{ Body InboundCallPage }, error) {
	filter, after, err := in.read(a.Settings.DefaultRegion, []byte(a.Settings.PhoneHashKey))
	if err != nil {
		return nil, err
	}
	found, err := a.Store.InboundCalls(ctx, filter, after, in.Limit+1) // one more tells whether there is a next page
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	var page InboundCallPage
	found, page.NextCursor = cutPage(found, in.Limit, func(last store.InboundCall) string { return cursorAfter(last.Place()) })
	page.Items = mapped(found, func(c store.InboundCall) InboundCall { return a.showInbound(ctx, c) })
	return &struct{ Body InboundCallPage }{page}, nil
}

// read names every parameter that it cannot read.
func (in *inboundListInput) read(region string, hashKey []byte) (filter store.InboundFilter, after *store.Place, err error) {
	var wrong []string
	if in.Cursor != "" {
		if after, err = parseCursor(in.Cursor); err != nil {
			wrong = append(wrong, "cursor: it is not one that this address gave: start without it")
		}
	}
	if filter.State = notify.InboundState(in.State); in.State != "" && !slices.Contains(notify.InboundStates, filter.State) {
		wrong = append(wrong, "state: there is no such state: use "+joined(notify.InboundStates))
	}
	if in.Phone != "" {
		number, err := notify.ParsePhoneNumber(in.Phone, region)
		if err != nil {
			wrong = append(wrong, "phone: "+err.Error())
		}
		filter.FromHash = number.Hash(hashKey)
	}
	for _, moment := range []struct {
		name, typed string
		at          *time.Time
	}{{"created_from", in.CreatedFrom, &filter.CreatedFrom}, {"created_to", in.CreatedTo, &filter.CreatedTo}} {
		if moment.typed == "" {
			continue
		}
		if *moment.at, err = time.Parse(time.RFC3339, moment.typed); err != nil {
			wrong = append(wrong, moment.name+": it is no time in RFC 3339 with an offset: write it as in 2026-04-01T10:00:00+09:00, with + as %2B")
		}
	}
	if len(wrong) > 0 {
		return filter, after, problem.New(problem.ParameterInvalid, strings.Join(wrong, "; "))
	}
	return filter, after, nil
}

type inboundCallInput struct {
	ID uuid.UUID `path:"id" format:"uuid"`
}

func (a *API) inboundCall(ctx context.Context, in *inboundCallInput) (*struct{ Body InboundCall }, error) {
	c, err := a.findInbound(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return &struct{ Body InboundCall }{a.showInbound(ctx, c)}, nil
}

func (a *API) inboundCallEvents(ctx context.Context, in *inboundCallInput) (*struct{ Body list[InboundEvent] }, error) {
	if _, err := a.findInbound(ctx, in.ID); err != nil {
		return nil, err
	}
	timeline, err := a.Store.InboundCallEvents(ctx, in.ID)
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	return &struct{ Body list[InboundEvent] }{list[InboundEvent]{mapped(timeline, showInboundEvent)}}, nil
}

func (a *API) findInbound(ctx context.Context, id uuid.UUID) (store.InboundCall, error) {
	c, err := a.Store.InboundCall(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return c, problem.New(problem.InboundCallNotFound, "there is no call with the id in the path: see GET /api/v1/inbound/calls")
	case err != nil:
		return c, a.fail(ctx, err)
	}
	return c, nil
}

func (a *API) showInbound(ctx context.Context, c store.InboundCall) InboundCall {
	workflowID := notify.InboundWorkflowID(c.ID)
	if c.WorkflowID != nil {
		workflowID = *c.WorkflowID
	}
	shown := InboundCall{
		ID: c.ID, State: c.State, From: c.From, To: c.To, OperatorSID: c.Operator, OperatorName: c.OperatorName, Reason: c.Reason,
		ReceivedAt: c.ReceivedAt, WaitingAt: c.WaitingAt, ReservedAt: c.ReservedAt, AnsweredAt: c.AnsweredAt, EndedAt: c.EndedAt,
		WaitSeconds: between(cmp.Or(c.WaitingAt, c.ReceivedAt), cmp.Or(c.AnsweredAt, c.EndedAt)), TalkSeconds: between(c.AnsweredAt, c.EndedAt),
		FollowUp: c.FollowUp, FollowUpReason: c.FollowUpReason, NotificationID: idOf(c.NotificationID), TaskSID: c.FollowUpTaskSID, FollowedUpAt: c.FollowedUpAt,
		CreatedAt: c.CreatedAt, UpdatedAt: c.UpdatedAt, CallSID: c.CallSID, QueueTaskSID: c.TaskSID,
		WorkflowID: workflowID, WorkflowURL: known(a.Starter.WorkflowURL(workflowID)),
	}
	if c.From != nil && !seesNumbers(ctx) {
		shown.From = new(notify.MaskCaller(*c.From))
	}
	return shown
}

func idOf(id *uuid.UUID) *string {
	if id == nil {
		return nil
	}
	return new(id.String())
}

// between is how many seconds lie between two moments, where both are known.
func between(from, until *time.Time) *float64 {
	if from == nil || until == nil {
		return nil
	}
	return new(max(0, until.Sub(*from).Round(time.Millisecond).Seconds()))
}

func showInboundEvent(e store.InboundCallEvent) InboundEvent {
	return InboundEvent{
		At: e.At, RecordedAt: e.RecordedAt, Kind: e.Kind, Meaning: e.Word, Source: e.Source,
		OperatorSID: e.Operator, OperatorName: e.OperatorName, Reservation: e.Reservation, Reason: e.Reason,
	}
}
