package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// Unsettled is a PENDING notification that the carrier is to be asked for.
type Unsettled struct {
	ID        uuid.UUID
	Channel   notify.Channel
	TwilioSID *string
	SinceSent time.Duration // by the database's clock
	Cancel    bool          // somebody wants the carrier to cancel the call, which it has queued
	Listed    bool          // a listing that began after the row's time had come covered it, and did not show it
}

// unsettledColumns are what RowToStructByPos needs for an Unsettled, from notifications n; $1 is how
// long after sending the carrier is asked for the first time.
const (
	unsettledColumns = `n.id, n.channel::text, n.twilio_sid, clock_timestamp() - n.sent_at,
		n.channel = 'CALL' AND n.cancel_requested_at IS NOT NULL AND n.queued, ` + coveredSQL
	checkAt    = `coalesce(n.check_at, n.sent_at + $1::interval)`
	coveredSQL = `EXISTS (
		SELECT FROM listings l
		WHERE l.channel = n.channel AND l.began_at >= ` + checkAt + ` AND n.sent_at BETWEEN l.covers_from AND l.covers_until
	)`
)

// Unsettled lists the owner's PENDING rows whose time to be asked for has come, the longest
// overdue first. delay is how long after sending that is for the first time.
func (s *Store) Unsettled(ctx context.Context, owner Owner, delay time.Duration, limit int) ([]Unsettled, error) {
	rows, err := many(ctx, s, pgx.RowToStructByPos[Unsettled], `
		SELECT `+unsettledColumns+`
		FROM notifications n
		WHERE n.workflow_id = $2 AND n.status = 'PENDING' AND `+checkAt+` <= clock_timestamp()
		ORDER BY `+checkAt+`, n.id
		LIMIT $3`, delay, owner.WorkflowID, limit)
	if err != nil {
		return nil, fmt.Errorf("list unsettled notifications: %w", err)
	}
	return rows, nil
}

// Overdue lists a channel's PENDING rows, whoever owns them, whose time to be asked for came longer
// than grace ago: their owners are gone, or know nothing of it.
func (s *Store) Overdue(ctx context.Context, channel notify.Channel, delay, grace time.Duration, limit int) ([]Unsettled, error) {
	rows, err := many(ctx, s, pgx.RowToStructByPos[Unsettled], `
		SELECT `+unsettledColumns+`
		FROM notifications n
		WHERE n.channel = $2 AND n.status = 'PENDING'
			AND n.sent_at <= clock_timestamp() - $3::interval AND `+checkAt+` <= clock_timestamp() - $3::interval
		ORDER BY `+checkAt+`, n.id
		LIMIT $4`, delay, channel, grace, limit)
	if err != nil {
		return nil, fmt.Errorf("list overdue notifications: %w", err)
	}
	return rows, nil
}

// CheckTerms say when the carrier is asked for a notification, and until when.
type CheckTerms struct {
	Delay        time.Duration // between sending and the first time
	LongestPause time.Duration
	Deadline     time.Duration // since sending; past it the outcome is UNKNOWN
	Message      string        // for people, of a notification whose outcome is UNKNOWN
}

// StillPending notes that the carrier, asked for these rows, told no outcome. They are asked for
// again: each pause is as long as all the time before it, up to the longest, and the last one ends
// at the deadline. Rows past their deadline become UNKNOWN (NO_RECEIPT) and are returned. Rows that
// were settled in the meantime, or whose time to be asked for has not come, are left alone.
func (s *Store) StillPending(ctx context.Context, ids []uuid.UUID, terms CheckTerms) ([]Settled, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	silent, err := many(ctx, s, pgx.RowToStructByPos[Settled], `
		WITH row AS MATERIALIZED (
			SELECT n.id, n.channel, n.status, n.workflow_id, n.sender_id, n.twilio_sid, n.twilio_error_code,
				clock_timestamp() - n.sent_at AS since
			FROM notifications n
			WHERE n.id = ANY ($2) AND n.status = 'PENDING' AND `+checkAt+` <= clock_timestamp()
			ORDER BY n.id
			FOR UPDATE
		), postponed AS (
			UPDATE notifications n SET check_at = clock_timestamp()
				+ greatest('1 second', least(greatest(since, $1), $3::interval, $4::interval - since))
			FROM row
			WHERE n.id = row.id AND since < $4
		), expired AS (
			UPDATE notifications n SET
				status = $8, failure_code = $5, error_message = $6,
				settled_at = clock_timestamp(), updated_at = clock_timestamp()
			FROM row
			WHERE n.id = row.id AND since >= $4
			RETURNING n.id, n.status
		), event AS (
			INSERT INTO notification_events (notification_id, kind, status, error_code)
			SELECT id, $7, status, $5 FROM expired
		)
		SELECT row.id, row.channel::text, row.status::text, expired.status::text, row.workflow_id, row.sender_id,
			row.twilio_sid, row.twilio_error_code, false, false, false
		FROM expired
		JOIN row USING (id)
		ORDER BY row.id`,
		terms.Delay, ids, terms.LongestPause, terms.Deadline, notify.CodeNoReceipt, terms.Message, EventExpired, notify.Forsake.To)
	if err != nil {
		return nil, fmt.Errorf("set the next status check: %w", err)
	}
	return silent, nil
}
