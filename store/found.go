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

// Found is a send that the carrier shows and no row has.
type Found struct {
	SenderID  int64
	To        notify.PhoneNumber
	ToHash    []byte
	Body      string // empty for a call
	CreatedAt time.Time
	Receipt   notify.Receipt // with its SID
}

// AddFound writes sends that were found at the carrier to the ledger, each marked as such: PENDING,
// without a workflow. It returns the rows that it settled by their receipts. A SID that a row has by
// now is left out.
func (s *Store) AddFound(ctx context.Context, found ...Found) ([]Settled, error) {
	ctx = unhurried(ctx)
	var receipts []notify.Receipt
	for _, f := range found {
		id, err := newIDAt(f.CreatedAt)
		if err != nil {
			return nil, err
		}
		tag, err := s.pool.Exec(ctx, `
			WITH row AS (
				INSERT INTO notifications (id, channel, status, to_number, to_national, to_hash, message, sender_id,
					twilio_sid, created_at, send_at, started_at, sent_at, found_at)
				VALUES ($1, $2, 'PENDING', $3, $4, $5, $6, $7, $8, $9, $9, clock_timestamp(), $9, clock_timestamp())
				ON CONFLICT DO NOTHING
				RETURNING id, status, twilio_sid
			)
			INSERT INTO notification_events (notification_id, kind, status, source, twilio_sid)
			SELECT id, $10, status, $11, twilio_sid FROM row`,
			id, f.Receipt.Channel, f.To.E164, f.To.National, f.ToHash, f.Body, f.SenderID,
			f.Receipt.SID, CreatedAt(id), EventFound, notify.FromPoll)
		if err != nil {
			return nil, fmt.Errorf("add a send that was found at the carrier: %w", err)
		}
		if tag.RowsAffected() == 1 {
			f.Receipt.NotificationID = id.String()
			receipts = append(receipts, f.Receipt)
		}
	}
	return s.Settle(ctx, receipts...)
}

// takeOver gives the SID of a row that was found at the carrier, and all that the carrier said of it,
// to the row that it belongs to, as a receipt has told. The found row goes.
func (s *Store) takeOver(ctx context.Context, settled *Settled, found uuid.UUID) error {
	type told struct {
		Channel    notify.Channel
		SID        string
		Word       string
		ErrorCode  string
		Segments   int
		Duration   *int
		AnsweredBy string
	}
	of, err := one(ctx, s, pgx.RowToStructByPos[told], `
		WITH row AS MATERIALIZED (
			SELECT id, twilio_sid, found_at
			FROM notifications
			WHERE id IN ($1, $2)
			ORDER BY id
			FOR UPDATE
		), found AS (
			DELETE FROM notifications n
			USING row AS ours, row AS theirs
			WHERE ours.id = $1 AND ours.twilio_sid IS NULL AND theirs.id = $2 AND theirs.found_at IS NOT NULL AND n.id = theirs.id
			RETURNING n.*
		), recipient AS (
			DELETE FROM notification_recipients r
			USING found
			WHERE r.to_hash = found.to_hash AND r.notification_id = found.id
		), ours AS (
			UPDATE notifications n SET
				twilio_sid = found.twilio_sid, sent_at = least(n.sent_at, found.sent_at), updated_at = clock_timestamp()
			FROM found
			WHERE n.id = $1
			RETURNING n.id, n.status, n.twilio_sid
		), event AS (
			INSERT INTO notification_events (notification_id, kind, status, twilio_sid, detail)
			SELECT id, $3, status, twilio_sid, 'it was ' || $2::uuid FROM ours
		)
		SELECT channel::text, twilio_sid, coalesce(twilio_status, ''), coalesce(twilio_error_code, ''),
			coalesce(segments, 0), duration_seconds, coalesce(answered_by, '')
		FROM found`, settled.ID, found, EventTakenOver)
	if errors.Is(err, ErrNotFound) {
		return nil // another receipt was faster
	}
	if err != nil {
		return fmt.Errorf("take over a send that was found at the carrier: %w", err)
	}
	again, err := s.Settle(ctx, notify.Receipt{NotificationID: settled.ID.String(), Channel: of.Channel, SID: of.SID, Word: of.Word,
		ErrorCode: of.ErrorCode, Segments: of.Segments, Duration: of.Duration, AnsweredBy: of.AnsweredBy, Source: notify.FromPoll})
	for _, a := range again {
		settled.Status, settled.ErrorCode = a.Status, a.ErrorCode
	}
	return err
}

// DoubtfulOwners returns the owners of a channel's SENDING rows to these numbers (E.164), and whether
// each of those rows' claims has run out longer than grace ago.
func (s *Store) DoubtfulOwners(ctx context.Context, channel notify.Channel, to []string, grace time.Duration) ([]DoubtfulOwner, error) {
	owners, err := many(ctx, s, pgx.RowToStructByPos[DoubtfulOwner], `
		SELECT workflow_id, to_number, bool_and(claim_deadline <= clock_timestamp() - $3::interval)
		FROM notifications
		WHERE channel = $1 AND status = 'SENDING' AND to_number = ANY ($2)
		GROUP BY 1, 2
		ORDER BY 1, 2`, channel, to, grace)
	if err != nil {
		return nil, fmt.Errorf("look for doubtful notifications: %w", err)
	}
	return owners, nil
}

// DoubtfulOwner is a workflow with rows to one number whose creates may be at the carrier.
type DoubtfulOwner struct {
	WorkflowID string
	To         string
	RunOut     bool // no claim of those rows is held any more
}
