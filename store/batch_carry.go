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

// Carry is where a batch stands, for the workflow that carries it.
type Carry struct {
	Channel       notify.Channel
	Total         int32
	ShardSize     int32
	Shards        int32
	ShardsStarted int32         // the first so many were started
	Unsent        int32         // rows of started shards, in each from the first that was never tried and may be
	From          int32         // the first place of those; no row before it will be unsent again
	SinceShard    time.Duration // since the last of them was started; 0 before the first
	WaitsFor      time.Duration // until the batch is due
	Held          bool          // paused, or its sender is stopped
	Canceled      bool
	Counts
}

// Carry reads where the batch stands, and notes that it is looked after for the time given. from is
// where it found the first unsent row before, or 0. The error is ErrNotFound when there is no such
// batch.
func (s *Store) Carry(ctx context.Context, id uuid.UUID, from int32, looksAfter time.Duration) (Carry, error) {
	c, err := one(ctx, s, pgx.RowToStructByPos[Carry], `
		SELECT b.channel::text, b.total, b.shard_size, b.shards, b.shards_started,
			unsent.rows, coalesce(unsent.first, least(b.shards_started * b.shard_size, b.total)),
			coalesce(clock_timestamp() - b.shard_started_at, '0'), greatest('0', b.send_at - clock_timestamp()),
			b.paused_at IS NOT NULL OR s.stopped_at IS NOT NULL, b.canceled_at IS NOT NULL,
			c.accepted, c.sending, c.pending, c.success, c.failed, c.unknown, c.skipped, c.canceled
		FROM batches b
		JOIN senders s ON s.id = b.sender_id
		CROSS JOIN LATERAL `+batchCounts+` AS c
		CROSS JOIN LATERAL (
			-- A shard is claimed in order: what follows its first unsent row is unsent too.
			SELECT coalesce(sum(least((shard + 1) * b.shard_size, b.total) - place), 0)::int AS rows, min(place) AS first
			FROM generate_series($2 / b.shard_size, b.shards_started - 1) AS shard
			CROSS JOIN LATERAL (
				SELECT n.place
				FROM notifications n
				WHERE n.batch_id = b.id AND n.status = 'ACCEPTED'
					AND n.place >= greatest($2, shard * b.shard_size) AND n.place < (shard + 1) * b.shard_size
					AND n.first_claimed_at IS NULL AND n.send_at <= clock_timestamp()
				ORDER BY n.place
				LIMIT 1
			) AS first
		) AS unsent
		WHERE b.id = $1`, id, from)
	if err != nil {
		if !errors.Is(err, ErrNotFound) {
			err = fmt.Errorf("read where a batch stands: %w", err)
		}
		return c, err
	}
	_, err = s.pool.Exec(ctx, `
		UPDATE batches SET carry_by = clock_timestamp() + $2::interval
		WHERE id = $1 AND carry_by NOT BETWEEN clock_timestamp() + $2::interval * 0.8 AND clock_timestamp() + $2::interval * 1.2`, id, looksAfter)
	if err != nil {
		return c, fmt.Errorf("note that a batch is looked after: %w", err)
	}
	return c, nil
}

// ShardMember is the one notification of a shard of size 1.
func (s *Store) ShardMember(ctx context.Context, workflowID string) (uuid.UUID, error) {
	id, err := one(ctx, s, pgx.RowTo[uuid.UUID], `
		SELECT id FROM notifications
		WHERE workflow_id = $1 AND status IN ('ACCEPTED', 'SENDING', 'PENDING')
		LIMIT 1`, workflowID)
	if err != nil && !errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("read a shard's notification: %w", err)
	}
	return id, err
}

