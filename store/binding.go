package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// Binding is the account that a ledger belongs to, by fingerprints: secrets are not kept.
type Binding struct {
	Kind    string // twilio or simulator
	Region  string // where Twilio keeps the account's data; empty for the simulator
	Account []byte // fingerprint of the account's SID
}

// Bound is what the ledger is bound to. Both are the zero value until a process has bound them.
type Bound struct {
	Binding
	PhoneKey    []byte     // fingerprint of PHONE_HASH_KEY
	BoundAt     *time.Time // nil: not bound to an account
	BehindSince *time.Time // not nil: the ledger lacks sends since then, and is to be reconciled
}

const boundSQL = `
	SELECT coalesce(carrier_kind, ''), coalesce(carrier_region, ''), account_fingerprint, phone_key_fingerprint, bound_at, behind_since
	FROM ledger_identity WHERE is_only`

// Bound reads what the ledger is bound to.
func (s *Store) Bound(ctx context.Context) (Bound, error) {
	bound, err := one(ctx, s, scanBound, boundSQL)
	if err != nil {
		return Bound{}, fmt.Errorf("read what the ledger is bound to: %w", err)
	}
	return bound, nil
}

func scanBound(row pgx.CollectableRow) (b Bound, err error) {
	err = row.Scan(&b.Kind, &b.Region, &b.Account, &b.PhoneKey, &b.BoundAt, &b.BehindSince)
	return b, err
}

// BindAccount binds the ledger to an account, unless it is bound already or, with unused set, has sends:
// of processes that start together one binds it, and the others read what it is bound to.
func (s *Store) BindAccount(ctx context.Context, b Binding, unused bool) (Bound, error) {
	_, err := s.pool.Exec(ctx, `
		UPDATE ledger_identity SET carrier_kind = $1, carrier_region = $2, account_fingerprint = $3, bound_at = now()
		WHERE is_only AND account_fingerprint IS NULL
			AND NOT ($4 AND EXISTS (SELECT FROM notifications WHERE twilio_sid IS NOT NULL))`, b.Kind, b.Region, b.Account, unused)
	if err != nil {
		return Bound{}, fmt.Errorf("bind the ledger to its account: %w", err)
	}
	return s.Bound(ctx)
}

// BindPhoneKey binds the ledger to the PHONE_HASH_KEY with the fingerprint, unless it is bound already.
func (s *Store) BindPhoneKey(ctx context.Context, fingerprint []byte) (Bound, error) {
	_, err := s.pool.Exec(ctx, `
		UPDATE ledger_identity SET phone_key_fingerprint = $1
		WHERE is_only AND phone_key_fingerprint IS NULL`, fingerprint)
	if err != nil {
		return Bound{}, fmt.Errorf("bind the ledger to its PHONE_HASH_KEY: %w", err)
	}
	return s.Bound(ctx)
}

// NewestSend returns channel and SID of the newest notification that the carrier has accepted. The error
// is ErrNotFound when there is none.
func (s *Store) NewestSend(ctx context.Context) (channel notify.Channel, sid string, err error) {
	ctx = unhurried(ctx)
	type send struct {
		Channel notify.Channel
		SID     string
	}
	newest, err := one(ctx, s, pgx.RowToStructByPos[send], `
		SELECT channel::text, twilio_sid FROM notifications WHERE twilio_sid IS NOT NULL ORDER BY id DESC LIMIT 1`)
	if err != nil && !errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("read the newest send: %w", err)
	}
	return newest.Channel, newest.SID, err
}

// NewestRecipient returns a number (E.164) of the ledger and the keyed hash by which it is found. The
// error is ErrNotFound when the ledger has none.
func (s *Store) NewestRecipient(ctx context.Context) (number string, hash []byte, err error) {
	ctx = unhurried(ctx)
	type recipient struct {
		Number string
		Hash   []byte
	}
	newest, err := one(ctx, s, pgx.RowToStructByPos[recipient], `
		SELECT * FROM (SELECT to_number, to_hash FROM notifications ORDER BY id DESC LIMIT 1) AS sent
		UNION ALL
		SELECT * FROM (SELECT to_number, to_hash FROM list_members ORDER BY id DESC LIMIT 1) AS listed
		LIMIT 1`)
	if err != nil && !errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("read the newest recipient: %w", err)
	}
	return newest.Number, newest.Hash, err
}

