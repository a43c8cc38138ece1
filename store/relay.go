package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// Waiting is how many singles of one sender nobody owns, and are left to the relay.
type Waiting struct {
	SenderID int64
	Channel  notify.Channel
	Count    int64
	Stopped  bool // the sender is: there is nothing to start
	Busy     bool // it has no free slot, or the carrier's queue is full: another shard would only wait too
}

// Waiting counts, by sender, the singles that wait for the relay, up to limit altogether.
func (s *Store) Waiting(ctx context.Context, limit int) ([]Waiting, error) {
	counts, err := many(ctx, s, pgx.RowToStructByPos[Waiting], `
		SELECT s.id, s.channel::text, waiting.count, s.stopped_at IS NOT NULL,
			s.next_slot > clock_timestamp() OR s.queue_full_at IS NOT NULL
		FROM (
			SELECT sender_id, count(*) AS count
			FROM (
				SELECT sender_id
				FROM notifications
				WHERE started_at IS NULL AND workflow_id IS NULL AND status IN ('ACCEPTED', 'SENDING', 'PENDING')
					AND relay_at <= clock_timestamp()
				ORDER BY relay_at
				LIMIT $1
			) AS row
			GROUP BY sender_id
		) AS waiting
		JOIN senders s ON s.id = waiting.sender_id
		ORDER BY s.id`, limit)
	if err != nil {
		return nil, fmt.Errorf("count waiting notifications: %w", err)
	}
	return counts, nil
}

// NewShardID numbers a new shard of the relay: relay/1, relay/2 and so on.
func (s *Store) NewShardID(ctx context.Context) (string, error) {
	id, err := one(ctx, s, pgx.RowTo[string], `SELECT 'relay/' || nextval('relay_shards')`)
	if err != nil {
		return "", fmt.Errorf("number a shard: %w", err)
	}
	return id, nil
}

// Unstarted is a workflow that Temporal has not acknowledged yet: of a single notification, or of
// the successor of one that is closed or gone.
type Unstarted struct {
	Successor *string    // its workflow ID
	Single    *uuid.UUID // of a single; nil for a successor
	Channel   notify.Channel
}

// Unstarted lists the workflows that none was started for, the most overdue first: of singles that
// wait for the relay, those of the senders left out excepted, and of successors.
func (s *Store) Unstarted(ctx context.Context, leaveOut []int64, limit int) ([]Unstarted, error) {
	rows, err := many(ctx, s, pgx.RowToStructByPos[Unstarted], `
		SELECT workflow_id, CASE WHEN workflow_id IS NULL THEN id END, channel::text
		FROM notifications
		WHERE started_at IS NULL AND status IN ('ACCEPTED', 'SENDING', 'PENDING')
			AND relay_at <= clock_timestamp()
			AND (workflow_id IS NOT NULL OR sender_id <> ALL (coalesce($1::bigint[], '{}')))
		GROUP BY 1, 2, 3
		ORDER BY min(relay_at)
		LIMIT $2`, leaveOut, limit)
	if err != nil {
		return nil, fmt.Errorf("list unstarted notifications: %w", err)
	}
	return rows, nil
}

// Idle lists owners that seem to sleep or to be gone: for longer than since they have had a row that
// could be claimed, or a claim that has run out. ahead is how far ahead slots may be reserved: a batch that
// runs has the sender's next slots, and yet a single could have one.
func (s *Store) Idle(ctx context.Context, since, ahead time.Duration, leaveOut []string, limit int) ([]string, error) {
	owners, err := many(ctx, s, pgx.RowTo[string], `
		SELECT DISTINCT workflow_id
		FROM (
			SELECT n.workflow_id
			FROM senders s
			JOIN notifications n ON n.sender_id = s.id AND n.status = 'ACCEPTED' AND n.batch_id IS NULL
				AND greatest(n.send_at, n.retry_at) <= clock_timestamp() - $1::interval
			WHERE s.stopped_at IS NULL AND s.queue_full_at IS NULL
				AND s.next_slot <= clock_timestamp() + $3::interval AND n.started_at <= clock_timestamp() - $1::interval
			UNION ALL
			SELECT n.workflow_id
			FROM batches b
			JOIN senders s ON s.id = b.sender_id
			JOIN notifications n ON n.batch_id = b.id AND n.status = 'ACCEPTED' AND n.place < b.shards_started * b.shard_size
				AND n.started_at <= clock_timestamp() - $1::interval
				AND greatest(n.send_at, n.retry_at) <= clock_timestamp() - $1::interval
			WHERE b.finished_at IS NULL AND b.paused_at IS NULL AND b.canceled_at IS NULL
				AND b.shard_started_at <= clock_timestamp() - $1::interval AND b.next_slot <= clock_timestamp()
				AND s.stopped_at IS NULL AND s.batches_queue_full_at IS NULL AND s.next_slot <= clock_timestamp() + $3::interval
			UNION ALL
			SELECT workflow_id
			FROM notifications
			WHERE status = 'SENDING' AND claim_deadline <= clock_timestamp() - $1::interval
		) AS idle
		WHERE workflow_id IS NOT NULL AND workflow_id <> ALL (coalesce($4::text[], '{}'))
		LIMIT $2`, since, limit, ahead, leaveOut)
	if err != nil {
		return nil, fmt.Errorf("list idle owners: %w", err)
	}
	return owners, nil
}

// Finished returns those of the owners that have no row left which is not final.
func (s *Store) Finished(ctx context.Context, owners []string) ([]string, error) {
	finished, err := many(ctx, s, pgx.RowTo[string], `
		SELECT owner
		FROM (SELECT DISTINCT unnest($1::text[]) AS owner) AS owners
		WHERE NOT EXISTS (
			SELECT FROM notifications WHERE workflow_id = owner AND status IN ('ACCEPTED', 'SENDING', 'PENDING')
			OFFSET 0 -- one look along the index for each owner, and no join with all that is outstanding
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
	ctx = unhurried(ctx)
	tag, err := s.pool.Exec(ctx, `
		UPDATE notifications SET workflow_id = $2, started_at = NULL, relay_at = clock_timestamp(), updated_at = clock_timestamp()
		WHERE id IN (
			SELECT id FROM notifications
			WHERE workflow_id = $1 AND status IN ('ACCEPTED', 'SENDING', 'PENDING')
			ORDER BY id
			FOR UPDATE
		)`, owner, notify.SuccessorWorkflowID(owner))
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
