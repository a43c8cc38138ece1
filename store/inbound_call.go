package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// InboundCall is one call that came in.
type InboundCall struct {
	ID              uuid.UUID
	CallSID         string
	TaskSID         *string
	State           notify.InboundState
	From            *string // as Twilio has it: E.164, or what the caller showed
	To              *string
	Operator        *string // the SID of the one who answered, or whose phone rings
	OperatorName    *string
	Reason          *string // of its end, where it has one
	CreatedAt       time.Time
	ReceivedAt      *time.Time
	WaitingAt       *time.Time
	ReservedAt      *time.Time
	AnsweredAt      *time.Time
	EndedAt         *time.Time
	FollowUp        *string // what is done about the caller; nil: not decided
	FollowUpReason  *string // why none, where one was wanted
	NotificationID  *uuid.UUID
	FollowUpTaskSID *string
	FollowedUpAt    *time.Time
	ClosedAt        *time.Time // nothing is left to be done
	WorkflowID      *string
	UpdatedAt       time.Time
	Version         int
}

const inboundCallColumns = `c.id, c.call_sid, c.task_sid, c.state::text, c.from_number, c.to_number,
	CASE WHEN c.answered_at IS NOT NULL THEN c.answered_by WHEN c.state = 'RESERVED' THEN c.phase_operator END,
	CASE WHEN c.answered_at IS NOT NULL THEN c.answered_by_name WHEN c.state = 'RESERVED' THEN c.phase_operator_name END,
	c.exit_reason, c.created_at, c.received_at, c.waiting_at, c.reserved_at, c.answered_at, CASE WHEN c.exit IS NOT NULL THEN least(c.talked_until, c.exit_at) END,
	c.follow_up, c.follow_up_reason, c.notification_id, c.follow_up_task_sid, c.followed_up_at, c.closed_at,
	c.workflow_id, c.updated_at, c.version`

// InboundCall reads one call. The error is ErrNotFound when there is none.
func (s *Store) InboundCall(ctx context.Context, id uuid.UUID) (InboundCall, error) {
	c, err := one(ctx, s, pgx.RowToStructByPos[InboundCall], `SELECT `+inboundCallColumns+` FROM inbound_calls c WHERE c.id = $1`, id)
	if err != nil && !errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("read call: %w", err)
	}
	return c, err
}

// Place is where the call stands in the list.
func (c InboundCall) Place() Place { return Place{c.CreatedAt, c.ID} }

// InboundFilter chooses calls. Its zero value chooses all; what is set must all fit.
type InboundFilter struct {
	State                  notify.InboundState
	FromHash               []byte    // of the caller's number; see notify.PhoneNumber.Hash
	CreatedFrom, CreatedTo time.Time // the first inclusive, the second not
}

// InboundCalls lists what the filter chooses, newest first, after the place given (nil: from the
// start); at most limit.
func (s *Store) InboundCalls(ctx context.Context, filter InboundFilter, after *Place, limit int) ([]InboundCall, error) {
	args := []any{limit}
	conditions := []string{"true"}
	where := func(condition string, values ...any) {
		for _, value := range values {
			args = append(args, value)
			condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(args)), 1)
		}
		conditions = append(conditions, condition)
	}
	if filter.State != "" {
		where("c.state = ?::inbound_state", filter.State)
	}
	if filter.FromHash != nil {
		where("c.from_hash = ?", filter.FromHash)
	}
	if !filter.CreatedFrom.IsZero() {
		where("c.created_at >= ?", filter.CreatedFrom)
	}
	if !filter.CreatedTo.IsZero() {
		where("c.created_at < ?", filter.CreatedTo)
	}
	if after != nil {
		where("(c.created_at, c.id) < (?, ?)", after.CreatedAt, after.ID)
	}
	calls, err := many(ctx, s, pgx.RowToStructByPos[InboundCall], `
		SELECT `+inboundCallColumns+`
		FROM inbound_calls c
		WHERE `+strings.Join(conditions, " AND ")+`
		ORDER BY c.created_at DESC, c.id DESC
		LIMIT $1`, args...)
	if err != nil {
		return nil, fmt.Errorf("list calls: %w", err)
	}
	return calls, nil
}

// InboundCallEvent is one entry of a call's timeline.
type InboundCallEvent struct {
	At           time.Time // when it happened
	RecordedAt   time.Time
	Kind         string // in Twilio's words
	Word         notify.InboundWord
	Source       notify.Source
	Operator     *string
	OperatorName *string
	Reservation  *string
	Reason       *string
}

// InboundCallEvents returns the timeline of a call, or of a task without a call, in the order in which
// it happened; at most 1,000 entries.
func (s *Store) InboundCallEvents(ctx context.Context, id uuid.UUID) ([]InboundCallEvent, error) {
	events, err := many(ctx, s, pgx.RowToStructByPos[InboundCallEvent], `
		SELECT at, recorded_at, kind, word, source, operator, operator_name, reservation, reason
		FROM inbound_call_events
		WHERE call_id = $1
		ORDER BY at, id
		LIMIT 1000`, id)
	if err != nil {
		return nil, fmt.Errorf("read a call's timeline: %w", err)
	}
	return events, nil
}

// InboundPlace is what a caller in the queue is told.
type InboundPlace struct {
	Open     bool          // the call is not over
	Unheard  bool          // nobody has told yet that it is in the queue
	Place    int           // 1: the next one
	Estimate time.Duration // of the wait; 0: nobody can tell yet
}

// InboundPlace tells how many wait before a call, and how long that takes at the pace at which calls
// were answered in the last ten minutes. The error is ErrNotFound when there is no such call.
func (s *Store) InboundPlace(ctx context.Context, id uuid.UUID) (InboundPlace, error) {
	place, err := one(ctx, s, pgx.RowToStructByPos[InboundPlace], `
		WITH me AS (
			SELECT id, exit IS NULL AS open, state = 'RECEIVED' AS unheard, coalesce(waiting_at, received_at, created_at) AS since FROM inbound_calls WHERE id = $1
		), before AS (
			SELECT count(*) AS calls
			FROM inbound_calls c, me
			WHERE c.state IN ('RECEIVED', 'WAITING', 'RESERVED', 'ANSWERED') AND c.state <> 'ANSWERED'
				AND (coalesce(c.waiting_at, c.received_at, c.created_at), c.id) < (me.since, me.id)
		), lately AS (
			SELECT count(*) AS answers, clock_timestamp() - min(answered_at) AS span
			FROM inbound_calls
			WHERE answered_at > clock_timestamp() - interval '10 minutes'
		)
		SELECT me.open, me.unheard, before.calls + 1,
			CASE WHEN lately.answers >= 2 THEN span / lately.answers * (before.calls + 1) ELSE '0' END
		FROM me, before, lately`, id)
	if err != nil && !errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("read a call's place in the queue: %w", err)
	}
	return place, err
}
