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

// Owner names the rows that a workflow carries: every row that has its workflow_id and, for the
// workflow of a single notification, the row with that id, which becomes its own by the first claim.
type Owner struct {
	WorkflowID string
	Single     *uuid.UUID
}

// rows is the condition by which statements find the owner's rows, with Single as $1 and WorkflowID
// as $2. It is one text for singles and one for shards, so that each has a plan that uses its index.
func (o Owner) rows() string {
	if o.Single != nil {
		return `(n.id = $1::uuid AND coalesce(n.workflow_id, $2) = $2)`
	}
	return `($1::uuid IS NULL AND n.workflow_id = $2)`
}

// waiting is the condition by which a shard finds singles to adopt: those of the sender $11 that
// nobody owns, and that whoever accepted them leaves to the relay.
const waiting = `($1::uuid IS NULL AND n.workflow_id IS NULL AND n.started_at IS NULL AND n.sender_id = $11
	AND n.relay_at <= clock_timestamp())`

// inItsPlaces is the condition by which a shard of a batch finds its rows along the index of what is
// still to be sent: those that were sent, and are not final, are not looked at by every claim. IS NOT
// DISTINCT FROM keeps the planner from the index of owners, which has no rows without one: with the
// statistics of some moments it would choose that, and each claim read the whole shard.
const inItsPlaces = `$1::uuid IS NULL AND n.workflow_id IS NOT DISTINCT FROM $2
					AND n.batch_id = split_part($2, '/', 2)::uuid
					AND n.place >= split_part($2, '/', 3)::int * (SELECT shard_size FROM batches WHERE id = split_part($2, '/', 2)::uuid)
					AND n.place < (split_part($2, '/', 3)::int + 1) * (SELECT shard_size FROM batches WHERE id = split_part($2, '/', 2)::uuid)`

// ClaimTerms are the conditions under which a worker takes notifications.
type ClaimTerms struct {
	Owner        Owner
	Adopt        int64         // not 0: take singles of this sender that wait for the relay, which the owner then owns
	Limit        int           // how many at most
	Lease        time.Duration // nothing is written to the wire later than this after the claim
	SMSInterval  time.Duration // between two creates of one sender, over all workers; 0: no pacing
	CallInterval time.Duration
	Ahead        time.Duration // how far ahead slots may be reserved

	// How many notifications of a paced sender may be in the carrier's queue, and of a sender of calls.
	SMSQueue, CallQueue QueueLimit
}

