package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// CodeLedgerBehind is the stop code of senders while the ledger lacks sends that the carrier has.
const CodeLedgerBehind = "LEDGER_BEHIND"

// ErrLedgerBehind means that nothing may be sent before the ledger is reconciled.
var ErrLedgerBehind = errors.New("the ledger lacks sends that the carrier has: run `todoku ledger reconcile` first")

// FallBehind stops every sender, because the ledger lacks sends that the carrier has had since a moment.
func (s *Store) FallBehind(ctx context.Context, since time.Time, reason string) error {
	return fallBehind(ctx, s.pool, since, reason)
}

func fallBehind(ctx context.Context, q querier, since time.Time, reason string) error {
	_, err := q.Exec(ctx, stopSenders+`
		UPDATE ledger_identity SET behind_since = least(behind_since, $4) WHERE is_only`,
		CodeLedgerBehind, reason+": run `todoku ledger reconcile`, which compares it with what the carrier has", 0, since)
	if err != nil {
		return fmt.Errorf("stop the senders: %w", err)
	}
	return nil
}

// CatchUp ends the state of FallBehind, and resumes the senders that were stopped by it. It returns how many.
func (s *Store) CatchUp(ctx context.Context) (resumed int, err error) {
	if _, err := s.pool.Exec(ctx, `UPDATE ledger_identity SET behind_since = NULL WHERE is_only`); err != nil {
		return 0, fmt.Errorf("note that the ledger is reconciled: %w", err)
	}
	stopped, err := many(ctx, s, pgx.RowTo[int64], `SELECT id FROM senders WHERE stop_code = $1 ORDER BY id`, CodeLedgerBehind)
	if err != nil {
		return 0, fmt.Errorf("list the stopped senders: %w", err)
	}
	for _, id := range stopped {
		if _, err := s.ResumeSender(ctx, id); err != nil {
			return resumed, err
		}
		resumed++
	}
	return resumed, nil
}

// Server names the database server that writes go to.
func (s *Store) Server(ctx context.Context) (string, error) { return serverOf(ctx, s.pool) }

// ComparedOn names the server on which the ledger was last held against the carrier's list; empty: it never
// was.
func (s *Store) ComparedOn(ctx context.Context) (string, error) {
	server, err := one(ctx, s, pgx.RowTo[string], `SELECT coalesce(compared_on, '') FROM ledger_identity WHERE is_only`)
	if err != nil {
		return "", fmt.Errorf("read where the ledger was compared: %w", err)
	}
	return server, nil
}

// IsCopyOf reports whether the server has another database than the one that was compared: a copy of it, or a
// dump of it that was restored. A standby that took over has the same.
func IsCopyOf(server, compared string) bool {
	return compared != "" && database(server) != database(compared)
}

// database is the part of a server's name that tells its database from others: cluster and number.
func database(server string) string {
	parts := strings.SplitN(server, "/", 3)
	return strings.Join(parts[:min(2, len(parts))], "/")
}

// MarkCompared notes that the ledger was held against the carrier's list on the server.
func (s *Store) MarkCompared(ctx context.Context, server string) error {
	if _, err := s.pool.Exec(ctx, `UPDATE ledger_identity SET compared_on = $1 WHERE is_only`, server); err != nil {
		return fmt.Errorf("note where the ledger was compared: %w", err)
	}
	return nil
}

// NewestEvent returns a moment up to which the ledger surely has everything: nothing older than it needs
// to be looked for at the carrier. It is nil when the ledger is empty.
func (s *Store) NewestEvent(ctx context.Context) (*time.Time, error) {
	ctx = unhurried(ctx)
	newest, err := one(ctx, s, pgx.RowTo[*time.Time], `
		SELECT greatest(
			(SELECT created_at FROM notifications ORDER BY id DESC LIMIT 1),
			(SELECT max(greatest(began_at, alive_at, ended_at)) FROM listings))`)
	if err != nil {
		return nil, fmt.Errorf("read the newest event: %w", err)
	}
	return newest, nil
}

// WaitingSend is a notification that is ACCEPTED.
type WaitingSend struct {
	ID           uuid.UUID
	SenderID     int64
	To           string
	CreatedAt    time.Time
	message      *string
	templateBody *string
	params       map[string]string
}

// Body is what is to be sent.
func (w WaitingSend) Body() (string, error) {
	return Claim{Message: w.message, TemplateBody: w.templateBody, Params: w.params}.Body()
}

// WaitingFor lists a channel's ACCEPTED notifications to people with these hashes, the oldest first.
func (s *Store) WaitingFor(ctx context.Context, channel notify.Channel, hashes [][]byte) ([]WaitingSend, error) {
	ctx = unhurried(ctx)
	waiting, err := many(ctx, s, func(row pgx.CollectableRow) (w WaitingSend, err error) {
		err = row.Scan(&w.ID, &w.SenderID, &w.To, &w.CreatedAt, &w.message, &w.templateBody, &w.params)
		return w, err
	}, `
		SELECT n.id, n.sender_id, n.to_number, n.created_at, coalesce(n.message, b.message), v.body, n.params
		FROM notification_recipients r
		JOIN notifications n ON n.id = r.notification_id
		LEFT JOIN batches b ON b.id = n.batch_id
		LEFT JOIN template_versions v ON v.template_id = coalesce(n.template_id, b.template_id)
			AND v.version = coalesce(n.template_version, b.template_version)
		WHERE r.to_hash = ANY ($2) AND n.channel = $1 AND n.status = 'ACCEPTED'
		ORDER BY n.id`, channel, hashes)
	if err != nil {
		return nil, fmt.Errorf("look for waiting notifications: %w", err)
	}
	return waiting, nil
}