// MarkShardsStarted notes that the batch's first n shards were started.
func (s *Store) MarkShardsStarted(ctx context.Context, id uuid.UUID, n int32) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE batches SET shards_started = greatest(shards_started, $2), shard_started_at = clock_timestamp()
		WHERE id = $1`, id, n)
	if err != nil {
		return fmt.Errorf("mark a shard started: %w", err)
	}
	return nil
}

// UnsentShards lists the workflows of shards that were started and have rows to send; at most limit.
func (s *Store) UnsentShards(ctx context.Context, id uuid.UUID, limit int) ([]string, error) {
	owners, err := many(ctx, s, pgx.RowTo[string], `
		SELECT DISTINCT n.workflow_id
		FROM batches b
		JOIN notifications n ON n.batch_id = b.id AND n.status = 'ACCEPTED' AND n.place < b.shards_started * b.shard_size
		WHERE b.id = $1
		LIMIT $2`, id, limit)
	if err != nil {
		return nil, fmt.Errorf("list unsent shards: %w", err)
	}
	return owners, nil
}

// BatchWorkflow is the workflow that carries a batch.
type BatchWorkflow struct {
	ID         uuid.UUID
	WorkflowID string
	Channel    notify.Channel
}

// UnstartedBatches lists batches that are due and have no workflow yet.
func (s *Store) UnstartedBatches(ctx context.Context, age time.Duration, limit int) ([]BatchWorkflow, error) {
	return s.batchWorkflows(ctx, "list unstarted batches", `
		SELECT id, workflow_id, channel::text FROM batches
		WHERE finished_at IS NULL AND started_at IS NULL AND canceled_at IS NULL AND send_at <= clock_timestamp() - $1::interval
		ORDER BY send_at
		LIMIT $2`, age, limit)
}

// NeglectedBatches takes on batches whose workflow should have looked at them longer than grace ago.
// Each is named once in that time.
func (s *Store) NeglectedBatches(ctx context.Context, grace time.Duration, limit int) ([]BatchWorkflow, error) {
	return s.batchWorkflows(ctx, "list neglected batches", `
		UPDATE batches SET carry_by = clock_timestamp()
		WHERE id IN (
			SELECT id FROM batches
			WHERE finished_at IS NULL AND started_at <= clock_timestamp() - $1::interval AND carry_by <= clock_timestamp() - $1::interval
			ORDER BY carry_by
			LIMIT $2
			FOR NO KEY UPDATE SKIP LOCKED
		)
		RETURNING id, workflow_id, channel::text`, grace, limit)
}

// FinishBatches marks batches finished whose notifications are all final, and returns them.
func (s *Store) FinishBatches(ctx context.Context) ([]BatchWorkflow, error) {
	return s.batchWorkflows(ctx, "finish batches", `
		UPDATE batches u SET finished_at = clock_timestamp()
		FROM (
			SELECT b.id
			FROM batches b
			CROSS JOIN LATERAL `+batchCounts+` AS c
			WHERE b.finished_at IS NULL AND `+batchOutstanding+` = 0
		) AS done
		WHERE u.id = done.id AND u.finished_at IS NULL
		RETURNING u.id, u.workflow_id, u.channel::text`)
}

func (s *Store) batchWorkflows(ctx context.Context, doing, sql string, args ...any) ([]BatchWorkflow, error) {
	found, err := many(ctx, s, pgx.RowToStructByPos[BatchWorkflow], sql, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	return found, nil
}

// MarkBatchStarted notes that Temporal has acknowledged the batch's workflow.
func (s *Store) MarkBatchStarted(ctx context.Context, id uuid.UUID, workflowID string) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE batches SET started_at = clock_timestamp(), carry_by = clock_timestamp()
		WHERE id = $1 AND workflow_id = $2 AND started_at IS NULL`, id, workflowID)
	if err != nil {
		return fmt.Errorf("mark a batch started: %w", err)
	}
	return nil
}