// CodeLedgerMove is the stop code of senders that wait for the ledger to be moved, or resumed after it.
const CodeLedgerMove = "LEDGER_MOVE"

// Unfinished counts what is not final.
type Unfinished struct {
	Waiting int64 // accepted, and not claimed by anybody
	Sending int64 // claimed: it may be at the carrier
	Pending int64 // at the carrier, which has not told the outcome
}

// StopForMove stops every sender, so that nothing more is claimed, and counts what is open.
func (s *Store) StopForMove(ctx context.Context) (Unfinished, error) {
	_, err := s.pool.Exec(ctx, stopSenders+`SELECT`, CodeLedgerMove,
		"the ledger is moved to another account: resume the sender when that is done", 0)
	if err != nil {
		return Unfinished{}, fmt.Errorf("stop the senders: %w", err)
	}
	return s.unfinished(ctx, s.pool)
}

// Unfinished counts what is not final.
func (s *Store) Unfinished(ctx context.Context) (Unfinished, error) { return s.unfinished(ctx, s.pool) }

func (s *Store) unfinished(ctx context.Context, q querier) (Unfinished, error) {
	counts, err := oneOf(ctx, q, pgx.RowToStructByPos[Unfinished], `
		SELECT (SELECT count(*) FROM notifications WHERE status = 'ACCEPTED'),
			(SELECT count(*) FROM notifications WHERE status = 'SENDING'),
			(SELECT count(*) FROM notifications WHERE status = 'PENDING')`)
	if err != nil {
		return counts, fmt.Errorf("count what is open: %w", err)
	}
	return counts, nil
}

// ErrStillOpen means that the former account may still have something to tell.
var ErrStillOpen = errors.New("notifications are SENDING or PENDING")

// MoveLedger binds the ledger to another account. Senders stay stopped, with what waits behind them HELD.
// The error is ErrStillOpen while the former account may still have something to tell.
func (s *Store) MoveLedger(ctx context.Context, to Binding) error {
	ctx = unhurried(ctx)
	err := s.pool.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		// Claims that began before the senders were stopped end first, and none begins meanwhile.
		if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '5s'`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `LOCK TABLE senders, notifications IN SHARE ROW EXCLUSIVE MODE`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			UPDATE senders SET stopped_at = now(), stop_code = $1, stop_reason = $2
			WHERE stopped_at IS NULL`, CodeLedgerMove, "the ledger was moved to another account: resume the sender when that is meant"); err != nil {
			return err
		}
		left, err := s.unfinished(ctx, tx)
		if err != nil {
			return err
		}
		if left.Sending+left.Pending > 0 {
			return ErrStillOpen
		}
		_, err = tx.Exec(ctx, `
			UPDATE ledger_identity SET carrier_kind = $1, carrier_region = $2, account_fingerprint = $3, bound_at = now(),
				compared_on = NULL
			WHERE is_only`, to.Kind, to.Region, to.Account)
		return err
	})
	if err != nil && !errors.Is(err, ErrStillOpen) {
		err = fmt.Errorf("move the ledger: %w", err)
	}
	return err
}

// CancelWaiting cancels up to limit notifications that are accepted and not claimed, whose senders are
// stopped, and returns how many it canceled.
func (s *Store) CancelWaiting(ctx context.Context, limit int) (int64, error) {
	tag, err := s.pool.Exec(ctx, `
		WITH canceled AS (
			UPDATE notifications SET status = 'CANCELED', settled_at = clock_timestamp(), updated_at = clock_timestamp(), retry_at = NULL
			WHERE id IN (
				SELECT n.id FROM notifications n
				JOIN senders s ON s.id = n.sender_id AND s.stopped_at IS NOT NULL
				WHERE n.status = 'ACCEPTED'
				ORDER BY n.id
				LIMIT $1
				FOR UPDATE OF n SKIP LOCKED
			)
			RETURNING id, status
		)
		INSERT INTO notification_events (notification_id, kind, status, detail)
		SELECT id, $2, status, 'the ledger was moved to another account' FROM canceled`, limit, EventCanceled)
	if err != nil {
		return 0, fmt.Errorf("cancel what waits: %w", err)
	}
	return tag.RowsAffected(), nil
}
