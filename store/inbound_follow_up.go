package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// InboundFollowUp is what is decided to be done about a caller.
type InboundFollowUp struct {
	Action       notify.FollowUpAction
	Reason       string           // why none, or why another one than was wanted; may be empty
	Notification *NewNotification // for an SMS or a call
	CallerHash   []byte           // of the caller's number; see notify.PhoneNumber.Hash
	Limits       FollowUpLimits
}

// FollowUpLimits are how many follow-ups there may be over all callers. 0 means as many as are wanted.
type FollowUpLimits struct {
	PerHour             int
	TurnedAwayPerHour   int // to callers whom the limits on calls turned away
	TurnedAwayPerSecond int
}

// FollowUpDecision says what came of the wish to come back to a caller.
type FollowUpDecision struct {
	Decided bool                  // false: the call has changed, it was decided before, or it is to be decided later
	Action  notify.FollowUpAction // none where a limit did not allow the one that was wanted
	Later   bool                  // the caller is calling again just now: how that ends is waited for
}

// followUpDay is the time in which somebody gets one follow-up: 24 hours and not a day of the calendar, which would
// allow one just before midnight and one just after.
const followUpDay = "24 hours"

// DecideInboundFollowUp decides what is done about a caller, once: a notification is accepted in the
// same transaction, so it is sent exactly as often as any other. It decides nothing
// when that was decided before or when the call has changed since version.
//
// One person gets one follow-up a day, over all calls and kinds, and none once somebody has spoken with them. These
// limits and those for the hour hold exactly: whoever decides for a caller waits for the others.
func (s *Store) DecideInboundFollowUp(ctx context.Context, id uuid.UUID, version int, f InboundFollowUp) (decision FollowUpDecision, err error) {
	err = s.pool.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		f := f // it is decided anew where the transaction is run again
		decision = FollowUpDecision{}
		if f.Action != notify.FollowUpNone {
			why, err := followUpLimit(ctx, tx, id, f)
			switch {
			case err != nil:
				return err
			case why == notify.FollowUpCallsAgain:
				decision.Later = true
				return nil
			case why != "":
				f.Action, f.Reason, f.Notification = notify.FollowUpNone, why, nil
			}
		}
		var notification *uuid.UUID
		if f.Notification != nil {
			notification = &f.Notification.ID
		}
		tag, err := tx.Exec(ctx, `
			UPDATE inbound_calls SET
				follow_up = $3, follow_up_reason = nullif($4, ''), notification_id = $5, follow_up_at = clock_timestamp(),
				from_hash = coalesce(from_hash, $6),
				followed_up_at = CASE WHEN $5::uuid IS NOT NULL THEN clock_timestamp() END,
				closed_at = CASE WHEN $3 <> 'task' THEN clock_timestamp() END, updated_at = clock_timestamp()
			WHERE id = $1 AND version = $2 AND follow_up IS NULL`, id, version, f.Action, f.Reason, notification, f.CallerHash)
		decision.Action = f.Action
		if decision.Decided = err == nil && tag.RowsAffected() == 1; !decision.Decided || f.Notification == nil {
			return err
		}
		return insert(ctx, tx, []NewNotification{*f.Notification}, make([]Acceptance, 1))
	})
	if err != nil {
		return FollowUpDecision{}, fmt.Errorf("decide what is done about a caller: %w", err)
	}
	return decision, nil
}

