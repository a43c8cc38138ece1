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

// ClaimTerms are the conditions under which a worker takes a notification.
type ClaimTerms struct {
	ID           uuid.UUID
	WorkflowID   string        // the claimant; the first one owns the row for good
	Lease        time.Duration // nothing is written to the wire later than this after the claim
	SMSInterval  time.Duration // between two creates of one sender, over all workers; 0: no pacing
	CallInterval time.Duration
	Ahead        time.Duration // how far ahead a slot may be reserved
}

// Claim is the answer to an attempt to claim: either a token to post under, or why there is none.
type Claim struct {
	ID           uuid.UUID
	Channel      notify.Channel
	Status       notify.Status // SENDING under our Token, or the status that the row has anyway
	WorkflowID   *string       // the owner
	Token        *uuid.UUID    // set only when the claim succeeded
	LeaseLeft    time.Duration // of whoever holds the row SENDING
	Wait         time.Duration // until the row may be tried or its sender has a slot; 0 when claimed
	Held         bool          // the sender is stopped
	SinceFirst   time.Duration // since the row's first claim; 0 before it
	Attempts     int32         // this one included when claimed
	SenderID     int64
	From         string // the sender's number or Messaging Service
	To           string
	Message      *string
	TemplateBody *string
	Params       map[string]string
	RequireHuman bool
}

// Body is what is sent: the message, or the pinned template version filled with the parameters.
func (c Claim) Body() (string, error) {
	if c.Message != nil {
		return *c.Message, nil
	}
	if c.TemplateBody == nil {
		return "", errors.New("the notification has neither message nor template")
	}
	template, err := notify.ParseTemplate(*c.TemplateBody)
	if err != nil {
		return "", err
	}
	return template.Render(c.Params)
}

// Claim takes an ACCEPTED notification that is due, whose sender is not stopped and has a free
// slot, and moves it to SENDING, in one committed statement. Claim.Wait says how long after the
// call the reserved slot begins (claimed), or when to ask again (not claimed).
func (s *Store) Claim(ctx context.Context, terms ClaimTerms) (Claim, error) {
	claim, err := one(ctx, s, pgx.RowToStructByPos[Claim], `
		WITH clock AS MATERIALIZED (
			SELECT clock_timestamp() AS now
		), row AS MATERIALIZED (
			SELECT n.*, s.address, s.stopped_at, s.next_slot,
				CASE n.channel WHEN 'CALL' THEN $7::interval ELSE $4::interval END AS pace,
				greatest(n.send_at, n.retry_at) AS due_at,
				n.status = 'ACCEPTED' AND coalesce(n.workflow_id, $2) = $2
					AND greatest(n.send_at, n.retry_at) <= clock_timestamp() AS claimable
			FROM notifications n
			JOIN senders s ON s.id = n.sender_id
			WHERE n.id = $1
			FOR UPDATE OF n
		), slot AS (
			UPDATE senders s SET next_slot = greatest(s.next_slot, clock.now) + row.pace
			FROM row, clock
			WHERE s.id = row.sender_id AND row.claimable AND s.stopped_at IS NULL
				AND s.next_slot <= clock.now + $5::interval
			RETURNING s.next_slot - row.pace AS starts_at
		), claimed AS (
			UPDATE notifications n SET
				status = 'SENDING', workflow_id = $2, claim_token = $6, attempts = n.attempts + 1,
				claimed_at = clock.now, claim_deadline = clock.now + $3::interval,
				first_claimed_at = coalesce(n.first_claimed_at, clock.now),
				retry_at = NULL, empty_lookups = 0, looked_up_at = NULL, updated_at = clock.now
			FROM slot, clock
			WHERE n.id = $1
			RETURNING n.status, n.workflow_id, n.claim_token, n.claim_deadline, n.attempts, slot.starts_at
		)
		SELECT row.id, row.channel::text,
			coalesce(claimed.status, row.status)::text,
			coalesce(claimed.workflow_id, row.workflow_id),
			claimed.claim_token,
			coalesce(coalesce(claimed.claim_deadline, row.claim_deadline) - clock.now, '0'),
			greatest('0', CASE
				WHEN claimed.status IS NOT NULL THEN claimed.starts_at
				WHEN row.due_at > clock.now THEN row.due_at
				ELSE row.next_slot - $5::interval
			END - clock.now),
			row.status = 'ACCEPTED' AND row.stopped_at IS NOT NULL,
			coalesce(clock.now - row.first_claimed_at, '0'),
			coalesce(claimed.attempts, row.attempts),
			row.sender_id, row.address, row.to_number, row.message, v.body, row.params, row.require_human
		FROM row
		CROSS JOIN clock
		LEFT JOIN claimed ON true
		LEFT JOIN template_versions v ON v.template_id = row.template_id AND v.version = row.template_version`,
		terms.ID, terms.WorkflowID, terms.Lease, terms.SMSInterval, terms.Ahead, uuid.New(), terms.CallInterval)
	if err != nil && !errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("claim notification: %w", err)
	}
	return claim, err
}

