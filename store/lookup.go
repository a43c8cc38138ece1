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

// Doubtful is a SENDING row whose claim has run out: the carrier may or may not have accepted it.
type Doubtful struct {
	Claim
	ClaimedAt     time.Time
	Deadline      time.Time     // of the claim: nothing was written to the wire after it
	SinceDeadline time.Duration // by the database's clock
	EmptyLookups  int16
	SinceLookup   time.Duration // since the latest empty lookup; 0 when there was none
	Twins         int64         // rows in the same doubt with the same sender, number and body, this one included
	Place         int64         // of this row among its twins, from 0
}

// TakeDoubtful takes over a SENDING row of the workflow under a fresh token, so that whoever
// claimed it before can no longer move it. For a row with another status, another owner, or a claim
// that runs for longer than grace after its deadline, it returns what it is without a token.
func (s *Store) TakeDoubtful(ctx context.Context, id uuid.UUID, workflowID string, grace time.Duration) (Doubtful, error) {
	d, err := one(ctx, s, pgx.RowToStructByPos[Doubtful], `
		WITH clock AS MATERIALIZED (
			SELECT clock_timestamp() AS now
		), taken AS (
			UPDATE notifications n SET claim_token = $4
			FROM clock
			WHERE n.id = $1 AND n.workflow_id = $2 AND n.status = 'SENDING' AND n.claim_deadline + $3::interval <= clock.now
			RETURNING n.id, n.claim_token
		), twins AS (
			SELECT t.id, count(*) OVER () AS count, row_number() OVER (ORDER BY t.claimed_at, t.id) - 1 AS place
			FROM notifications t
			JOIN notifications n ON n.id = $1
				AND t.to_hash = n.to_hash AND t.sender_id = n.sender_id
				AND (t.message, t.template_id, t.template_version, t.params)
					IS NOT DISTINCT FROM (n.message, n.template_id, n.template_version, n.params)
			WHERE t.status = 'SENDING'
		)
		SELECT n.id, n.channel::text, n.status::text, n.workflow_id, taken.claim_token,
			coalesce(n.claim_deadline - clock.now, '0'), '0'::interval, false,
			coalesce(clock.now - n.first_claimed_at, '0'), n.attempts,
			n.sender_id, s.address, n.to_number, n.message, v.body, n.params, n.require_human,
			coalesce(n.claimed_at, n.created_at), coalesce(n.claim_deadline, n.created_at),
			coalesce(clock.now - n.claim_deadline, '0'),
			n.empty_lookups, coalesce(clock.now - n.looked_up_at, '0'),
			coalesce(twins.count, 0), coalesce(twins.place, 0)
		FROM notifications n
		CROSS JOIN clock
		JOIN senders s ON s.id = n.sender_id
		LEFT JOIN taken ON true
		LEFT JOIN twins ON twins.id = n.id
		LEFT JOIN template_versions v ON v.template_id = n.template_id AND v.version = n.template_version
		WHERE n.id = $1`, id, workflowID, grace, uuid.New())
	if err != nil && !errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("take over doubtful notification: %w", err)
	}
	return d, err
}

// NoteEmptyLookup notes that a complete list of the carrier did not show the send.
func (s *Store) NoteEmptyLookup(ctx context.Context, id, token uuid.UUID) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE notifications SET empty_lookups = empty_lookups + 1, looked_up_at = clock_timestamp()
		WHERE id = $1 AND claim_token = $2`, id, token)
	if err != nil {
		return fmt.Errorf("note lookup: %w", err)
	}
	return nil
}

// NoteAmbiguous notes that the answer to a create was never read. The claim's holder knows that
// nothing more is written to the wire, so the claim runs out now; the row stays SENDING.
func (s *Store) NoteAmbiguous(ctx context.Context, id, token uuid.UUID, detail string) error {
	_, err := s.pool.Exec(ctx, `
		WITH doubtful AS (
			UPDATE notifications SET claim_deadline = least(claim_deadline, clock_timestamp())
			WHERE id = $1 AND claim_token = $2
			RETURNING id, status
		)
		INSERT INTO notification_events (notification_id, kind, status, detail)
		SELECT id, $3, status, $4 FROM doubtful`, id, token, EventAmbiguous, detail)
	if err != nil {
		return fmt.Errorf("note ambiguous send: %w", err)
	}
	return nil
}

// OwnedSIDs returns those of the SIDs that a row of the ledger has.
func (s *Store) OwnedSIDs(ctx context.Context, sids []string) (map[string]bool, error) {
	owned, err := many(ctx, s, pgx.RowTo[string], `SELECT twilio_sid FROM notifications WHERE twilio_sid = ANY ($1)`, sids)
	if err != nil {
		return nil, fmt.Errorf("look for owned SIDs: %w", err)
	}
	set := make(map[string]bool, len(owned))
	for _, sid := range owned {
		set[sid] = true
	}
	return set, nil
}

// Outstanding is what the check of a sent notification needs to know.
type Outstanding struct {
	ID        uuid.UUID
	Channel   notify.Channel
	Status    notify.Status
	TwilioSID *string
	SinceSent time.Duration // by the database's clock; 0 before it was sent
}

// Outstanding reads a notification for a status check. The error is ErrNotFound when there is none.
func (s *Store) Outstanding(ctx context.Context, id uuid.UUID) (Outstanding, error) {
	o, err := one(ctx, s, pgx.RowToStructByPos[Outstanding], `
		SELECT id, channel::text, status::text, twilio_sid, coalesce(clock_timestamp() - sent_at, '0')
		FROM notifications
		WHERE id = $1`, id)
	if err != nil && !errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("read outstanding notification: %w", err)
	}
	return o, err
}
