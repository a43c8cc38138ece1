package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// EventKind says what happened to a notification at one moment of its timeline.
type EventKind string

const (
	EventAccepted     EventKind = "accepted"          // written to the ledger
	EventReceipt      EventKind = "receipt"           // the carrier said something
	EventConflict     EventKind = "conflicting_final" // a final word that contradicts an earlier final word
	EventSecondSID    EventKind = "second_sid"        // the carrier accepted the notification twice
	EventUnknownWord  EventKind = "unknown_word"      // a carrier status never heard of
	EventUnknownID    EventKind = "unknown_id"        // a receipt for an id that the ledger does not have
	EventTryFailed    EventKind = "try_failed"        // the carrier refused this try; another one follows
	EventRefused      EventKind = "refused"           // the carrier refused for good
	EventAmbiguous    EventKind = "ambiguous"         // the answer to a create was never read
	EventNotAtCarrier EventKind = "not_at_carrier"    // proved: an ambiguous send was never accepted
	EventExpired      EventKind = "deadline_passed"   // SEND_DEADLINE, AMBIGUOUS_SEND or NO_RECEIPT
	EventPanicked     EventKind = "panicked"          // an error of ours while the row was handled
	EventStopped      EventKind = "sender_stopped"    // an account or sender error; the row waits
	EventRescheduled  EventKind = "rescheduled"       // it is not sent before another moment now
	EventCancelAsked  EventKind = "cancel_requested"  // somebody asked to cancel it while a claim held it
	EventCanceled     EventKind = "canceled"          // it is not sent, because somebody asked for that
	EventFound        EventKind = "found_at_carrier"  // a send of ours that no row had; the row was made for it
	EventTakenOver    EventKind = "taken_over"        // what was found at the carrier was this notification
)

// Event is one entry of a notification's timeline.
type Event struct {
	ID             int64
	NotificationID uuid.UUID
	At             time.Time
	Kind           EventKind
	Status         *string // of the row after the event
	Source         *string // create, webhook or poll
	TwilioStatus   *string
	TwilioSID      *string
	ErrorCode      *string
	Detail         *string
}

// Events returns a notification's timeline, oldest first; at most 1,000 entries. Its first, the
// acceptance, is what its row says of that.
func (s *Store) Events(ctx context.Context, id uuid.UUID) ([]Event, error) {
	events, err := many(ctx, s, pgx.RowToStructByPos[Event], `
		SELECT id, notification_id, at, kind, status::text, source, twilio_status, twilio_sid, error_code, detail
		FROM (
			SELECT 0 AS id, id AS notification_id, created_at AS at, $2 AS kind,
				CASE WHEN skipped THEN 'SKIPPED' ELSE 'ACCEPTED' END::notification_status AS status,
				NULL AS source, NULL AS twilio_status, NULL AS twilio_sid,
				CASE WHEN skipped THEN failure_code END AS error_code, CASE WHEN batch_id IS NOT NULL THEN 'in a batch' END AS detail
			FROM notifications
			CROSS JOIN LATERAL (SELECT batch_id IS NOT NULL AND place IS NULL AS skipped) AS acceptance
			WHERE id = $1 AND found_at IS NULL
			UNION ALL
			SELECT id, notification_id, at, kind, status, source, twilio_status, twilio_sid, error_code, detail
			FROM notification_events
			WHERE notification_id = $1
		) AS events
		ORDER BY id
		LIMIT 1000`, id, EventAccepted)
	if err != nil {
		return nil, fmt.Errorf("read timeline: %w", err)
	}
	return events, nil
}
