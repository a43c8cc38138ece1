package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// Unstarted is an accepted notification that Temporal has acknowledged no workflow for.
type Unstarted struct {
	ID        uuid.UUID
	Channel   notify.Channel
	Reference *string
}

// Unstarted lists due notifications without a workflow, the most overdue first, leaving out those
// younger than age: whoever accepted them is still about to start them.
func (s *Store) Unstarted(ctx context.Context, age time.Duration, limit int) ([]Unstarted, error) {
	rows, err := many(ctx, s, pgx.RowToStructByPos[Unstarted], `
		SELECT id, channel::text, reference
		FROM notifications
		WHERE started_at IS NULL AND status = 'ACCEPTED' AND send_at <= clock_timestamp() - $1::interval
		ORDER BY send_at
		LIMIT $2`, age, limit)
	if err != nil {
		return nil, fmt.Errorf("list unstarted notifications: %w", err)
	}
	return rows, nil
}

// MarkStarted notes that Temporal has acknowledged the workflows of these notifications.
func (s *Store) MarkStarted(ctx context.Context, ids ...uuid.UUID) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE notifications SET started_at = clock_timestamp()
		WHERE id IN (SELECT id FROM notifications WHERE id = ANY ($1) AND started_at IS NULL ORDER BY id FOR UPDATE)`, ids)
	if err != nil {
		return fmt.Errorf("mark notifications started: %w", err)
	}
	return nil
}