// followUpLimit says which limit forbids to come back to a caller; empty: none does.
func followUpLimit(ctx context.Context, tx pgx.Tx, id uuid.UUID, f InboundFollowUp) (why string, err error) {
	// A statement of its own: what comes after it sees what those have committed who held the lock.
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('inbound follow-ups', 0))`); err != nil {
		return "", err
	}
	limited := []string{notify.TurnedAwayBusy, notify.TurnedAwayRush, notify.TurnedAwayFull}
	err = tx.QueryRow(ctx, `
		WITH this AS (
			SELECT id, created_at, exit_reason FROM inbound_calls WHERE id = $1
		), same AS (
			SELECT c.answered_at, c.follow_up, c.follow_up_at, c.state, c.created_at
			FROM inbound_calls c, this
			WHERE c.from_hash = $2 AND c.id <> this.id AND c.created_at > this.created_at - 2 * interval '`+followUpDay+`'
		), lately AS (
			SELECT count(*) AS calls, count(*) FILTER (WHERE exit_reason = ANY ($6)) AS turned_away,
				count(*) FILTER (WHERE exit_reason = ANY ($6) AND follow_up_at > clock_timestamp() - interval '1 second') AS just_now
			FROM inbound_calls
			WHERE follow_up IN ('sms', 'call', 'task') AND follow_up_at > clock_timestamp() - interval '1 hour'
		)
		SELECT CASE
			WHEN EXISTS (SELECT FROM same WHERE answered_at > this.created_at - interval '`+followUpDay+`') THEN $7
			WHEN EXISTS (SELECT FROM same WHERE follow_up <> 'none' AND follow_up_at > clock_timestamp() - interval '`+followUpDay+`') THEN $8
			WHEN EXISTS (SELECT FROM same WHERE state IN ('RECEIVED', 'WAITING', 'RESERVED') AND created_at > this.created_at) THEN $9
			WHEN $3 > 0 AND lately.calls >= $3 THEN $10
			WHEN this.exit_reason = ANY ($6) AND ($4 > 0 AND lately.turned_away >= $4 OR $5 > 0 AND lately.just_now >= $5) THEN $10
			ELSE '' END
		FROM this, lately`, id, f.CallerHash, f.Limits.PerHour, f.Limits.TurnedAwayPerHour, f.Limits.TurnedAwayPerSecond, limited,
		notify.FollowUpSpoken, notify.FollowUpAlready, notify.FollowUpCallsAgain, notify.FollowUpBudget).Scan(&why)
	if err != nil {
		return "", fmt.Errorf("look at the limits: %w", err)
	}
	return why, nil
}

// WithdrawFollowUps withdraws what was to be done about earlier calls of somebody who speaks with an operator now: what
// was not sent, and tasks that no operator has yet. It returns the workflows of notifications that it canceled.
func (s *Store) WithdrawFollowUps(ctx context.Context, answered uuid.UUID) (owners []string, err error) {
	type pending struct {
		ID           uuid.UUID
		Notification *uuid.UUID
	}
	calls, err := many(ctx, s, pgx.RowToStructByPos[pending], `
		SELECT c.id, c.notification_id
		FROM inbound_calls a
		JOIN inbound_calls c ON c.from_hash = a.from_hash AND c.id <> a.id
		WHERE a.id = $1 AND a.answered_at IS NOT NULL AND c.follow_up IN ('sms', 'call', 'task')
			AND c.follow_up_at > clock_timestamp() - interval '`+followUpDay+`'
			AND c.created_at > clock_timestamp() - 2 * interval '`+followUpDay+`'`, answered)
	if err != nil {
		return nil, fmt.Errorf("look for follow-ups of a caller: %w", err)
	}
	for _, c := range calls {
		if c.Notification != nil {
			canceled, err := s.Cancel(ctx, *c.Notification)
			if err != nil {
				return owners, err
			}
			if canceled.Just && canceled.WorkflowID != nil {
				owners = append(owners, *canceled.WorkflowID)
			}
			if canceled.Status != notify.Canceled {
				continue // it was sent, or is being sent
			}
		}
		if err := s.withdraw(ctx, c.ID); err != nil {
			return owners, fmt.Errorf("withdraw a follow-up: %w", err)
		}
	}
	return owners, nil
}

// withdraw withdraws one follow-up: it never happens, or its task is to be canceled at TaskRouter.
func (s *Store) withdraw(ctx context.Context, call uuid.UUID) error {
	return s.pool.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var action *string
		if err := tx.QueryRow(ctx, `SELECT follow_up FROM inbound_calls WHERE id = $1 FOR UPDATE`, call).Scan(&action); err != nil {
			return err
		}
		if action != nil && *action == string(notify.FollowUpTask) {
			if posted, err := withdrawPostedTask(ctx, tx, call); err != nil || posted {
				return err
			}
		}
		_, err := tx.Exec(ctx, `
			UPDATE inbound_calls SET follow_up = 'none', follow_up_reason = $2, followed_up_at = NULL,
				closed_at = coalesce(closed_at, clock_timestamp()), updated_at = clock_timestamp()
			WHERE id = $1 AND follow_up IS NOT NULL`, call, notify.FollowUpSpoken)
		return err
	})
}

// SpokenSince reports whether somebody has spoken with the caller since that call: in another one.
func (s *Store) SpokenSince(ctx context.Context, id uuid.UUID) (bool, error) {
	spoken, err := one(ctx, s, pgx.RowTo[bool], `
		SELECT EXISTS (
			SELECT FROM inbound_calls a, inbound_calls c
			WHERE c.id = $1 AND a.from_hash = c.from_hash AND a.id <> c.id AND a.answered_at > coalesce(c.exit_at, c.created_at)
		)`, id)
	if err != nil {
		return false, fmt.Errorf("look whether a caller was spoken with: %w", err)
	}
	return spoken, nil
}
