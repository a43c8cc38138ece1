package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// Sender is a number or Messaging Service with its pace and, where an account or sender error has
// stopped it, why.
type Sender struct {
	ID         int64
	Channel    notify.Channel
	Address    string
	NextSlot   *time.Time // the earliest moment of its next create; nil when it is free now
	Waiting    int64      // accepted notifications that are due, were not claimed yet, and are of no paused batch
	SlowedAt   *time.Time // when the carrier last asked it to wait
	SlowCode   *string    // by which error code or HTTP status
	StoppedAt  *time.Time
	StopCode   *string
	StopReason *string

	Queued           int64      // paced notifications that are in the carrier's queue, up to the limit
	QueueFullAt      *time.Time // since when some wait because that queue is full
	QueueUnlimitedAt *time.Time // since when the queue has no limit, because callbacks do not come
	LastCallbackAt   *time.Time // when a status callback last came, to about a second
}

// EnsureSender returns the id of the channel's sender with that address, adding it when it is new.
func (s *Store) EnsureSender(ctx context.Context, channel notify.Channel, address string) (int64, error) {
	const find = `SELECT id FROM senders WHERE channel = $1 AND address = $2`
	id, err := one(ctx, s, pgx.RowTo[int64], find, channel, address)
	if errors.Is(err, ErrNotFound) {
		if _, err = s.pool.Exec(ctx, `
			INSERT INTO senders (channel, address) VALUES ($1, $2)
			ON CONFLICT (channel, address) DO NOTHING`, channel, address); err == nil {
			id, err = one(ctx, s, pgx.RowTo[int64], find, channel, address)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("ensure sender: %w", err)
	}
	return id, nil
}

const senderColumns = `s.id, s.channel::text, s.address,
	CASE WHEN s.next_slot > now() THEN s.next_slot END,
	(SELECT count(*) FROM notifications n WHERE n.sender_id = s.id AND n.status = 'ACCEPTED' AND n.batch_id IS NULL
		AND greatest(n.send_at, n.retry_at) <= clock_timestamp())
		+ (SELECT coalesce(sum(c.accepted), 0)
			FROM batches b
			CROSS JOIN LATERAL ` + batchCounts + ` AS c
			WHERE b.sender_id = s.id AND b.finished_at IS NULL AND b.canceled_at IS NULL AND b.paused_at IS NULL AND b.send_at <= clock_timestamp())::bigint,
	s.slowed_at, s.slow_code, s.stopped_at, s.stop_code, s.stop_reason,
	queued_at_carrier(s.id, ` + mostQueued + `)::bigint, least(s.queue_full_at, s.batches_queue_full_at), s.queue_unlimited_at, s.last_callback_at`

// mostQueued bounds the count of what is in the carrier's queue.
const mostQueued = `10000`

// Senders lists every sender, the oldest first.
func (s *Store) Senders(ctx context.Context) ([]Sender, error) {
	senders, err := many(ctx, s, pgx.RowToStructByPos[Sender], `
		SELECT `+senderColumns+` FROM senders s ORDER BY s.id`)
	if err != nil {
		return nil, fmt.Errorf("list senders: %w", err)
	}
	return senders, nil
}

// StopSender stops a sender after an error that concerns it and not one notification; every claim
// reads and locks the sender's row, so this commit is the edge: it waits for claims that began before,
// and none is committed after. With all set, every sender is stopped: the account itself was refused.
// The first reason is kept until the sender is resumed.
func (s *Store) StopSender(ctx context.Context, id int64, all bool, code, reason string) error {
	if all {
		id = 0
	}
	_, err := s.pool.Exec(ctx, stopSenders+`SELECT`, code, reason, id)
	if err != nil {
		return fmt.Errorf("stop sender: %w", err)
	}
	return nil
}

// ResumeSender lets a sender go on that is stopped, or that the carrier asked to wait. The time for which it was stopped is not counted
// towards its notifications' SEND_DEADLINE, and its batches want to be looked at (NeglectedBatches). The error is
// ErrNotFound when there is no such sender, and ErrLedgerBehind while the ledger is to be reconciled.
func (s *Store) ResumeSender(ctx context.Context, id int64) (sender Sender, err error) {
	err = s.pool.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		// One resume at a time: of two, the second finds the sender resumed and moves nothing again.
		if _, err := tx.Exec(ctx, `
			SELECT pg_advisory_xact_lock(hashtextextended('resume-sender/' || $1::bigint, 0))`, id); err != nil {
			return err
		}
		for _, statement := range uncountStop {
			if _, err := tx.Exec(ctx, statement, id); err != nil {
				return err
			}
		}
		if err := takeSenderTurn(ctx, tx, id); err != nil {
			return err
		}
		sender, err = oneOf(ctx, tx, pgx.RowToStructByPos[Sender], `
			WITH s AS (
				UPDATE senders s SET stopped_at = NULL, stop_code = NULL, stop_reason = NULL,
					next_slot = least(s.next_slot, clock_timestamp())
				WHERE s.id = $1 AND NOT EXISTS (SELECT FROM ledger_identity WHERE behind_since IS NOT NULL)
				RETURNING s.*
			)
			SELECT `+senderColumns+` FROM s`, id)
		return err
	})
	if errors.Is(err, ErrNotFound) {
		bound, readErr := s.Bound(ctx)
		if readErr == nil && bound.BehindSince != nil {
			err = ErrLedgerBehind
		}
		return sender, cmp.Or(readErr, err)
	}
	if err != nil {
		err = fmt.Errorf("resume sender: %w", err)
	}
	return sender, err
}

