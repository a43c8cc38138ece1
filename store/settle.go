package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// Settled says what a receipt did to its row.
type Settled struct {
	ID         uuid.UUID
	Channel    notify.Channel
	Before     notify.Status
	Status     notify.Status
	WorkflowID *string
	SecondSID  bool // the carrier accepted the notification twice: somebody got two
	Conflict   bool // two final words of the carrier disagree
}

// JustSettled reports whether the receipt made the row final.
func (s Settled) JustSettled() bool { return s.Status.Final() && !s.Before.Final() }

// ErrMalformedReceipt means that a receipt names neither a valid id nor a valid SID.
var ErrMalformedReceipt = errors.New("the receipt has neither a notification's id nor a valid SID")

// Settle writes receipts to the ledger: the one statement by which the carrier's words move rows,
// used by the answer to a create, by callbacks and by polls alike. What it keeps of a row's
// receipts is the same for every order and any number of repeats: the highest word with its error
// code, the longest duration, the surest answered_by. Every receipt is added to the timeline. A
// receipt for an id that the ledger does not have is recorded, and left out of the answer.
//
// A receipt beats everything that we decided ourselves, except that only a final word repairs
// NO_RECEIPT. Rows are locked in the order of their ids, so two writers cannot deadlock.
func (s *Store) Settle(ctx context.Context, receipts ...notify.Receipt) ([]Settled, error) {
	if len(receipts) == 0 {
		return nil, nil
	}
	in := make([]receiptRow, len(receipts))
	for i, r := range receipts {
		row, err := newReceiptRow(r)
		if err != nil {
			return nil, fmt.Errorf("settle: %w", err)
		}
		in[i] = row
	}
	settled, err := many(ctx, s, pgx.RowToStructByPos[Settled], settleSQL, column(in, func(r receiptRow) *uuid.UUID { return r.id }),
		column(in, func(r receiptRow) string { return string(r.Channel) }),
		column(in, func(r receiptRow) string { return r.SID }),
		column(in, func(r receiptRow) string { return r.Word }),
		column(in, func(r receiptRow) int { return r.word.Rank }),
		column(in, func(r receiptRow) string { return string(r.word.Outcome) }),
		column(in, func(r receiptRow) *int64 { return r.code }),
		column(in, func(r receiptRow) string { return r.message }),
		column(in, func(r receiptRow) int { return r.Segments }),
		column(in, func(r receiptRow) *int { return r.Duration }),
		column(in, func(r receiptRow) string { return r.AnsweredBy }),
		column(in, func(r receiptRow) string { return string(r.Source) }),
		notify.LedgerMessage(notify.CodeNotAnswered, notify.Call, ""), notify.LedgerMessage(notify.CodeAnsweredByMachine, notify.Call, ""))
	if err != nil {
		return nil, fmt.Errorf("settle: %w", err)
	}
	return settled, nil
}

// receiptRow is a receipt as the statement takes it.
type receiptRow struct {
	notify.Receipt
	id      *uuid.UUID
	word    notify.Word // zero when never heard of: recorded, and moves nothing
	code    *int64
	message string
}

func newReceiptRow(r notify.Receipt) (receiptRow, error) {
	row := receiptRow{Receipt: r}
	if id, err := uuid.Parse(r.NotificationID); err == nil {
		row.id = &id
	}
	if !notify.ValidSID(r.Channel, r.SID) {
		if row.SID = ""; row.id == nil {
			return row, ErrMalformedReceipt
		}
	}
	row.word, _ = notify.LookupWord(r.Channel, r.Word)
	if code, err := strconv.ParseInt(notify.CarrierErrorCode(r.ErrorCode), 10, 64); err == nil {
		row.code = &code
	}
	if row.word.Outcome == notify.Failed {
		row.message = notify.LedgerMessage(notify.CarrierErrorCode(r.ErrorCode), r.Channel, r.Word)
	}
	return row, nil
}