// Retry says when a row that was given back may be tried again, and whether the try counts.
type Retry struct {
	After     time.Duration
	Uncounted bool // a 429, a stop, or a request that was never written
	Kind      EventKind
	ErrorCode string // the carrier's, where it gave one
	Detail    string
}

// GiveBack ends a claim whose create the carrier surely did not accept: the row is ACCEPTED again
// and may be posted once more. It reports whether the row still held the token.
func (s *Store) GiveBack(ctx context.Context, id, token uuid.UUID, retry Retry) (bool, error) {
	return s.endClaim(ctx, id, token, notify.GiveBack, retry, Failure{Kind: retry.Kind, ErrorCode: retry.ErrorCode, Detail: retry.Detail})
}

// Failure says why a row gets its final status from us.
type Failure struct {
	Kind        EventKind
	ErrorCode   string // the carrier's, in digits, or empty
	FailureCode string // ours, or empty
	Message     string // for people
	Detail      string
}

// Refuse ends a claim for good: the carrier refused, or the deadline passed.
func (s *Store) Refuse(ctx context.Context, id, token uuid.UUID, failure Failure) (bool, error) {
	return s.endClaim(ctx, id, token, notify.Refuse, Retry{}, failure)
}

// Doubt ends a claim of which nobody can tell whether the carrier accepted it.
func (s *Store) Doubt(ctx context.Context, id, token uuid.UUID, failure Failure) (bool, error) {
	return s.endClaim(ctx, id, token, notify.Doubt, Retry{}, failure)
}

func (s *Store) endClaim(ctx context.Context, id, token uuid.UUID, move notify.Move, retry Retry, why Failure) (bool, error) {
	tag, err := s.pool.Exec(ctx, `
		WITH moved AS (
			UPDATE notifications SET
				status = $4, claim_token = NULL, claim_deadline = NULL,
				retry_at = CASE WHEN $5::interval > '0' THEN now() + $5 END,
				attempts = attempts - CASE WHEN $6 THEN 1 ELSE 0 END,
				twilio_error_code = nullif($7, ''), failure_code = nullif($8, ''), error_message = nullif($9, ''),
				settled_at = CASE WHEN $10 THEN now() END, updated_at = now()
			WHERE id = $1 AND claim_token = $2 AND status = $3
			RETURNING id, status
		)
		INSERT INTO notification_events (notification_id, kind, status, error_code, detail)
		SELECT id, $11, status, coalesce(nullif($7, ''), nullif($8, '')), nullif($12, '') FROM moved`,
		id, token, move.From, move.To, retry.After, retry.Uncounted,
		why.ErrorCode, why.FailureCode, why.Message, move.To.Final(), why.Kind, why.Detail)
	if err != nil {
		return false, fmt.Errorf("move notification from %s to %s: %w", move.From, move.To, err)
	}
	return tag.RowsAffected() == 1, nil
}

// Decide makes one of our own moves on a row that no claim holds. It reports whether the row had
// the status that the move starts from.
func (s *Store) Decide(ctx context.Context, id uuid.UUID, move notify.Move, failure Failure) (bool, error) {
	if !move.Allowed() || move.NeedsToken() {
		return false, fmt.Errorf("move notification from %s to %s: not a move that may be made without a claim", move.From, move.To)
	}
	tag, err := s.pool.Exec(ctx, `
		WITH moved AS (
			UPDATE notifications SET
				status = $3, failure_code = nullif($4, ''), error_message = nullif($5, ''),
				settled_at = CASE WHEN $6 THEN now() END, updated_at = now()
			WHERE id = $1 AND status = $2
			RETURNING id, status
		)
		INSERT INTO notification_events (notification_id, kind, status, error_code, detail)
		SELECT id, $7, status, nullif($4, ''), nullif($8, '') FROM moved`,
		id, move.From, move.To, failure.FailureCode, failure.Message, move.To.Final(), failure.Kind, failure.Detail)
	if err != nil {
		return false, fmt.Errorf("move notification from %s to %s: %w", move.From, move.To, err)
	}
	return tag.RowsAffected() == 1, nil
}
