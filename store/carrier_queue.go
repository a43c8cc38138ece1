package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// QueueLimit is how many notifications of one paced sender may be in the carrier's queue: claimed or accepted there,
// and not yet sent on (calls: not yet initiated). What is in that queue can hardly be stopped.
type QueueLimit struct {
	Singles int // 0: no limit
	Batches int // the same as far as batches fill the queue: the rest is for singles
}

// NewQueueLimit leaves a tenth of the queue to singles.
func NewQueueLimit(limit int) QueueLimit {
	if limit <= 0 {
		return QueueLimit{}
	}
	return QueueLimit{Singles: limit, Batches: max(1, limit*9/10)}
}

// of is the limit for rows of the owner.
func (l QueueLimit) of(owner Owner) int {
	if owner.OfBatch() {
		return l.Batches
	}
	return l.Singles
}

// queueFull is the condition under which sender s has no room in the carrier's queue for notification n.
const queueFull = `CASE WHEN n.batch_id IS NULL THEN s.queue_full_at ELSE s.batches_queue_full_at END IS NOT NULL`

// QueueIsFull reports whether singles of the sender wait for room in the carrier's queue.
func (s *Store) QueueIsFull(ctx context.Context, senderID int64) (bool, error) {
	full, err := one(ctx, s, pgx.RowTo[bool], `SELECT queue_full_at IS NOT NULL FROM senders WHERE id = $1`, senderID)
	if err != nil {
		return false, fmt.Errorf("look whether the carrier's queue is full: %w", err)
	}
	return full, nil
}

// NoteCallbacks notes that status callbacks for these senders have come: the limit of the carrier's queue holds again.
func (s *Store) NoteCallbacks(ctx context.Context, senderIDs ...int64) error {
	_, err := s.pool.Exec(ctx, `
		WITH turn AS MATERIALIZED (
			SELECT s.id, `+senderTurn("pg_advisory_xact_lock", "s.id")+`
			FROM (SELECT id FROM senders WHERE id = ANY ($1) ORDER BY id) AS s
		)
		UPDATE senders SET last_callback_at = clock_timestamp(), queue_unlimited_at = NULL
		WHERE id IN (SELECT s.id FROM turn JOIN senders s USING (id) ORDER BY s.id FOR NO KEY UPDATE OF s)`, senderIDs)
	if err != nil {
		return fmt.Errorf("note that callbacks come: %w", err)
	}
	return nil
}

// FullQueue is a sender whose notifications have waited for room in the carrier's queue, without a callback.
type FullQueue struct {
	SenderID int64
	Window   Window // in which what is in the queue was accepted by the carrier
}

// StalledQueues lists a channel's senders that have waited for longer than patience for room in the carrier's queue,
// without a callback in that time, and takes on to ask the carrier for them: each is named once in every. Where there
// is room again, it notes so, and names the sender not.
func (s *Store) StalledQueues(ctx context.Context, channel notify.Channel, limit QueueLimit, patience, every time.Duration) ([]FullQueue, error) {
	// The count is read under the sender's lock: nobody claims in between.
	_, err := s.pool.Exec(ctx, `
		WITH waiting AS MATERIALIZED (
			SELECT id FROM senders
			WHERE channel = $1 AND (queue_full_at IS NOT NULL OR batches_queue_full_at IS NOT NULL)
			ORDER BY id
			FOR NO KEY UPDATE
		), queued AS MATERIALIZED (
			SELECT id, queued_at_carrier(id, $2) AS rows FROM waiting
		)
		UPDATE senders s SET
			queue_full_at = CASE WHEN queued.rows >= $2 THEN s.queue_full_at END,
			batches_queue_full_at = CASE WHEN queued.rows >= $3 THEN s.batches_queue_full_at END
		FROM queued
		WHERE s.id = queued.id AND (queued.rows < $2 AND s.queue_full_at IS NOT NULL OR queued.rows < $3)`,
		channel, limit.Singles, limit.Batches)
	if err != nil {
		return nil, fmt.Errorf("look for room in the carrier's queue: %w", err)
	}
	stalled, err := many(ctx, s, func(row pgx.CollectableRow) (q FullQueue, err error) {
		return q, row.Scan(&q.SenderID, &q.Window.From, &q.Window.Until)
	}, `
		WITH asked AS (
			UPDATE senders SET queue_listed_at = clock_timestamp()
			WHERE id IN (
				SELECT id FROM senders
				WHERE channel = $1
					AND least(queue_full_at, batches_queue_full_at) <= clock_timestamp() - $2::interval
					AND coalesce(last_callback_at, 'epoch') <= clock_timestamp() - $2::interval
					AND coalesce(queue_listed_at, 'epoch') <= clock_timestamp() - $3::interval
					AND queue_unlimited_at IS NULL
				ORDER BY id
				FOR NO KEY UPDATE SKIP LOCKED
			)
			RETURNING id
		)
		SELECT asked.id, coalesce(queued.first, clock_timestamp()), clock_timestamp()
		FROM asked
		CROSS JOIN LATERAL (
			SELECT min(n.sent_at) AS first
			FROM notifications n
			WHERE n.sender_id = asked.id AND `+atCarrier+`
		) AS queued`, channel, patience, every)
	if err != nil {
		return nil, fmt.Errorf("list full queues at the carrier: %w", err)
	}
	return stalled, nil
}

// atCarrier is the condition under which notification n is in the carrier's queue, as the index notifications_at_carrier
// and the function queued_at_carrier have it.
const atCarrier = `n.queued AND n.status IN ('SENDING', 'PENDING')`

// waitsAtCarrier is the condition under which the highest word of notification n, as far as d knows it, leaves it in
// the carrier's queue: those below 'sent' and, of a call, below 'initiated'.
const waitsAtCarrier = `d.rank < CASE n.channel WHEN 'CALL' THEN 2 ELSE 5 END`

// UnlimitQueue turns the limit off for a sender, until a callback comes, and reports whether it did: there is room in
// the queue now, and yet no callback has come for as long as patience. So callbacks do not come, and without them
// nobody can tell what is in the queue.
func (s *Store) UnlimitQueue(ctx context.Context, senderID int64, limit QueueLimit, patience time.Duration) (bool, error) {
	tag, err := s.pool.Exec(ctx, `
		UPDATE senders SET queue_unlimited_at = clock_timestamp(), queue_full_at = NULL, batches_queue_full_at = NULL
		WHERE id = $1 AND coalesce(last_callback_at, 'epoch') <= clock_timestamp() - $3::interval
			AND queued_at_carrier(id, $2) < $2`, senderID, limit.Batches, patience)
	if err != nil {
		return false, fmt.Errorf("turn the limit of the carrier's queue off: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}
