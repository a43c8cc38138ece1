package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/todoku/todoku/notify"
)

// Settled says what the carrier's word, or its silence, did to a row.
type Settled struct {
	ID         uuid.UUID
	Channel    notify.Channel
	Before     notify.Status
	Status     notify.Status
	WorkflowID *string
	SenderID   int64
	SID        *string // the row's
	ErrorCode  *string // the carrier's, as the row has it now
	FirstCode  bool    // it is the row's first one of the carrier
	SecondSID  bool    // the carrier accepted the notification twice: somebody got two
	Conflict   bool    // two final words of the carrier disagree
}

// JustSettled reports whether the receipt made the row final.
func (s Settled) JustSettled() bool { return s.Status.Final() && !s.Before.Final() }

// ErrMalformedReceipt means that a receipt names neither a valid id nor a valid SID.
var ErrMalformedReceipt = errors.New("the receipt has neither a notification's id nor a valid SID")

// Settle writes receipts to the ledger: the one statement by which the carrier's words move rows,
// used by the answer to a create, by callbacks and by polls alike. What it keeps of a row's
// receipts is the same for every order and any number of repeats: the highest word, the error code of
// the highest word that has one, shown while the row is FAILED, the longest duration, the surest answered_by. Every receipt is added to the timeline. A
// receipt for an id that the ledger does not have is recorded, and left out of the answer.
//
// A receipt beats everything that we decided ourselves, except that only a final word repairs
// NO_RECEIPT. Rows are locked in the order of their ids, so two writers cannot deadlock. All receipts
// are written by one commit, unless they tell one SID of several rows; after an error some of those may
// have been written.
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
	var settled []Settled
	for len(in) > 0 {
		var group []receiptRow
		group, in = splitBySID(in)
		some, err := s.settleGroup(ctx, group)
		if err != nil {
			return nil, fmt.Errorf("settle: %w", err)
		}
		settled = append(settled, some...)
	}
	return settled, nil
}

// WithoutRow returns those of the receipts that no row was settled by, where settled is what Settle answered.
func WithoutRow(receipts []notify.Receipt, settled []Settled) []notify.Receipt {
	type name struct {
		channel notify.Channel
		of      string
	}
	names := make(map[name]bool, 2*len(settled))
	for _, row := range settled {
		names[name{row.Channel, row.ID.String()}] = true
		if row.SID != nil {
			names[name{row.Channel, *row.SID}] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(receipts), func(r notify.Receipt) bool {
		if id, err := uuid.Parse(r.NotificationID); err == nil {
			return names[name{r.Channel, id.String()}]
		}
		return names[name{r.Channel, r.SID}]
	})
}

// splitBySID takes the receipts that one statement can settle: those that tell a SID of another row
// than one before them are left for the next, which sees whose it is.
func splitBySID(receipts []receiptRow) (group, rest []receiptRow) {
	rows := make(map[string]uuid.UUID, len(receipts))
	for i, r := range receipts {
		if r.id == nil || r.SID == "" {
			continue
		}
		row, told := rows[r.SID]
		if told && row != *r.id {
			return receipts[:i], receipts[i:]
		}
		rows[r.SID] = *r.id
	}
	return receipts, nil
}

// settleGroup settles receipts of which no two tell the same SID of two rows.
func (s *Store) settleGroup(ctx context.Context, in []receiptRow) ([]Settled, error) {
	rows, err := s.settleTold(ctx, notAnswered, answeredByMachine,
		column(in, func(r receiptRow) *uuid.UUID { return r.id }),
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
		column(in, receiptRow.detail))
	if err != nil {
		return nil, err
	}
	settled := make([]Settled, len(rows))
	for i, row := range rows {
		settled[i] = row.Settled
		if row.Found != nil {
			if err := s.takeOver(ctx, &settled[i], *row.Found); err != nil {
				return nil, err
			}
		}
	}
	return settled, nil
}

// settleTold runs the statement, and once more when another one gave a SID of its receipts to another
// row at the same moment: then it sees that.
func (s *Store) settleTold(ctx context.Context, args ...any) ([]settledRow, error) {
	for try := 1; ; try++ {
		rows, err := many(ctx, s, pgx.RowToStructByPos[settledRow], settleToldSQL, args...)
		var answer *pgconn.PgError
		if errors.As(err, &answer) && answer.Code == "23505" && try < 4 {
			continue
		}
		return rows, err
	}
}

// settledRow is what the statement answers with.
type settledRow struct {
	Settled
	Found *uuid.UUID // the row, found at the carrier, that has the SID which belongs to this one
}

var (
	notAnswered       = notify.LedgerMessage(notify.CodeNotAnswered, notify.Call, "")
	answeredByMachine = notify.LedgerMessage(notify.CodeAnsweredByMachine, notify.Call, "")
)

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

// detail is what the timeline keeps of a receipt beside its word, SID and code.
func (r receiptRow) detail() string {
	if r.UnknownCode == "" {
		return ""
	}
	return "not an error code: " + r.UnknownCode
}

func column[R, T any](rows []R, of func(R) T) []T {
	values := make([]T, len(rows))
	for i, r := range rows {
		values[i] = of(r)
	}
	return values
}

// Listed says what a part of a carrier's list did to the ledger.
type Listed struct {
	Settled      []Settled   // rows of which it said something new
	StillPending []uuid.UUID // rows whose outcome it does not tell although their time to be asked for has come
	Unowned      []string    // SIDs that no row has
}

// SettleListed settles by a part of the carrier's list, in which receipts have SIDs but not our ids:
// they are copied into a temporary table and joined into the ledger by the statement that Settle
// uses. What the ledger knows already is not added to a timeline once more. delay is how long after
// sending the carrier is asked for the first time.
func (s *Store) SettleListed(ctx context.Context, receipts []notify.Receipt, delay time.Duration) (listed Listed, err error) {
	ctx = unhurried(ctx)
	err = s.pool.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		listed = Listed{}
		if err := copyListed(ctx, tx, receipts); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, settleListedSQL, notAnswered, answeredByMachine)
		if err != nil {
			return err
		}
		settled, err := pgx.CollectRows(rows, pgx.RowToStructByPos[settledRow])
		if err != nil {
			return err
		}
		listed.Settled = column(settled, func(r settledRow) Settled { return r.Settled })
		rows, err = tx.Query(ctx, `
			SELECT t.sid, n.id
			FROM listed t
			LEFT JOIN LATERAL (`+ownerSQL+`) AS n ON true
			WHERE n.id IS NULL OR n.status = 'PENDING' AND coalesce(n.check_at, n.sent_at + $1::interval) <= clock_timestamp()`, delay)
		if err != nil {
			return err
		}
		var sid string
		var owner *uuid.UUID
		_, err = pgx.ForEachRow(rows, []any{&sid, &owner}, func() error {
			if owner == nil {
				listed.Unowned = append(listed.Unowned, sid)
			} else {
				listed.StillPending = append(listed.StillPending, *owner)
			}
			return nil
		})
		return err
	})
	if err != nil {
		return Listed{}, fmt.Errorf("settle by the carrier's list: %w", err)
	}
	return listed, nil
}

