package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// Unstarted is a workflow that Temporal has not acknowledged yet: of a single notification, or of a
// shard of them.
type Unstarted struct {
	WorkflowID *string    // of a shard; nil for a single that no workflow owns yet
	Single     *uuid.UUID // of a single; nil for a shard
	Channel    notify.Channel
}

// Unstarted lists the workflows of due notifications that none was started for, the most overdue
// first, leaving out notifications younger than age: whoever accepted them is about to start them.
func (s *Store) Unstarted(ctx context.Context, age time.Duration, limit int) ([]Unstarted, error) {
	rows, err := many(ctx, s, pgx.RowToStructByPos[Unstarted], `
		SELECT workflow_id, CASE WHEN workflow_id IS NULL THEN id END, channel::text
		FROM notifications
		WHERE started_at IS NULL AND status = 'ACCEPTED' AND send_at <= clock_timestamp() - $1::interval
		GROUP BY 1, 2, 3
		ORDER BY min(send_at)
		LIMIT $2`, age, limit)
	if err != nil {
		return nil, fmt.Errorf("list unstarted notifications: %w", err)
	}
	return rows, nil
}

// AssignShard gives up to size of the longest waiting singles of one sender, each older than age,
// to a new shard, and returns how many; 0 when none waits.
func (s *Store) AssignShard(ctx context.Context, age time.Duration, size int) (int, error) {
	tag, err := s.pool.Exec(ctx, `
		WITH waiting AS (
			SELECT n.id
			FROM notifications n
			WHERE n.started_at IS NULL AND n.status = 'ACCEPTED' AND n.workflow_id IS NULL
				AND n.send_at <= clock_timestamp() - $1::interval
				AND n.sender_id = (
					SELECT sender_id
					FROM notifications
					WHERE started_at IS NULL AND status = 'ACCEPTED' AND workflow_id IS NULL
						AND send_at <= clock_timestamp() - $1::interval
					ORDER BY send_at
					LIMIT 1
				)
			ORDER BY n.send_at
			LIMIT $2
			FOR UPDATE SKIP LOCKED
		), shard AS MATERIALIZED (
			SELECT 'relay/' || nextval('relay_shards') AS workflow_id WHERE EXISTS (SELECT FROM waiting)
		)
		UPDATE notifications n SET workflow_id = shard.workflow_id, updated_at = clock_timestamp()
		FROM waiting, shard
		WHERE n.id = waiting.id`, age, size)
	if err != nil {
		return 0, fmt.Errorf("assign notifications to a shard: %w", err)
	}
	return int(tag.RowsAffected()), nil
}

// MarkStarted notes that Temporal has acknowledged the workflows of these singles and shards.
func (s *Store) MarkStarted(ctx context.Context, singles []uuid.UUID, shards []string) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE notifications SET started_at = clock_timestamp()
		WHERE id IN (
			SELECT id FROM notifications
			WHERE started_at IS NULL AND (id = ANY ($1) OR workflow_id = ANY ($2) AND status IN ('ACCEPTED', 'SENDING', 'PENDING'))
			ORDER BY id
			FOR UPDATE
		)`, singles, shards)
	if err != nil {
		return fmt.Errorf("mark workflows started: %w", err)
	}
	return nil
}