func column[R, T any](rows []R, of func(R) T) []T {
	values := make([]T, len(rows))
	for i, r := range rows {
		values[i] = of(r)
	}
	return values
}

const settleSQL = `
WITH input AS MATERIALIZED (
	SELECT coalesce(i.id, n.id) AS id, i.channel::channel, i.sid, i.word, i.rank, i.outcome::notification_status,
		i.code, i.message, i.segments, i.duration, i.answered_by, i.source, i.place
	FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::int[], $6::text[], $7::bigint[], $8::text[],
			$9::int[], $10::int[], $11::text[], $12::text[])
		WITH ORDINALITY AS r (id, channel, sid, word, rank, outcome, code, message, segments, duration, answered_by, source, place)
	CROSS JOIN LATERAL (SELECT r.id, r.channel, nullif(r.sid, '') AS sid, r.word, r.rank, nullif(r.outcome, '') AS outcome, r.code,
		nullif(r.message, '') AS message, nullif(r.segments, 0) AS segments, r.duration, nullif(r.answered_by, '') AS answered_by,
		r.source, r.place) AS i
	LEFT JOIN notifications n ON i.id IS NULL AND n.twilio_sid = i.sid
), row AS MATERIALIZED (
	SELECT n.*
	FROM notifications n
	WHERE (n.id, n.channel) IN (SELECT id, channel FROM input)
	ORDER BY n.id
	FOR UPDATE
), folded AS (
	-- What a group says of one row, whatever its order.
	SELECT id, max(rank) AS rank,
		(array_agg(word ORDER BY rank DESC))[1] AS word,
		(array_agg(outcome ORDER BY rank DESC))[1] AS outcome,
		(array_agg(code ORDER BY rank DESC, code DESC NULLS LAST))[1] AS code,
		(array_agg(message ORDER BY rank DESC, code DESC NULLS LAST))[1] AS message,
		max(segments) AS segments, max(duration) AS duration, min(answered_by) AS answered_by,
		(array_agg(sid ORDER BY place) FILTER (WHERE sid IS NOT NULL))[1] AS sid
	FROM input
	GROUP BY id
), merged AS (
	SELECT row.id, row.status AS before, row.failure_code AS failure_before, row.require_human,
		row.channel, f.sid AS told_sid,
		f.rank > row.carrier_rank AS higher,
		greatest(f.rank, row.carrier_rank) AS rank,
		CASE WHEN f.rank > row.carrier_rank THEN f.word ELSE row.twilio_status END AS word,
		CASE WHEN f.rank > row.carrier_rank THEN f.outcome ELSE row.status END AS outcome,
		CASE WHEN f.rank > row.carrier_rank THEN f.code
			WHEN f.rank = row.carrier_rank AND f.rank > 0 THEN greatest(f.code, row.twilio_error_code::bigint)
			ELSE row.twilio_error_code::bigint END AS code,
		CASE WHEN f.rank > row.carrier_rank
				OR f.rank = row.carrier_rank AND f.rank > 0 AND f.code > coalesce(row.twilio_error_code::bigint, 0) THEN f.message
			ELSE row.error_message END AS message,
		greatest(f.segments, row.segments) AS segments,
		greatest(f.duration, row.duration_seconds) AS duration,
		-- 'human' sorts before every machine and before 'unknown'.
		least(f.answered_by, row.answered_by) AS answered_by
	FROM row
	JOIN folded f USING (id)
), judged AS (
	SELECT m.*,
		CASE WHEN channel = 'CALL' AND word = 'completed' THEN CASE
				WHEN duration IS NULL THEN 'PENDING' -- no duration yet is not 0
				WHEN duration = 0 THEN 'FAILED'
				WHEN NOT require_human OR answered_by = 'human' THEN 'SUCCESS'
				WHEN answered_by IS NULL THEN 'PENDING'
				ELSE 'FAILED' END::notification_status
			ELSE outcome END AS verdict
	FROM merged m
), decided AS (
	SELECT j.*,
		CASE WHEN before = 'UNKNOWN' AND failure_before = 'NO_RECEIPT' AND verdict = 'PENDING' THEN before ELSE verdict END AS status
	FROM judged j
), moved AS (
	UPDATE notifications n SET
		status = d.status,
		carrier_rank = d.rank, twilio_status = d.word, twilio_error_code = d.code::text,
		failure_code = CASE
			WHEN d.status = 'FAILED' AND d.channel = 'CALL' AND d.word = 'completed'
				THEN CASE WHEN d.duration = 0 THEN 'NOT_ANSWERED' ELSE 'ANSWERED_BY_MACHINE' END
			WHEN d.status = d.before AND NOT d.higher OR d.status = 'UNKNOWN' THEN n.failure_code END,
		error_message = CASE
			WHEN d.status = 'FAILED' AND d.channel = 'CALL' AND d.word = 'completed' THEN CASE WHEN d.duration = 0 THEN $13 ELSE $14 END
			WHEN d.status IN ('FAILED', 'UNKNOWN') THEN d.message END,
		twilio_sid = coalesce(n.twilio_sid,
			CASE WHEN NOT EXISTS (SELECT FROM notifications o WHERE o.twilio_sid = d.told_sid) THEN d.told_sid END),
		segments = d.segments, duration_seconds = d.duration, answered_by = d.answered_by,
		claim_token = CASE WHEN d.status = 'SENDING' THEN n.claim_token END,
		claim_deadline = CASE WHEN d.status = 'SENDING' THEN n.claim_deadline END,
		sent_at = CASE WHEN d.rank > 0 THEN coalesce(n.sent_at, clock_timestamp()) END,
		settled_at = CASE
			WHEN d.status IN ('SUCCESS', 'FAILED', 'UNKNOWN', 'SKIPPED', 'CANCELED')
			THEN CASE WHEN d.status = d.before THEN coalesce(n.settled_at, clock_timestamp()) ELSE clock_timestamp() END END,
		updated_at = clock_timestamp()
	FROM decided d
	WHERE n.id = d.id
		AND (d.status, d.rank, d.code::text, d.duration, d.answered_by, d.segments, coalesce(n.twilio_sid, d.told_sid))
			IS DISTINCT FROM (n.status, n.carrier_rank::int, n.twilio_error_code, n.duration_seconds, n.answered_by, n.segments, n.twilio_sid)
	RETURNING n.id
), timeline AS (
	INSERT INTO notification_events (notification_id, kind, status, source, twilio_status, twilio_sid, error_code)
	SELECT i.id,
		CASE WHEN row.id IS NULL THEN 'unknown_id'
			WHEN i.sid <> row.twilio_sid THEN 'second_sid'
			WHEN i.rank = 0 THEN 'unknown_word'
			WHEN row.carrier_rank > 0 AND row.status IN ('SUCCESS', 'FAILED') AND i.outcome IN ('SUCCESS', 'FAILED')
				AND row.twilio_status <> i.word AND row.status <> i.outcome THEN 'conflicting_final'
			ELSE 'receipt' END,
		d.status, i.source, i.word, i.sid, i.code::text
	FROM input i
	LEFT JOIN row ON row.id = i.id
	LEFT JOIN decided d ON d.id = i.id
	WHERE i.id IS NOT NULL
	ORDER BY i.place
	RETURNING notification_id, kind
)
SELECT d.id, d.channel::text, d.before::text, d.status::text, row.workflow_id,
	EXISTS (SELECT FROM timeline t WHERE t.notification_id = d.id AND t.kind = 'second_sid'),
	EXISTS (SELECT FROM timeline t WHERE t.notification_id = d.id AND t.kind = 'conflicting_final')
FROM decided d
JOIN row USING (id)
ORDER BY d.id`
