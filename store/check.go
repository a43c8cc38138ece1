package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// Unsettled is a PENDING notification that the carrier is to be asked for.
type Unsettled struct {
	ID        uuid.UUID
	Channel   notify.Channel
	TwilioSID *string
	SinceSent time.Duration // by the database's clock
}

// Unsettled lists the owner's PENDING rows whose time to be asked for has come, the longest
// overdue first. delay is how long after sending that is for the first time.
func (s *Store) Unsettled(ctx context.Context, owner Owner, delay time.Duration, limit int) ([]Unsettled, error) {
	rows, err := many(ctx, s, pgx.RowToStructByPos[Unsettled], `
		SELECT id, channel::text, twilio_sid, clock_timestamp() - sent_at
		FROM notifications
		WHERE workflow_id = $1 AND status = 'PENDING'
			AND coalesce(check_at, sent_at + $2::interval) <= clock_timestamp()
		ORDER BY coalesce(check_at, sent_at + $2::interval), id
		LIMIT $3`, owner.WorkflowID, delay, limit)
	if err != nil {
		return nil, fmt.Errorf("list unsettled notifications: %w", err)
	}
	return rows, nil
}

// CheckAgain sets when a notification that is still PENDING is asked for next.
func (s *Store) CheckAgain(ctx context.Context, id uuid.UUID, in time.Duration) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE notifications SET check_at = clock_timestamp() + $2::interval
		WHERE id = $1 AND status = 'PENDING'`, id, in)
	if err != nil {
		return fmt.Errorf("set the next status check: %w", err)
	}
	return nil
}