// copyListed makes the temporary table listed, which lasts as long as the transaction.
func copyListed(ctx context.Context, tx pgx.Tx, receipts []notify.Receipt) error {
	_, err := tx.Exec(ctx, `
		CREATE TEMP TABLE listed (
			channel text, sid text, word text, rank int, outcome text, code bigint, message text,
			segments int, duration int, answered_by text, source text, detail text, place bigint
		) ON COMMIT DROP`)
	if err != nil {
		return err
	}
	columns := []string{"channel", "sid", "word", "rank", "outcome", "code", "message", "segments", "duration", "answered_by", "source",
		"detail", "place"}
	_, err = tx.CopyFrom(ctx, pgx.Identifier{"listed"}, columns, pgx.CopyFromSlice(len(receipts), func(i int) ([]any, error) {
		r, err := newReceiptRow(receipts[i])
		return []any{string(r.Channel), r.SID, r.Word, r.word.Rank, string(r.word.Outcome), r.code, r.message,
			r.Segments, r.Duration, r.AnsweredBy, string(r.Source), r.detail(), i}, err
	}))
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `ANALYZE listed`) // a temporary table has no statistics of its own accord
	return err
}

// settleListedSQL settles what the temporary table listed tells.
var settleListedSQL = settleSQL(`
	SELECT n.id, n.channel, t.sid, t.word, t.rank, nullif(t.outcome, '')::notification_status AS outcome,
		t.code, nullif(t.message, '') AS message, nullif(t.segments, 0) AS segments, t.duration,
		nullif(t.answered_by, '') AS answered_by, t.source, t.detail, t.place
	FROM listed t
	CROSS JOIN LATERAL (` + ownerSQL + `) AS n
	WHERE t.rank > n.carrier_rank
		OR t.rank > 0 AND t.rank * 10000000000 + t.code > coalesce(n.ranked_code, n.carrier_rank * 10000000000 + n.twilio_error_code::bigint, 0)
		OR (greatest(t.duration, n.duration_seconds), least(nullif(t.answered_by, ''), n.answered_by), greatest(nullif(t.segments, 0), n.segments))
			IS DISTINCT FROM (n.duration_seconds, n.answered_by, n.segments)`)

