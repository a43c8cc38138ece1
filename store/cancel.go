package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// Cancellation says how far a wish to cancel has come.
type Cancellation struct {
	Status     notify.Status // of the row, as stored
	WorkflowID *string       // its owner
	Just       bool          // this call has canceled it
	RanOut     bool          // SENDING, and the claim has run out: nobody can tell whether it was sent
}

// Cancel cancels a notification that was not sent. An ACCEPTED row is CANCELED by the commit of this
// statement, and no claim takes it then. A row that a claim holds keeps the wish: where its claim is
// given back, the row becomes CANCELED in the place of ACCEPTED. Asking again changes nothing, so
// whoever waits for the end of a claim asks until the status is another. The error is ErrNotFound
// when there is no such row.
func (s *Store) Cancel(ctx context.Context, id uuid.UUID) (Cancellation, error) {
	c, err := one(ctx, s, pgx.RowToStructByPos[Cancellation], `
		WITH row AS MATERIALIZED (
			SELECT id, status, workflow_id, claim_deadline, cancel_requested_at
			FROM notifications
			WHERE id = $1
			FOR UPDATE
		), moved AS (
			UPDATE notifications n SET
				status = CASE row.status WHEN 'ACCEPTED' THEN 'CANCELED' ELSE row.status END,
				settled_at = CASE row.status WHEN 'ACCEPTED' THEN clock_timestamp() END,
				cancel_requested_at = coalesce(row.cancel_requested_at, clock_timestamp()), updated_at = clock_timestamp()
			FROM row
			WHERE n.id = row.id AND (row.status = 'ACCEPTED' OR row.status = 'SENDING' AND row.cancel_requested_at IS NULL)
			RETURNING n.id, n.status
		), event AS (
			INSERT INTO notification_events (notification_id, kind, status)
			SELECT id, CASE status WHEN 'CANCELED' THEN $2 ELSE $3 END, status FROM moved
		)
		SELECT coalesce(moved.status, row.status)::text, row.workflow_id,
			coalesce(moved.status = 'CANCELED', false),
			row.status = 'SENDING' AND row.claim_deadline <= clock_timestamp()
		FROM row
		LEFT JOIN moved USING (id)`, id, EventCanceled, EventCancelAsked)
	if err != nil && !errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("cancel notification: %w", err)
	}
	return c, err
}

// Rescheduled is a row before and after its send_at was moved.
type Rescheduled struct {
	Moved      bool          // false: it was claimed before, or is final
	Status     notify.Status // as stored
	Earlier    bool          // it is due earlier than before
	Due        bool          // it is due now
	WorkflowID *string       // its owner
}

// Reschedule sets the moment before which a notification is not sent, as long as no claim has ever
// taken it. The error is ErrNotFound when there is no such row.
func (s *Store) Reschedule(ctx context.Context, id uuid.UUID, sendAt time.Time) (Rescheduled, error) {
	r, err := one(ctx, s, pgx.RowToStructByPos[Rescheduled], `
		WITH row AS MATERIALIZED (
			SELECT id, status, send_at, first_claimed_at, workflow_id
			FROM notifications
			WHERE id = $1
			FOR UPDATE
		), moved AS (
			UPDATE notifications n SET
				send_at = greatest($2, clock_timestamp()), relay_at = greatest($2, clock_timestamp()), updated_at = clock_timestamp()
			FROM row
			WHERE n.id = row.id AND row.status = 'ACCEPTED' AND row.first_claimed_at IS NULL
			RETURNING n.id, n.send_at, n.status
		), event AS (
			INSERT INTO notification_events (notification_id, kind, status, detail)
			SELECT id, $3, status, to_char(send_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') FROM moved
		)
		SELECT moved.id IS NOT NULL, row.status::text, coalesce(moved.send_at < row.send_at, false),
			coalesce(moved.send_at <= clock_timestamp(), false), row.workflow_id
		FROM row
		LEFT JOIN moved USING (id)`, id, sendAt, EventRescheduled)
	if err != nil && !errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("reschedule notification: %w", err)
	}
	return r, err
}
