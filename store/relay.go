package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"
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
		WHERE started_at IS NULL AND status IN ('ACCEPTED', 'SENDING', 'PENDING')
			AND send_at <= clock_timestamp() - $1::interval
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

// Idle lists owners that seem to sleep or to be gone: for longer than since they have had a row that
// could be claimed, while its sender had free slots, or a claim that has run out.
func (s *Store) Idle(ctx context.Context, since time.Duration, limit int) ([]string, error) {
	owners, err := many(ctx, s, pgx.RowTo[string], `
		SELECT DISTINCT workflow_id
		FROM (
			SELECT n.workflow_id
			FROM senders s
			JOIN notifications n ON n.sender_id = s.id AND n.status = 'ACCEPTED'
				AND greatest(n.send_at, n.retry_at) <= clock_timestamp() - $1::interval
			WHERE s.stopped_at IS NULL AND s.next_slot <= clock_timestamp() AND n.started_at <= clock_timestamp() - $1::interval
			UNION ALL
			SELECT workflow_id
			FROM notifications
			WHERE status = 'SENDING' AND claim_deadline <= clock_timestamp() - $1::interval
		) AS idle
		WHERE workflow_id IS NOT NULL
		LIMIT $2`, since, limit)
	if err != nil {
		return nil, fmt.Errorf("list idle owners: %w", err)
	}
	return owners, nil
}

// Finished returns those of the owners that have no row left which is not final.
func (s *Store) Finished(ctx context.Context, owners []string) ([]string, error) {
	finished, err := many(ctx, s, pgx.RowTo[string], `
		SELECT DISTINCT owner
		FROM unnest($1::text[]) AS owner
		WHERE NOT EXISTS (
			SELECT FROM notifications WHERE workflow_id = owner AND status IN ('ACCEPTED', 'SENDING', 'PENDING')
		)`, owners)
	if err != nil {
		return nil, fmt.Errorf("list finished owners: %w", err)
	}
	return finished, nil
}

// Bequeath gives the unfinished rows of an owner whose workflow is closed or gone to a new one,
// <id>/r1, <id>/r2 and so on, for which the relay then starts a workflow. It is the one change of a
// row's owner. It returns how many rows there were.
func (s *Store) Bequeath(ctx context.Context, owner string) (int, error) {
	heir := owner + "/r1"
	if base, n, ok := strings.Cut(owner, "/r"); ok {
		if k, err := strconv.Atoi(n); err == nil {
			heir = fmt.Sprintf("%s/r%d", base, k+1)
		}
	}
	tag, err := s.pool.Exec(ctx, `
		UPDATE notifications SET workflow_id = $2, started_at = NULL, updated_at = clock_timestamp()
		WHERE id IN (
			SELECT id FROM notifications
			WHERE workflow_id = $1 AND status IN ('ACCEPTED', 'SENDING', 'PENDING')
			ORDER BY id
			FOR UPDATE
		)`, owner, heir)
	if err != nil {
		return 0, fmt.Errorf("give notifications to another workflow: %w", err)
	}
	return int(tag.RowsAffected()), nil
}

// MarkStarted notes that Temporal has acknowledged these owners' workflows. A single that nobody
// owned yet is theirs from now on; one that has another owner is left alone.
func (s *Store) MarkStarted(ctx context.Context, owners ...Owner) error {
	_, err := s.pool.Exec(ctx, `
		WITH started AS (
			SELECT * FROM unnest($1::uuid[], $2::text[]) AS o (single, owner)
		), row AS MATERIALIZED (
			SELECT n.id, owner
			FROM (
				SELECT n.id, o.owner
				FROM started o
				JOIN notifications n ON n.id = o.single AND coalesce(n.workflow_id, o.owner) = o.owner
				UNION ALL
				SELECT n.id, o.owner
				FROM started o
				JOIN notifications n ON n.workflow_id = o.owner AND n.status IN ('ACCEPTED', 'SENDING', 'PENDING')
				WHERE o.single IS NULL
			) AS mine
			JOIN notifications n USING (id)
			WHERE n.started_at IS NULL
			ORDER BY n.id
			FOR UPDATE OF n
		)
		UPDATE notifications n SET workflow_id = row.owner, started_at = clock_timestamp()
		FROM row
		WHERE n.id = row.id`,
		column(owners, func(o Owner) *uuid.UUID { return o.Single }), column(owners, func(o Owner) string { return o.WorkflowID }))
	if err != nil {
		return fmt.Errorf("mark workflows started: %w", err)
	}
	return nil
}