// ownerSQL is the row that has the SID of t, from the temporary table listed. OFFSET 0 keeps it a look-up
// for each: a plan that reads the ledger once would do so for each part of a list, however large it is.
const ownerSQL = `
		SELECT n.id, n.channel, n.status, n.check_at, n.sent_at, n.carrier_rank, n.twilio_error_code, n.ranked_code, n.duration_seconds, n.answered_by, n.segments
		FROM notifications n
		WHERE n.twilio_sid = t.sid AND n.channel = t.channel::channel
		OFFSET 0`

// settleToldSQL settles what its parameters tell.
var settleToldSQL = settleSQL(`
	SELECT t.id, t.channel::channel, nullif(t.sid, '') AS sid, t.word, t.rank, nullif(t.outcome, '')::notification_status AS outcome,
		t.code, nullif(t.message, '') AS message, nullif(t.segments, 0) AS segments, t.duration,
		nullif(t.answered_by, '') AS answered_by, t.source, t.detail, t.place
	FROM unnest($3::uuid[], $4::text[], $5::text[], $6::text[], $7::int[], $8::text[], $9::bigint[], $10::text[],
			$11::int[], $12::int[], $13::text[], $14::text[], $15::text[])
		WITH ORDINALITY AS t (id, channel, sid, word, rank, outcome, code, message, segments, duration, answered_by, source, detail, place)`)