// uncountStop are the statements of ResumeSender that come before the sender's row is locked: those
// rows that the stop has held, in the order of the lock order (see Store).
var uncountStop = []string{
	`UPDATE notifications n
	SET first_claimed_at = held.first_claimed_at + (clock_timestamp() - greatest(held.first_claimed_at, held.stopped_at))
	FROM (
		SELECT n.id, n.first_claimed_at, s.stopped_at
		FROM senders s
		JOIN notifications n ON n.sender_id = s.id AND n.status = 'ACCEPTED' AND n.first_claimed_at IS NOT NULL AND n.batch_id IS NULL
		WHERE s.id = $1 AND s.stopped_at IS NOT NULL
		ORDER BY n.id
		FOR UPDATE OF n
	) AS held
	WHERE n.id = held.id`,
	`UPDATE notifications n
	SET first_claimed_at = held.first_claimed_at + (clock_timestamp() - greatest(held.first_claimed_at, held.stopped_at))
	FROM (
		SELECT n.id, n.first_claimed_at, s.stopped_at
		FROM senders s
		JOIN batches b ON b.sender_id = s.id AND b.finished_at IS NULL
		JOIN notifications n ON n.batch_id = b.id AND n.status = 'ACCEPTED' AND n.first_claimed_at IS NOT NULL
			AND n.place < b.shards_started * b.shard_size
		WHERE s.id = $1 AND s.stopped_at IS NOT NULL
		ORDER BY n.id
		FOR UPDATE OF n
	) AS held
	WHERE n.id = held.id`,
	`UPDATE batches b SET carry_by = least(b.carry_by, clock_timestamp())
	FROM (
		SELECT b.id
		FROM senders s
		JOIN batches b ON b.sender_id = s.id AND b.finished_at IS NULL
		WHERE s.id = $1 AND s.stopped_at IS NOT NULL
		ORDER BY b.id
		FOR NO KEY UPDATE OF b
	) AS held
	WHERE b.id = held.id`,
}

// senderTurn is an expression that takes, by one of Postgres' functions for advisory locks, the turn of
// a sender until the transaction ends. Claims share it. Who changes the row takes it alone: shared locks
// of rows overtake those who wait for such a row, and advisory locks do not.
func senderTurn(lock, sender string) string {
	return lock + `(hashtextextended('sender/' || ` + sender + `, 0))`
}

// stopSenders is the beginning of a statement that stops, for reason $2 with code $1, the sender $3, or every one
// where that is 0.
var stopSenders = `
	WITH turn AS MATERIALIZED (
		SELECT s.id, ` + senderTurn("pg_advisory_xact_lock", "s.id") + `
		FROM (SELECT id FROM senders WHERE stopped_at IS NULL AND ($3::bigint = 0 OR id = $3) ORDER BY id) AS s
	), stopped AS (
		UPDATE senders SET stopped_at = clock_timestamp(), stop_code = $1, stop_reason = $2
		WHERE id IN (SELECT s.id FROM turn JOIN senders s USING (id) WHERE s.stopped_at IS NULL ORDER BY s.id FOR UPDATE OF s)
	)
	`

func takeSenderTurn(ctx context.Context, tx pgx.Tx, id int64) error {
	_, err := tx.Exec(ctx, `SELECT `+senderTurn("pg_advisory_xact_lock", "$1::bigint"), id)
	return err
}

// DelaySender keeps a sender from posting for a while, because the carrier asked for it by code.
func (s *Store) DelaySender(ctx context.Context, id int64, pause time.Duration, code string) error {
	err := s.pool.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := takeSenderTurn(ctx, tx, id); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `
			UPDATE senders SET next_slot = greatest(next_slot, clock_timestamp() + $2::interval),
				slowed_at = clock_timestamp(), slow_code = $3
			WHERE id = $1`, id, pause, code)
		return err
	})
	if err != nil {
		return fmt.Errorf("delay sender: %w", err)
	}
	return nil
}
