package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Each of these is a commit in the batch's row, which every claim reads and locks: the commit is the
// edge, and it waits for claims that began before. Where the batch's state forbids what is asked,
// they return false and change nothing; asking for what is so already is true.

// batchGoesOn is the condition under which batch b can be controlled: something of it is not final. That
// it is finished is written down a little later.
const batchGoesOn = `b.finished_at IS NULL AND EXISTS (SELECT FROM ` + batchCounts + ` AS c WHERE ` + batchOutstanding + ` > 0)`

// PauseBatch stops claims of the batch's notifications until it is resumed. The first reason is kept.
// The error is ErrNotFound when there is no such batch.
func (s *Store) PauseBatch(ctx context.Context, id uuid.UUID, reason *string) (bool, error) {
	return s.controlBatch(ctx, "pause batch", id, `
		UPDATE batches b SET
			pause_reason = CASE WHEN paused_at IS NULL THEN $2 ELSE pause_reason END,
			paused_at = coalesce(paused_at, clock_timestamp())
		WHERE b.id = $1 AND b.canceled_at IS NULL AND `+batchGoesOn, reason)
}

// CancelBatch stops claims of the batch's notifications for good. CancelChunk writes down which rows
// are CANCELED by it. The error is ErrNotFound when there is no such batch.
func (s *Store) CancelBatch(ctx context.Context, id uuid.UUID) (bool, error) {
	return s.controlBatch(ctx, "cancel batch", id, `
		UPDATE batches b SET
			canceled_at = coalesce(canceled_at, clock_timestamp()),
			paused_at = NULL, pause_reason = NULL, carry_by = clock_timestamp()
		WHERE b.id = $1 AND (b.canceled_at IS NOT NULL OR `+batchGoesOn+`)`)
}

// ResumeBatch lets a paused batch go on. The time for which it was paused is not counted towards its
// notifications' SEND_DEADLINE. The error is ErrNotFound when there is no such batch.
func (s *Store) ResumeBatch(ctx context.Context, id uuid.UUID) (bool, error) {
	// In a statement of its own: a claim locks rows first and the batch then.
	_, err := s.pool.Exec(ctx, `
		UPDATE notifications n SET first_claimed_at = held.first_claimed_at + (clock_timestamp() - greatest(held.first_claimed_at, held.paused_at))
		FROM (
			SELECT n.id, n.first_claimed_at, b.paused_at
			FROM batches b
			JOIN notifications n ON n.batch_id = b.id AND n.status = 'ACCEPTED' AND n.place < b.shards_started * b.shard_size
			WHERE b.id = $1 AND b.paused_at IS NOT NULL AND n.first_claimed_at IS NOT NULL
			ORDER BY n.id
			FOR UPDATE OF n SKIP LOCKED
		) AS held
		WHERE n.id = held.id`, id)
	if err != nil {
		return false, fmt.Errorf("resume batch: %w", err)
	}
	return s.controlBatch(ctx, "resume batch", id, `
		UPDATE batches b SET paused_at = NULL, pause_reason = NULL,
			carry_by = CASE WHEN paused_at IS NOT NULL THEN clock_timestamp() ELSE carry_by END
		WHERE b.id = $1 AND b.canceled_at IS NULL AND `+batchGoesOn)
}

// BatchChange is what people change of a batch that was accepted; what is nil stays.
type BatchChange struct {
	// Pace is the least time between two of its sends, for claims from now on; 0: that of its sender. One
	// that is shorter than the sender's has no effect.
	Pace *time.Duration
	// SendAt is the moment before which nothing of it is sent. It changes as long as nothing of the batch
	// was ever claimed.
	SendAt *time.Time
}

// ChangeBatch makes the whole change or, where it returns false, nothing of it. The error is ErrNotFound
// when there is no such batch.
func (s *Store) ChangeBatch(ctx context.Context, id uuid.UUID, change BatchChange) (done bool, err error) {
	ctx = unhurried(ctx)
	err = s.pool.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := takeBatchTurn(ctx, tx, id); err != nil {
			return err
		}
		// What is read after the lock is what claims have left.
		tag, err := tx.Exec(ctx, `SELECT FROM batches WHERE id = $1 FOR NO KEY UPDATE`, id)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return ErrNotFound
		}
		tag, err = tx.Exec(ctx, `
			UPDATE batches b SET
				send_at = CASE WHEN $2::timestamptz IS NULL THEN b.send_at ELSE greatest($2, clock_timestamp()) END,
				send_interval = CASE WHEN $3::interval IS NULL THEN b.send_interval ELSE nullif($3, '0') END,
				next_slot = least(b.next_slot, clock_timestamp() + $3),
				carry_by = clock_timestamp()
			WHERE b.id = $1 AND b.canceled_at IS NULL AND `+batchGoesOn+`
				AND ($2::timestamptz IS NULL OR NOT EXISTS (
					SELECT FROM notifications n
					WHERE `+ofBatch+` AND n.place < b.shards_started * b.shard_size AND n.first_claimed_at IS NOT NULL
				))`, id, change.SendAt, change.Pace)
		if done = err == nil && tag.RowsAffected() == 1; done && change.Pace != nil {
			err = forgetRate(ctx, tx, id)
		}
		return err
	})
	if err != nil && !errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("change batch: %w", err)
	}
	return done, err
}

func (s *Store) controlBatch(ctx context.Context, doing string, id uuid.UUID, sql string, args ...any) (done bool, err error) {
	ctx = unhurried(ctx)
	err = s.pool.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := takeBatchTurn(ctx, tx, id); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, sql, append([]any{id}, args...)...)
		if done = err == nil && tag.RowsAffected() == 1; done {
			err = forgetRate(ctx, tx, id)
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("%s: %w", doing, err)
	}
	if done {
		return true, nil
	}
	_, err = s.Batch(ctx, id)
	return false, err
}

// forgetRate forgets how fast the batch was sent, which says nothing any more.
func forgetRate(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
	_, err := tx.Exec(ctx, `DELETE FROM batch_samples WHERE batch_id = $1`, id)
	return err
}

// takeBatchTurn waits for claims of the batch that began before, and has those wait that begin now, until
// the transaction ends. Claims share the lock of the batch's row: while many come one after the other it
// is never free, and whoever wants it alone would wait for as long as there is something to claim. An
// advisory lock, of which each claim takes a share first, is given in the order in which it is asked for.
func takeBatchTurn(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended($1::uuid::text, 0))`, id)
	return err
}

// InFlight is what of a batch claims hold that have not run out.
type InFlight struct {
	Rows int64
	Edge time.Time // by the database's clock: claims that began later do not count
}

// BatchInFlight counts what of the batch is in flight from claims before the edge; nil: before now.
func (s *Store) BatchInFlight(ctx context.Context, id uuid.UUID, edge *time.Time) (InFlight, error) {
	f, err := one(ctx, s, pgx.RowToStructByPos[InFlight], `
		SELECT count(n.id), edge.at
		FROM (SELECT coalesce($2, clock_timestamp()) AS at) AS edge
		LEFT JOIN notifications n ON n.status = 'SENDING' AND n.batch_id = $1
			AND n.claim_deadline > clock_timestamp() AND n.claimed_at <= edge.at
		GROUP BY edge.at`, id, edge)
	if err != nil {
		return f, fmt.Errorf("count claims in flight: %w", err)
	}
	return f, nil
}