// settleSQL is the statement, for receipts from told. Its own parameters are what people are told of
// a call that nobody answered ($1) and of one that a machine answered ($2).
func settleSQL(told string) string {
	return `
WITH input AS MATERIALIZED (
	SELECT coalesce(t.id, (SELECT n.id FROM notifications n WHERE n.twilio_sid = t.sid)) AS id,
		t.channel, t.sid, t.word, t.rank, t.outcome, t.code, t.message, t.segments, t.duration, t.answered_by, t.source, t.detail, t.place
	FROM (` + told + `) t
), folded AS (
	-- What a group says of one row, whatever its order.
	SELECT DISTINCT ON (id, channel) id, channel, rank, word, outcome, message, max(segments) OVER same AS segments,
		max(CASE WHEN rank > 0 THEN rank * 10000000000 + code END) OVER same AS ranked_code,
		max(duration) OVER same AS duration, min(answered_by) OVER same AS answered_by, min(sid) OVER same AS sid
	FROM input
	WINDOW same AS (PARTITION BY id, channel ORDER BY rank DESC, code DESC NULLS LAST ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
	ORDER BY id, channel, rank DESC, code DESC NULLS LAST
), row AS (
	SELECT n.id, n.status AS before, n.failure_code AS failure_before, n.require_human, n.channel, n.workflow_id, n.sender_id,
		n.cancel_requested_at, n.twilio_sid AS sid_before, n.twilio_status AS word_before, n.carrier_rank AS rank_before, n.twilio_error_code AS code_before,
		-- A row of the version before has the code of its highest word, if any.
		coalesce(n.ranked_code, CASE WHEN n.carrier_rank > 0 THEN n.carrier_rank * 10000000000 + n.twilio_error_code::bigint END) AS ranked_before,
		n.error_message AS message_before, n.segments AS segments_before, n.duration_seconds AS duration_before, n.answered_by AS answered_by_before,
		f.rank, f.word, f.outcome, f.ranked_code, f.message, f.segments, f.duration, f.answered_by, f.sid
	FROM folded f
	JOIN notifications n ON n.id = f.id AND n.channel = f.channel
	ORDER BY n.id
	FOR UPDATE OF n
), merged AS (
	SELECT id, before, failure_before, require_human, channel, workflow_id, sender_id, cancel_requested_at, sid_before, word_before, rank_before,
		sid AS told_sid,
		CASE WHEN sid_before IS NULL THEN (SELECT o.id FROM notifications o WHERE o.twilio_sid = sid) END AS sid_owner,
		rank > rank_before AS higher,
		greatest(rank, rank_before) AS rank,
		CASE WHEN rank > rank_before THEN word ELSE word_before END AS word,
		CASE WHEN rank > rank_before THEN outcome ELSE before END AS outcome,
		greatest(ranked_code, ranked_before) AS ranked_code, ranked_before, code_before,
		CASE WHEN rank > rank_before OR rank = rank_before AND rank > 0 AND ranked_code > coalesce(ranked_before, 0) THEN message
			ELSE message_before END AS message,
		greatest(segments, segments_before) AS segments,
		greatest(duration, duration_before) AS duration,
		-- 'human' sorts before every machine and before 'unknown'.
		least(answered_by, answered_by_before) AS answered_by
	FROM row
	OFFSET 0 -- each of these is worked out once
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
		CASE WHEN verdict = 'FAILED' AND word = 'canceled' AND cancel_requested_at IS NOT NULL THEN 'CANCELED' -- as somebody asked
			WHEN before = 'UNKNOWN' AND failure_before = 'NO_RECEIPT' AND verdict = 'PENDING' THEN before ELSE verdict END AS status
	FROM judged j
), coded AS (
	-- The code is shown only where the outcome is a failure; without a carrier's word it is that of our own refusal.
	SELECT d.*,
		CASE WHEN rank = 0 THEN code_before WHEN status = 'FAILED' THEN (ranked_code % 10000000000)::text END AS code
	FROM decided d
), moved AS (
	UPDATE notifications n SET
		status = d.status,
		carrier_rank = d.rank, queued = n.queued AND ` + waitsAtCarrier + `, twilio_status = d.word, twilio_error_code = d.code, ranked_code = d.ranked_code,
		failure_code = CASE
			WHEN d.status = 'FAILED' AND d.channel = 'CALL' AND d.word = 'completed'
				THEN CASE WHEN d.duration = 0 THEN 'NOT_ANSWERED' ELSE 'ANSWERED_BY_MACHINE' END
			WHEN d.status = d.before AND NOT d.higher OR d.status = 'UNKNOWN' THEN n.failure_code END,
		error_message = CASE
			WHEN d.status = 'FAILED' AND d.channel = 'CALL' AND d.word = 'completed' THEN CASE WHEN d.duration = 0 THEN $1 ELSE $2 END
			WHEN d.status IN ('FAILED', 'UNKNOWN') THEN d.message END,
		twilio_sid = coalesce(n.twilio_sid, CASE WHEN d.sid_owner IS NULL THEN d.told_sid END),
		segments = d.segments, duration_seconds = d.duration, answered_by = d.answered_by,
		claim_token = CASE WHEN d.status = 'SENDING' THEN n.claim_token END,
		claim_deadline = CASE WHEN d.status = 'SENDING' THEN n.claim_deadline END,
		sent_at = CASE WHEN d.rank > 0 THEN coalesce(n.sent_at, clock_timestamp()) END,
		settled_at = CASE
			WHEN d.status IN ('SUCCESS', 'FAILED', 'UNKNOWN', 'SKIPPED', 'CANCELED')
			THEN CASE WHEN d.status = d.before THEN coalesce(n.settled_at, clock_timestamp()) ELSE clock_timestamp() END END,
		updated_at = clock_timestamp()
	FROM coded d
	WHERE n.id = d.id
		AND (d.status, d.rank, d.code, d.ranked_code, d.duration, d.answered_by, d.segments, coalesce(n.twilio_sid, d.told_sid))
			IS DISTINCT FROM (n.status, n.carrier_rank::int, n.twilio_error_code, n.ranked_code, n.duration_seconds, n.answered_by, n.segments, n.twilio_sid)
), timeline AS (
	INSERT INTO notification_events (notification_id, kind, status, source, twilio_status, twilio_sid, error_code, detail)
	SELECT i.id,
		CASE WHEN d.id IS NULL THEN 'unknown_id'
			WHEN i.sid <> coalesce(d.sid_before, d.told_sid) THEN 'second_sid'
			WHEN i.rank = 0 THEN 'unknown_word'
			WHEN i.outcome IN ('SUCCESS', 'FAILED') AND (
				d.rank_before > 0 AND d.before IN ('SUCCESS', 'FAILED') AND d.word_before <> i.word AND d.before <> i.outcome
				OR d.outcome IN ('SUCCESS', 'FAILED') AND d.word <> i.word AND d.outcome <> i.outcome -- another of this group
			) THEN 'conflicting_final'
			ELSE 'receipt' END,
		d.status, i.source, i.word, i.sid, i.code::text, nullif(i.detail, '')
	FROM input i
	LEFT JOIN coded d ON d.id = i.id AND d.channel = i.channel
	WHERE i.id IS NOT NULL
	ORDER BY i.place
	RETURNING notification_id, kind
)
SELECT d.id, d.channel::text, d.before::text, d.status::text, d.workflow_id, d.sender_id, coalesce(d.sid_before, CASE WHEN d.sid_owner IS NULL THEN d.told_sid END), d.code,
	d.code IS NOT NULL AND d.ranked_before IS NULL,
	d.id = ANY (ARRAY(SELECT notification_id FROM timeline WHERE kind = 'second_sid')),
	d.id = ANY (ARRAY(SELECT notification_id FROM timeline WHERE kind = 'conflicting_final')),
	(SELECT o.id FROM notifications o WHERE o.id = d.sid_owner AND o.found_at IS NOT NULL)
FROM coded d`
}
