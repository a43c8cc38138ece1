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

// CarrierCheck is the latest check of a batch against what the carrier itself lists.
type CarrierCheck struct {
	ID            uuid.UUID
	BatchID       uuid.UUID
	RequestedAt   time.Time
	StartedAt     *time.Time
	EndedAt       *time.Time
	Failure       *string // why it ended without a result, or why it could not be made yet
	Compared      int32   // notifications of the batch that the carrier has accepted, by the ledger
	Listed        int32   // sends that the carrier showed
	Unverified    int32   // notifications that its list lacks and that were not asked for one by one
	SecondSIDs    int32   // how many differences of each kind there are
	Extra         int32
	Missing       int32
	StatusDiffers int32
}

// Differences is how many there are, of all kinds.
func (c CarrierCheck) Differences() int32 {
	return c.SecondSIDs + c.Extra + c.Missing + c.StatusDiffers
}

// DifferenceKind says how the carrier and the ledger differ.
type DifferenceKind string

// The kinds of differences, the gravest first.
const (
	SecondSID        DifferenceKind = "second_sid"         // the carrier has accepted the notification twice, as a receipt has told
	ExtraAtCarrier   DifferenceKind = "extra_at_carrier"   // it shows a send to a recipient of the batch, from its sender, that no notification asked for
	MissingAtCarrier DifferenceKind = "missing_at_carrier" // it has no send with the notification's SID
	StatusDiffers    DifferenceKind = "status_differs"     // it knows another outcome
)

// CarrierDifference is one of them.
type CarrierDifference struct {
	Kind             DifferenceKind
	Row              int32 // of the request
	NotificationID   uuid.UUID
	To               string
	Status           notify.Status // as the ledger has it now
	TwilioStatus     *string
	TwilioSID        string  // of the send at the carrier
	CarrierStatus    *string // nil where it has none
	CarrierCreatedAt *time.Time
}

// MaxDifferences is how many differences of a check are kept.
const MaxDifferences = 1000

const (
	carrierCheckColumns = `id, batch_id, requested_at, started_at, ended_at, failure, compared, listed, unverified, second_sids, extra, missing, status_differs`

	// silentCheck is how long after its last sign of life a check counts as lost.
	silentCheck = 15 * time.Minute
)

// RequestCarrierCheck asks for a check of the batch, which a worker then makes. While one is under way
// that one is returned. The error is ErrNotFound when there is no such batch.
func (s *Store) RequestCarrierCheck(ctx context.Context, batch uuid.UUID) (CarrierCheck, error) {
	_, err := s.pool.Exec(ctx, `
		INSERT INTO carrier_checks AS c (id, batch_id)
		SELECT gen_random_uuid(), id FROM batches WHERE id = $1
		ON CONFLICT (batch_id) DO UPDATE SET
			id = EXCLUDED.id, requested_at = EXCLUDED.requested_at, alive_at = EXCLUDED.alive_at, started_at = NULL, ended_at = NULL, failure = NULL,
			compared = 0, listed = 0, unverified = 0, second_sids = 0, extra = 0, missing = 0, status_differs = 0
		WHERE c.ended_at IS NOT NULL OR c.alive_at < clock_timestamp() - $2::interval AND c.started_at IS NOT NULL`, batch, silentCheck)
	if err != nil {
		return CarrierCheck{}, fmt.Errorf("ask for a carrier check: %w", err)
	}
	return s.CarrierCheck(ctx, batch)
}

// CarrierCheck reads the latest check of a batch. The error is ErrNotFound when none was asked for.
func (s *Store) CarrierCheck(ctx context.Context, batch uuid.UUID) (CarrierCheck, error) {
	check, err := one(ctx, s, pgx.RowToStructByPos[CarrierCheck], `
		SELECT `+carrierCheckColumns+` FROM carrier_checks WHERE batch_id = $1`, batch)
	if err != nil && !errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("read carrier check: %w", err)
	}
	return check, err
}

// CarrierDifferences lists the first differences that the batch's check has found, MaxDifferences at
// most, the gravest kind first and by rows of the request.
func (s *Store) CarrierDifferences(ctx context.Context, batch uuid.UUID) ([]CarrierDifference, error) {
	found, err := many(ctx, s, pgx.RowToStructByPos[CarrierDifference], `
		SELECT d.kind, n.batch_row, n.id, n.to_number, n.status::text, n.twilio_status, d.twilio_sid, d.carrier_status, d.carrier_created_at
		FROM carrier_differences d
		JOIN notifications n ON n.id = d.notification_id
		WHERE d.batch_id = $1
		ORDER BY d.place`, batch)
	if err != nil {
		return nil, fmt.Errorf("list differences from the carrier: %w", err)
	}
	return found, nil
}

// UnstartedCarrierChecks lists checks that were asked for and have no workflow yet.
func (s *Store) UnstartedCarrierChecks(ctx context.Context, limit int) ([]CarrierCheck, error) {
	waiting, err := many(ctx, s, pgx.RowToStructByPos[CarrierCheck], `
		SELECT `+carrierCheckColumns+` FROM carrier_checks
		WHERE started_at IS NULL AND ended_at IS NULL
		ORDER BY requested_at
		LIMIT $1`, limit)
	if err != nil {
		return nil, fmt.Errorf("list unstarted carrier checks: %w", err)
	}
	return waiting, nil
}

// MarkCarrierCheckStarted notes that Temporal has acknowledged the check's workflow.
func (s *Store) MarkCarrierCheckStarted(ctx context.Context, id uuid.UUID) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE carrier_checks SET started_at = clock_timestamp(), alive_at = clock_timestamp()
		WHERE id = $1 AND started_at IS NULL`, id)
	if err != nil {
		return fmt.Errorf("mark a carrier check started: %w", err)
	}
	return nil
}

// NoteCarrierCheckError notes why a check could not be made yet. The check goes on.
func (s *Store) NoteCarrierCheckError(ctx context.Context, id uuid.UUID, why string) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE carrier_checks SET failure = $2, alive_at = clock_timestamp()
		WHERE id = $1 AND ended_at IS NULL`, id, why)
	if err != nil {
		return fmt.Errorf("note the error of a carrier check: %w", err)
	}
	return nil
}

// FailCarrierCheck ends a check without a result.
func (s *Store) FailCarrierCheck(ctx context.Context, id uuid.UUID, why string) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE carrier_checks SET ended_at = clock_timestamp(), failure = $2
		WHERE id = $1 AND ended_at IS NULL`, id, why)
	if err != nil {
		return fmt.Errorf("end a carrier check: %w", err)
	}
	return nil
}
