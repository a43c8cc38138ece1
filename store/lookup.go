package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Doubtful is a SENDING row whose claim has run out: the carrier may or may not have accepted it.
// Its token is a fresh one.
type Doubtful struct {
	Claim
	AcceptedAt    time.Time // or first claimed, where that was earlier by the clocks
	ClaimedAt     time.Time
	Deadline      time.Time     // of the claim: nothing was written to the wire after it
	SinceDeadline time.Duration // by the database's clock
	Absent        time.Duration // since a complete list of the carrier first lacked it; 0 when none was read
}

// TakeDoubtful takes over the owner's SENDING rows whose claims ran out longer than grace ago, each
// under a fresh token, so that whoever claimed them before can no longer move them.
func (s *Store) TakeDoubtful(ctx context.Context, owner Owner, grace time.Duration) ([]Doubtful, error) {
	rows, err := many(ctx, s, pgx.RowToStructByPos[Doubtful], `
		WITH clock AS MATERIALIZED (
			SELECT clock_timestamp() AS now
		), taken AS (
			UPDATE notifications n SET claim_token = gen_random_uuid()
			FROM clock
			WHERE n.id IN (
				SELECT id FROM notifications
				WHERE workflow_id = $1 AND status = 'SENDING' AND claim_deadline <= clock_timestamp() - $2::interval
				ORDER BY id
				FOR UPDATE
			)
			RETURNING n.*
		)
		SELECT n.id, n.channel::text, n.claim_token, coalesce(clock.now - n.first_claimed_at, '0'), n.attempts,
			n.sender_id, s.address, n.to_number, coalesce(n.message, b.message), v.body, n.params, n.require_human,
			least(n.created_at, n.first_claimed_at), n.claimed_at, n.claim_deadline, clock.now - n.claim_deadline,
			coalesce(clock.now - n.absent_since, '0')
		FROM taken n
		CROSS JOIN clock
		JOIN senders s ON s.id = n.sender_id
		LEFT JOIN batches b ON b.id = n.batch_id
		LEFT JOIN template_versions v ON v.template_id = coalesce(n.template_id, b.template_id)
			AND v.version = coalesce(n.template_version, b.template_version)
		ORDER BY n.id`, owner.WorkflowID, grace)
	if err != nil {
		return nil, fmt.Errorf("take over doubtful notifications: %w", err)
	}
	return rows, nil
}

// Rivals are the other SENDING rows of a doubtful row's sender to its number: what the carrier shows
// may be theirs.
type Rivals struct {
	InFlight int64 // their claims are held: an answer may still come
	Others   int64 // as doubtful as this one, with another text
	Twins    int64 // as doubtful as this one, with the same text; this one included
	Place    int64 // of this one among its twins, from 0
}

// Rivals counts the rivals of a doubtful row. It is asked after the carrier's list was read and
// before OwnedSIDs: then a send in the list belongs to a rival that is counted here, to a row that
// has its SID by now, or to nobody else. grace is as in TakeDoubtful.
func (s *Store) Rivals(ctx context.Context, id uuid.UUID, grace time.Duration) (Rivals, error) {
	r, err := one(ctx, s, pgx.RowToStructByPos[Rivals], `
		SELECT
			count(*) FILTER (WHERE NOT doubtful AND t.id <> n.id),
			count(*) FILTER (WHERE doubtful AND NOT same AND t.id <> n.id),
			count(*) FILTER (WHERE doubtful AND same OR t.id = n.id),
			count(*) FILTER (WHERE doubtful AND same AND (t.claimed_at, t.id) < (n.claimed_at, n.id))
		FROM notifications n
		LEFT JOIN batches b ON b.id = n.batch_id
		JOIN notification_recipients r ON r.to_hash = n.to_hash
		JOIN LATERAL (
			SELECT t.* FROM notifications t WHERE t.id = r.notification_id
			OFFSET 0 -- of the few to the number, and not of all that are SENDING
		) AS t ON t.sender_id = n.sender_id AND t.status = 'SENDING'
		LEFT JOIN batches tb ON tb.id = t.batch_id
		CROSS JOIN LATERAL (
			SELECT t.claim_deadline <= clock_timestamp() - $2::interval AS doubtful,
				(coalesce(t.message, tb.message), coalesce(t.template_id, tb.template_id), coalesce(t.template_version, tb.template_version), t.params)
					IS NOT DISTINCT FROM
					(coalesce(n.message, b.message), coalesce(n.template_id, b.template_id), coalesce(n.template_version, b.template_version), n.params) AS same
		) AS told
		WHERE n.id = $1`, id, grace)
	if err != nil {
		return r, fmt.Errorf("count rivals: %w", err)
	}
	return r, nil
}

// NoteAbsent notes that a complete list of the carrier lacks the send. The first time counts.
func (s *Store) NoteAbsent(ctx context.Context, id, token uuid.UUID) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE notifications SET absent_since = clock_timestamp()
		WHERE id = $1 AND claim_token = $2 AND absent_since IS NULL`, id, token)
	if err != nil {
		return fmt.Errorf("note absence at the carrier: %w", err)
	}
	return nil
}

// NoteAmbiguous notes that the answer to a create was never read. The claim's holder knows that
// nothing more is written to the wire, so the claim runs out now; the row stays SENDING.
func (s *Store) NoteAmbiguous(ctx context.Context, id, token uuid.UUID, detail string) error {
	return s.noteDoubt(ctx, id, token, EventAmbiguous, detail)
}

// NotePanicked is NoteAmbiguous for a request whose handling panicked.
func (s *Store) NotePanicked(ctx context.Context, id, token uuid.UUID, detail string) error {
	return s.noteDoubt(ctx, id, token, EventPanicked, detail)
}

// Panics is how often the handling of the row panicked.
func (s *Store) Panics(ctx context.Context, id uuid.UUID) (int64, error) {
	n, err := one(ctx, s, pgx.RowTo[int64], `
		SELECT count(*) FROM notification_events WHERE notification_id = $1 AND kind = $2`, id, EventPanicked)
	if err != nil {
		return 0, fmt.Errorf("count the panics of a notification: %w", err)
	}
	return n, nil
}

func (s *Store) noteDoubt(ctx context.Context, id, token uuid.UUID, kind EventKind, detail string) error {
	_, err := s.pool.Exec(ctx, `
		WITH doubtful AS (
			UPDATE notifications SET claim_deadline = least(claim_deadline, clock_timestamp())
			WHERE id = $1 AND claim_token = $2
			RETURNING id, status
		)
		INSERT INTO notification_events (notification_id, kind, status, detail)
		SELECT id, $3, status, $4 FROM doubtful`, id, token, kind, detail)
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
