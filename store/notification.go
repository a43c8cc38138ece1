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
	Status          notify.Status // HELD where the row is ACCEPTED and its sender is stopped or its batch paused
	Reference       *string
	BatchID         *uuid.UUID
	ScheduleID      *int64 // of its batch
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

// notificationColumns are what RowToStructByPos needs for a Notification, from seenFrom. What of a
// canceled batch was not sent reads as CANCELED before it is written down.
const notificationColumns = `n.id, n.channel::text,
	CASE WHEN n.status <> 'ACCEPTED' THEN n.status::text
		WHEN b.canceled_at IS NOT NULL THEN 'CANCELED'
		WHEN s.stopped_at IS NOT NULL OR b.paused_at IS NOT NULL OR ` + queueFull + ` THEN 'HELD'
		ELSE 'ACCEPTED' END,
	n.reference, n.batch_id, b.schedule_id, n.to_number, n.to_national,
	coalesce(n.message, b.message), coalesce(n.template_id, b.template_id), coalesce(n.template_version, b.template_version), n.params,
	s.address, n.workflow_id, n.attempts, n.twilio_sid, n.twilio_status, n.twilio_error_code,
	n.failure_code, n.segments, n.duration_seconds, n.answered_by,
	n.created_at, greatest(n.send_at, b.send_at), n.sent_at, n.settled_at, n.updated_at`

// seenFrom joins notifications n with their senders s and, where they have one, their batches b.
const seenFrom = `n
		JOIN senders s ON s.id = n.sender_id
		LEFT JOIN batches b ON b.id = n.batch_id`

// Notification reads one row. The error is ErrNotFound when there is none.
func (s *Store) Notification(ctx context.Context, id uuid.UUID) (Notification, error) {
	n, err := one(ctx, s, pgx.RowToStructByPos[Notification], `
		SELECT `+notificationColumns+`
		FROM notifications `+seenFrom+`
		WHERE n.id = $1`, id)
	if err != nil && !errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("read notification: %w", err)
	}
	return n, err
}