// Claim is a notification in state SENDING, under a token.
type Claim struct {
	ID           uuid.UUID
	Channel      notify.Channel
	Token        uuid.UUID
	StartsAt     time.Time     `db:"-"` // when its slot begins, by the clock of this process
	SinceFirst   time.Duration // since the row's first claim
	Attempts     int32         // this one included
	SenderID     int64
	From         string // the sender's number or Messaging Service
	To           string
	Message      *string
	TemplateBody *string
	Params       map[string]string
	RequireHuman bool

	slot time.Time // StartsAt by the database's clock
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

// Claim moves the owner's notifications that are due from ACCEPTED to SENDING, in one committed
// statement: as many as Limit and the slots of their sender allow, none while it is stopped or their
// batch is paused, canceled or not due. All rows of one owner have one sender and at most one batch.
func (s *Store) Claim(ctx context.Context, terms ClaimTerms) ([]Claim, error) {
	args := []any{terms.Owner.Single, terms.Owner.WorkflowID, terms.Limit, terms.Lease, terms.SMSInterval, terms.CallInterval, terms.Ahead,
		terms.SMSQueue.of(terms.Owner), terms.CallQueue.of(terms.Owner), terms.Owner.OfBatch()}
	if terms.Adopt != 0 {
		args = append(args, terms.Adopt)
	}
	type row struct {
		Claim
		Slot, ClaimedAt, Now time.Time // by the database, the last at the statement's end
	}
	conn, err := s.claimConnection(ctx)
	if err != nil {
		return nil, fmt.Errorf("claim notifications: %w", err)
	}
	asked := time.Now()
	rows, err := manyOf(ctx, conn, pgx.RowToStructByPos[row], terms.claimSQL(), args...)
	conn.Release()
	if err != nil {
		return nil, fmt.Errorf("claim notifications: %w", err)
	}
	if len(rows) > 0 {
		s.clock.Learn(asked, rows[0].Now, 0, time.Now())
	}
	claims := make([]Claim, len(rows))
	for i, row := range rows {
		claims[i] = row.Claim
		claims[i].slot, claims[i].StartsAt = row.Slot, s.clock.Here(row.Slot)
	}
	if len(rows) > 0 {
		s.claims.remember(claims, rows[0].ClaimedAt)
	}
	return claims, nil
}

// NextSlot gives a claim that missed its slot another one: at once where nobody has a slot behind the
// one that it missed, else behind the last that was given. interval is how far apart creates of the sender
// are. A sender that was stopped meanwhile gives none: the error is ErrNotFound.
func (s *Store) NextSlot(ctx context.Context, claim Claim, interval time.Duration) (startsAt time.Time, err error) {
	type slot struct{ Slot, Now time.Time }
	asked := time.Now()
	next, err := one(ctx, s, pgx.RowToStructByPos[slot], `
		UPDATE senders SET
			next_slot = CASE WHEN next_slot = $2 THEN clock_timestamp() ELSE greatest(next_slot, clock_timestamp()) END + $3::interval
		WHERE id = $1 AND stopped_at IS NULL
		RETURNING next_slot - $3::interval, clock_timestamp()`, claim.SenderID, claim.slot.Add(interval), interval)
	if err != nil {
		return time.Time{}, fmt.Errorf("reserve another slot: %w", err)
	}
	s.clock.Learn(asked, next.Now, 0, time.Now())
	return s.clock.Here(next.Slot), nil
}

// OfBatch reports whether the owner carries a part of a batch.
func (o Owner) OfBatch() bool {
	_, ofBatch := notify.BatchOfWorkflow(o.WorkflowID)
	return ofBatch
}

// claimSQL is the statement of Claim. It locks the sender's row: whoever stops the sender waits for claims
// that began before, and none is committed after. That for a part of a batch also reads the batch's row, and
// locks it: whoever pauses or cancels the batch waits for claims that began before, and none is
// committed after. Before that it takes its turn (takeBatchTurn). A batch with a pace of its own is
// claimed one by one.
func (t ClaimTerms) claimSQL() string {
	rows, order := t.Owner.rows(), "n.id"
	switch {
	case t.Adopt != 0:
		rows, order = waiting, "n.relay_at"
	case t.Owner.OfBatch() && t.Owner.Single == nil:
		rows, order = inItsPlaces, "n.place"
	}
	batch, open, spent := "", "true", ""
	most := "wanted.rows"
	text := "c.message, v.body"
	template := "LEFT JOIN template_versions v ON v.template_id = c.template_id AND v.version = c.template_version"
	if t.Owner.OfBatch() {
		batch = `
		), turn AS MATERIALIZED (
			SELECT pg_advisory_xact_lock_shared(hashtextextended((SELECT batch_id FROM due LIMIT 1)::text, 0))
		), unpaced AS MATERIALIZED (
			SELECT b.* FROM batches b, clock, turn
			WHERE ` + batchIsOpen + ` AND b.send_interval IS NULL
			FOR SHARE OF b
		), paced AS MATERIALIZED (
			SELECT b.* FROM batches b, clock, turn
			WHERE ` + batchIsOpen + ` AND b.send_interval IS NOT NULL AND b.next_slot <= clock.now
			FOR NO KEY UPDATE OF b
		), batch AS MATERIALIZED (
			SELECT * FROM unpaced UNION ALL SELECT * FROM paced`
		open = "EXISTS (SELECT FROM batch)"
		most = "least(wanted.rows, CASE WHEN EXISTS (SELECT FROM paced) THEN 1 END)"
		spent = `
		), spent AS (
			UPDATE batches b SET next_slot = slots.starts_at + b.send_interval
			FROM paced, slots
			WHERE b.id = paced.id`
		text = "batch.message, v.body"
		template = `CROSS JOIN batch
		LEFT JOIN template_versions v ON v.template_id = batch.template_id AND v.version = batch.template_version`
	}
	return `
		WITH clock AS MATERIALIZED (
			SELECT clock_timestamp() AS now
		), due AS MATERIALIZED (
			SELECT n.id, n.sender_id, n.batch_id, row_number() OVER (ORDER BY n.id) - 1 AS place
			FROM (
				SELECT n.id, n.sender_id, n.batch_id
				FROM notifications n
				WHERE ` + rows + `
					AND n.status = 'ACCEPTED' AND greatest(n.send_at, n.retry_at) <= clock_timestamp()
				ORDER BY ` + order + `
				LIMIT $3
				FOR UPDATE SKIP LOCKED
			) n` + batch + `
		), wanted AS MATERIALIZED (
			SELECT min(sender_id) AS sender_id, count(*) AS rows FROM due WHERE ` + open + `
		), sender_turn AS MATERIALIZED (
			SELECT ` + senderTurn("pg_advisory_xact_lock_shared", "wanted.sender_id") + ` FROM wanted
		), free AS MATERIALIZED (
			SELECT s.id, s.address, interval '0' AS pace, ` + most + ` AS slots, greatest(s.next_slot, clock.now) AS starts_at
			FROM senders s, clock, wanted, sender_turn
			WHERE s.id = wanted.sender_id AND ` + pace + ` = '0' AND s.stopped_at IS NULL AND s.next_slot <= clock.now + $7::interval
			FOR SHARE OF s
		), sender AS MATERIALIZED (
			SELECT s.id, s.next_slot, ` + pace + ` AS pace, CASE WHEN s.queue_unlimited_at IS NULL THEN ` + queueLimit + ` ELSE 0 END AS most
			FROM senders s, clock, sender_turn
			WHERE s.id = (SELECT sender_id FROM wanted) AND ` + pace + ` > '0' AND s.stopped_at IS NULL AND s.next_slot <= clock.now + $7::interval
			FOR UPDATE OF s
		), room AS MATERIALIZED (
			-- Counted after the sender's row is locked: two claims cannot take the same room.
			SELECT id, pace, next_slot, CASE WHEN most > 0 THEN most - queued_at_carrier(id, most) END AS room FROM sender
		), granted AS (
			UPDATE senders s SET
				next_slot = CASE WHEN granted.slots > 0 THEN granted.starts_at + granted.pace * granted.slots ELSE s.next_slot END,
				queue_full_at = CASE WHEN granted.slots = 0 AND NOT $10 THEN coalesce(s.queue_full_at, clock_timestamp())
					WHEN granted.slots = 0 THEN s.queue_full_at END,
				batches_queue_full_at = CASE WHEN granted.slots = 0 THEN coalesce(s.batches_queue_full_at, clock_timestamp())
					WHEN NOT $10 THEN s.batches_queue_full_at END
			FROM (
				SELECT locked.*, least(` + most + `, locked.room,
					1 + greatest(0, floor(extract(epoch FROM clock.now + $7::interval - starts_at) / extract(epoch FROM pace)))) AS slots
				FROM clock, wanted, (
					SELECT id, pace, room, greatest(next_slot, clock_timestamp()) AS starts_at FROM room
				) locked
			) granted
			WHERE s.id = granted.id
				AND (granted.slots > 0 OR CASE WHEN $10 THEN s.batches_queue_full_at ELSE s.queue_full_at END IS NULL)
			RETURNING s.id, s.address, granted.pace, granted.slots, granted.starts_at
		), slots AS (
			SELECT * FROM free UNION ALL SELECT * FROM granted WHERE granted.slots > 0` + spent + `
		), claimed AS (
			UPDATE notifications n SET
				status = 'SENDING', workflow_id = $2, claim_token = gen_random_uuid(), attempts = n.attempts + 1,
				claimed_at = clock.now, claim_deadline = clock.now + $4::interval,
				first_claimed_at = coalesce(n.first_claimed_at, clock.now), started_at = coalesce(n.started_at, clock.now),
				retry_at = NULL, absent_since = NULL, queued = slots.pace > '0' OR n.channel = 'CALL', updated_at = clock.now
			FROM due, slots, clock
			WHERE n.id = due.id AND n.sender_id = slots.id AND due.place < slots.slots
			RETURNING n.*, due.place AS claim_place
		)
		SELECT c.id, c.channel::text, c.claim_token,
			clock.now - c.first_claimed_at, c.attempts,
			c.sender_id, slots.address, c.to_number, ` + text + `, c.params, c.require_human,
			slots.starts_at + slots.pace * c.claim_place, clock.now, clock_timestamp()
		FROM claimed c
		CROSS JOIN slots
		CROSS JOIN clock
		` + template + `
		ORDER BY c.claim_place`
}

// pace is how far apart creates of the sender s are. The row of one without pacing is shared by its
// claims: none waits for a slot of another.
const pace = `CASE s.channel WHEN 'CALL' THEN $6::interval ELSE $5::interval END`

// queueLimit is how many notifications of the sender s may be in the carrier's queue; 0: no limit.
const queueLimit = `CASE s.channel WHEN 'CALL' THEN $9::int ELSE $8::int END`

// batchIsOpen is the condition under which notifications of a batch may be claimed.
const batchIsOpen = `b.id = (SELECT batch_id FROM due LIMIT 1)
				AND b.paused_at IS NULL AND b.canceled_at IS NULL AND b.send_at <= clock.now`

// Outstanding is what the rows of one owner wait for. A duration says how long it is until then; it
// is 0 when the moment has come.
type Outstanding struct {
	Accepted int64         // rows that are to be posted
	SendIn   time.Duration // until the first of them is due and its sender may have a slot
	Held     bool          // their sender is stopped, or their batch paused or canceled
	Queued   bool          // they wait until the carrier's queue has room for them
	ExpireIn time.Duration // until the first of them has been tried for as long as may be; 0 when none was tried
	Sending  int64         // rows that a claim holds
	LookUpIn time.Duration // until the first of those claims has run out
	Pending  int64         // rows of which the carrier has not told the outcome
	CheckIn  time.Duration // until the first of them is asked for
}

// Outstanding reads what an owner has left to do. delay is how long after sending the carrier is
// asked for the first time, ahead is as in ClaimTerms, and deadline how long after its first claim a
// row is tried.
func (s *Store) Outstanding(ctx context.Context, owner Owner, delay, ahead, deadline time.Duration) (Outstanding, error) {
	o, err := one(ctx, s, pgx.RowToStructByPos[Outstanding], `
		SELECT
			count(*) FILTER (WHERE accepted),
			coalesce(greatest('0', min(greatest(n.send_at, n.retry_at, s.next_slot - $4::interval, b.send_at, b.own_slot)) FILTER (WHERE accepted) - clock_timestamp()), '0'),
			coalesce(bool_or(s.stopped_at IS NOT NULL OR b.held) FILTER (WHERE accepted), false),
			coalesce(bool_or(`+queueFull+`) FILTER (WHERE accepted), false),
			CASE WHEN bool_or(expires AND n.first_claimed_at IS NOT NULL)
				THEN greatest('1 millisecond', min(n.first_claimed_at + $5::interval) FILTER (WHERE expires) - clock_timestamp())
				ELSE '0' END,
			count(*) FILTER (WHERE sending),
			coalesce(greatest('0', min(n.claim_deadline) FILTER (WHERE sending) - clock_timestamp()), '0'),
			count(*) FILTER (WHERE pending),
			coalesce(greatest('0', min(coalesce(n.check_at, n.sent_at + $3::interval)) FILTER (WHERE pending) - clock_timestamp()), '0')
		FROM notifications n
		JOIN senders s ON s.id = n.sender_id
		LEFT JOIN LATERAL (
			SELECT b.send_at, CASE WHEN b.send_interval IS NOT NULL THEN b.next_slot END AS own_slot,
				b.paused_at IS NOT NULL OR b.canceled_at IS NOT NULL AS held
			FROM batches b
			WHERE b.id = n.batch_id
		) AS b ON true
		CROSS JOIN LATERAL (SELECT n.status = 'ACCEPTED' AS accepted, n.status = 'SENDING' AS sending, n.status = 'PENDING' AS pending,
			n.status = 'ACCEPTED' AND s.stopped_at IS NULL AND NOT coalesce(b.held, false) AND NOT `+queueFull+` AS expires) AS state
		WHERE `+owner.rows()+`
			AND n.status IN ('ACCEPTED', 'SENDING', 'PENDING')`,
		owner.Single, owner.WorkflowID, delay, ahead, deadline)
	if err != nil {
		return o, fmt.Errorf("read what is outstanding: %w", err)
	}
	return o, nil
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
// and may be posted once more, or CANCELED where somebody has asked for that meanwhile. It reports
// whether the row still held the token.
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
		WITH held AS (
			SELECT id, $4 = 'ACCEPTED' AND cancel_requested_at IS NOT NULL AS canceled
			FROM notifications
			WHERE id = $1 AND claim_token = $2 AND status = $3
			FOR UPDATE
		), moved AS (
			UPDATE notifications n SET
				status = CASE WHEN canceled THEN 'CANCELED' ELSE $4::notification_status END,
				claim_token = NULL, claim_deadline = NULL,
				retry_at = CASE WHEN $5::interval > '0' AND NOT canceled THEN clock_timestamp() + $5 END,
				attempts = attempts - CASE WHEN $6 THEN 1 ELSE 0 END,
				twilio_error_code = CASE WHEN NOT canceled THEN nullif($7, '') END,
				failure_code = nullif($8, ''), error_message = CASE WHEN NOT canceled THEN nullif($9, '') END,
				settled_at = CASE WHEN $10 OR canceled THEN clock_timestamp() END, updated_at = clock_timestamp()
			FROM held
			WHERE n.id = held.id
			RETURNING n.id, n.status, canceled
		), canceled AS (
			INSERT INTO notification_events (notification_id, kind, status)
			SELECT id, $13, status FROM moved WHERE canceled
		)
		INSERT INTO notification_events (notification_id, kind, status, error_code, detail)
		SELECT id, $11, status, coalesce(nullif($7, ''), nullif($8, '')), nullif($12, '') FROM moved`,
		id, token, move.From, move.To, retry.After, retry.Uncounted,
		why.ErrorCode, why.FailureCode, why.Message, move.To.Final(), why.Kind, why.Detail, EventCanceled)
	if err != nil {
		return false, fmt.Errorf("move notification from %s to %s: %w", move.From, move.To, err)
	}
	return tag.RowsAffected() == 1, nil
}

// Expire fails the owner's notifications that were tried for longer than the deadline and wait for
// another try, a slowed sender's too. While the sender is stopped nothing expires.
func (s *Store) Expire(ctx context.Context, owner Owner, deadline time.Duration, failure Failure) error {
	_, err := s.pool.Exec(ctx, `
		WITH moved AS (
			UPDATE notifications SET
				status = $7, failure_code = $4, error_message = $5,
				settled_at = clock_timestamp(), updated_at = clock_timestamp()
			WHERE id IN (
				SELECT n.id
				FROM notifications n
				JOIN senders s ON s.id = n.sender_id AND s.stopped_at IS NULL AND NOT `+queueFull+`
				WHERE `+owner.rows()+` AND n.status = 'ACCEPTED' AND n.first_claimed_at <= clock_timestamp() - $3::interval
				ORDER BY n.id
				FOR UPDATE OF n
			)
			RETURNING id, status
		)
		INSERT INTO notification_events (notification_id, kind, status, error_code)
		SELECT id, $6, status, $4 FROM moved`,
		owner.Single, owner.WorkflowID, deadline, failure.FailureCode, failure.Message, failure.Kind, notify.Expire.To)
	if err != nil {
		return fmt.Errorf("fail what was tried for too long: %w", err)
	}
	return nil
}
