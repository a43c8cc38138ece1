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

// Notification is one row of the ledger as readers see it.
type Notification struct {
	ID              uuid.UUID
	Channel         notify.Channel
	Status          notify.Status // HELD where the row is ACCEPTED and its sender is stopped
	Reference       *string
	To              string // E.164
	ToNational      string
	Message         *string
	TemplateID      *int64
	TemplateVersion *int32
	Params          map[string]string
	Sender          string
	WorkflowID      *string
	Attempts        int32
	TwilioSID       *string
	TwilioStatus    *string
	TwilioErrorCode *string
	FailureCode     *string
	Segments        *int32
	DurationSeconds *int32
	AnsweredBy      *string
	CreatedAt       time.Time
	SendAt          time.Time
	SentAt          *time.Time
	SettledAt       *time.Time
	UpdatedAt       time.Time
}

// NewNotification is what a caller asks to be sent. It must be valid: the store checks only what
// the schema checks.
type NewNotification struct {
	ID              uuid.UUID
	Channel         notify.Channel
	Reference       *string
	To              notify.PhoneNumber
	ToHash          []byte
	Message         *string // or a template
	TemplateID      *int64
	TemplateVersion *int32
	Params          map[string]string
	SenderID        int64
	RequireHuman    bool
}

// notificationColumns are what RowToStructByPos needs for a Notification, from notifications n and senders s.
const notificationColumns = `n.id, n.channel::text,
	CASE WHEN n.status = 'ACCEPTED' AND s.stopped_at IS NOT NULL THEN 'HELD' ELSE n.status::text END,
	n.reference, n.to_number, n.to_national, n.message, n.template_id, n.template_version, n.params,
	s.address, n.workflow_id, n.attempts, n.twilio_sid, n.twilio_status, n.twilio_error_code,
	n.failure_code, n.segments, n.duration_seconds, n.answered_by,
	n.created_at, n.send_at, n.sent_at, n.settled_at, n.updated_at`

// Accept writes a notification to the ledger. Its commit is the acceptance: from here on the
// notification is sent, whatever dies.
func (s *Store) Accept(ctx context.Context, n NewNotification) (Notification, error) {
	accepted, err := one(ctx, s, pgx.RowToStructByPos[Notification], `
		WITH n AS (
			INSERT INTO notifications (
				id, channel, reference, to_number, to_national, to_hash,
				message, template_id, template_version, params, require_human, sender_id
			)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
			RETURNING *
		), event AS (
			INSERT INTO notification_events (notification_id, kind, status)
			SELECT id, $13, status FROM n
		)
		SELECT `+notificationColumns+`
		FROM n
		JOIN senders s ON s.id = n.sender_id`,
		n.ID, n.Channel, n.Reference, n.To.E164, n.To.National, n.ToHash,
		n.Message, n.TemplateID, n.TemplateVersion, n.Params, n.RequireHuman, n.SenderID, EventAccepted)
	if err != nil {
		return Notification{}, fmt.Errorf("accept notification: %w", err)
	}
	return accepted, nil
}

// Notification reads one row. The error is ErrNotFound when there is none.
func (s *Store) Notification(ctx context.Context, id uuid.UUID) (Notification, error) {
	n, err := one(ctx, s, pgx.RowToStructByPos[Notification], `
		SELECT `+notificationColumns+`
		FROM notifications n
		JOIN senders s ON s.id = n.sender_id
		WHERE n.id = $1`, id)
	if err != nil && !errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("read notification: %w", err)
	}
	return n, err
}