// BequeathBatch gives a batch whose workflow is closed or gone to a new one, for which the relay then
// starts a workflow.
func (s *Store) BequeathBatch(ctx context.Context, of BatchWorkflow) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE batches SET workflow_id = $3, started_at = NULL
		WHERE id = $1 AND workflow_id = $2`, of.ID, of.WorkflowID, notify.SuccessorWorkflowID(of.WorkflowID))
	if err != nil {
		return fmt.Errorf("give a batch to another workflow: %w", err)
	}
	return nil
}

// cancelChunk is how many rows of a canceled batch one statement writes.
const cancelChunk = 5000

// CancelChunk writes some of those notifications CANCELED whose batch was canceled before they were
// sent. It returns how many, and the workflows that carry them; 0 when none is left.
func (s *Store) CancelChunk(ctx context.Context) (n int, owners []string, err error) {
	ctx = unhurried(ctx)
	type chunk struct {
		Rows   int
		Owners []string
	}
	c, err := one(ctx, s, pgx.RowToStructByPos[chunk], `
		WITH row AS MATERIALIZED (
			SELECT n.id
			FROM notifications n
			WHERE n.status = 'ACCEPTED' AND n.batch_id = (
				SELECT b.id FROM batches b
				WHERE b.canceled_at IS NOT NULL AND b.finished_at IS NULL
					AND EXISTS (SELECT FROM notifications n WHERE n.batch_id = b.id AND n.status = 'ACCEPTED')
				ORDER BY b.canceled_at
				LIMIT 1
			)
			ORDER BY n.place
			LIMIT $1
			FOR UPDATE SKIP LOCKED
		), moved AS (
			UPDATE notifications n SET status = 'CANCELED', retry_at = NULL, settled_at = clock_timestamp(), updated_at = clock_timestamp()
			FROM row
			WHERE n.id = row.id
			RETURNING n.id, n.status, n.workflow_id, n.batch_id, n.place
		), event AS (
			INSERT INTO notification_events (notification_id, kind, status)
			SELECT id, $2, status FROM moved
		)
		SELECT count(*), coalesce(array_agg(DISTINCT moved.workflow_id) FILTER (WHERE moved.place < b.shards_started * b.shard_size), '{}')
		FROM moved
		LEFT JOIN batches b ON b.id = moved.batch_id`, cancelChunk, EventCanceled)
	if err != nil {
		return 0, nil, fmt.Errorf("cancel notifications of a batch: %w", err)
	}
	return c.Rows, c.Owners, nil
}

// FoldBatchMoves adds changes to what was counted before, so that a reader has few of them to add up.
// It returns how many it folded.
func (s *Store) FoldBatchMoves(ctx context.Context, limit int) (int64, error) {
	ctx = unhurried(ctx)
	n, err := one(ctx, s, pgx.RowTo[int64], `
		WITH gone AS (
			DELETE FROM batch_moves
			WHERE ctid = ANY (ARRAY(SELECT ctid FROM batch_moves LIMIT $1 FOR UPDATE SKIP LOCKED))
			RETURNING batch_id, status, delta
		), folded AS (
			INSERT INTO batch_counts AS c (batch_id, status, count)
			SELECT batch_id, status, sum(delta) FROM gone GROUP BY 1, 2 ORDER BY 1, 2
			ON CONFLICT (batch_id, status) DO UPDATE SET count = c.count + EXCLUDED.count
		)
		SELECT count(*) FROM gone`, limit)
	if err != nil {
		return 0, fmt.Errorf("fold what was counted: %w", err)
	}
	return n, nil
}

// SampleBatches notes how many notifications each running batch has sent by now, once a second at
// most, and forgets what is too old to measure a rate by.
func (s *Store) SampleBatches(ctx context.Context) error {
	ctx = unhurried(ctx)
	_, err := s.pool.Exec(ctx, `
		WITH old AS (
			DELETE FROM batch_samples WHERE at < clock_timestamp() - $1::interval
		)
		INSERT INTO batch_samples (batch_id, at, sent)
		SELECT b.id, clock_timestamp(), `+batchSent+`
		FROM batches b
		CROSS JOIN LATERAL `+batchCounts+` AS c
		WHERE b.finished_at IS NULL AND b.shards_started > 0 AND c.accepted + c.sending > 0
			AND NOT EXISTS (SELECT FROM batch_samples p WHERE p.batch_id = b.id AND p.at > clock_timestamp() - '900 ms'::interval)`,
		2*rateWindow)
	if err != nil {
		return fmt.Errorf("measure the pace of batches: %w", err)
	}
	return nil
}
