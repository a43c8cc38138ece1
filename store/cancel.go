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
	Queued     bool          // PENDING, a call in the carrier's queue: its owner, once woken, asks the carrier to cancel it
}

// Cancel cancels a notification that was not sent. An ACCEPTED row is CANCELED by the commit of this
// statement, and no claim takes it then. A row that a claim holds keeps the wish: where its claim is
// given back, the row becomes CANCELED in the place of ACCEPTED. So does a call that waits in the carrier's queue:
// it is due to be asked for, and where the carrier can cancel it, it becomes CANCELED. Asking again changes nothing, so
// whoever waits for the end of a claim asks until the status is another. The error is ErrNotFound
// when there is no such row.
func (s *Store) Cancel(ctx context.Context, id uuid.UUID) (Cancellation, error) {
	c, err := one(ctx, s, pgx.RowToStructByPos[Cancellation], `
		WITH row AS MATERIALIZED (
			SELECT id, status, workflow_id, claim_deadline, cancel_requested_at,
				status = 'PENDING' AND channel = 'CALL' AND queued AND twilio_sid IS NOT NULL AS queued
			FROM notifications
			WHERE id = $1
			FOR UPDATE
		), moved AS (
			UPDATE notifications n SET
				status = CASE row.status WHEN 'ACCEPTED' THEN 'CANCELED' ELSE row.status END,
				settled_at = CASE row.status WHEN 'ACCEPTED' THEN clock_timestamp() END,
				cancel_requested_at = coalesce(row.cancel_requested_at, clock_timestamp()), updated_at = clock_timestamp(),
				check_at = CASE WHEN row.queued THEN clock_timestamp() ELSE n.check_at END
			FROM row
			WHERE n.id = row.id AND (row.status = 'ACCEPTED' OR row.status = 'SENDING' AND row.cancel_requested_at IS NULL OR row.queued)
			RETURNING n.id, n.status
		), event AS (
			INSERT INTO notification_events (notification_id, kind, status)
			SELECT moved.id, CASE moved.status WHEN 'CANCELED' THEN $2 ELSE $3 END, moved.status
			FROM moved
			JOIN row USING (id)
			WHERE row.cancel_requested_at IS NULL OR moved.status = 'CANCELED'
		)
		SELECT coalesce(moved.status, row.status)::text, row.workflow_id,
			coalesce(moved.status = 'CANCELED', false),
			row.status = 'SENDING' AND row.claim_deadline <= clock_timestamp(), row.queued
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

// CancelQueuedCalls asks for calls of canceled batches to be canceled that wait in the carrier's queue, and returns the
// workflows that carry them: once woken, each asks the carrier. No call is asked for twice.
func (s *Store) CancelQueuedCalls(ctx context.Context) (owners []string, err error) {
	owners, err = many(ctx, s, pgx.RowTo[string], `
		WITH row AS MATERIALIZED (
			SELECT n.id
			FROM batches b
			JOIN notifications n ON n.batch_id = b.id
			WHERE b.canceled_at IS NOT NULL AND b.finished_at IS NULL AND b.channel = 'CALL'
				AND n.channel = 'CALL' AND n.status = 'PENDING' AND n.queued AND n.cancel_requested_at IS NULL
				AND n.twilio_sid IS NOT NULL
			ORDER BY n.id
			LIMIT $1
			FOR UPDATE OF n SKIP LOCKED
		), asked AS (
			UPDATE notifications n SET cancel_requested_at = clock_timestamp(), check_at = clock_timestamp(), updated_at = clock_timestamp()
			FROM row
			WHERE n.id = row.id
			RETURNING n.id, n.status, n.workflow_id
		), event AS (
			INSERT INTO notification_events (notification_id, kind, status)
			SELECT id, $2, status FROM asked
		)
		SELECT DISTINCT workflow_id FROM asked WHERE workflow_id IS NOT NULL`, cancelChunk, EventCancelAsked)
	if err != nil {
		return nil, fmt.Errorf("ask for queued calls of a batch to be canceled: %w", err)
	}
	return owners, nil
}
