package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// Batch is one bulk request as readers see it.
type Batch struct {
	ID              uuid.UUID
	Name            *string
	Channel         notify.Channel
	Message         *string
	TemplateID      *int64
	TemplateVersion *int32
	ScheduleID      *int64 // it is a run of this schedule
	SenderID        int64
	SenderStopped   bool
	QueueFull       bool // it waits until the carrier's queue has room
	Total           int32
	RejectedCount   int32
	Rejected        []Rejected
	RejectedByCode  map[string]int // how many rows were rejected for each code
	IgnoredColumns  []string
	SendInterval    *time.Duration // its own pace; nil: that of its sender
	SendAt          time.Time
	PausedAt        *time.Time
	PauseReason     *string
	CanceledAt      *time.Time
	FinishedAt      *time.Time
	CreatedAt       time.Time
	WorkflowID      string
	Waits           bool // its time has not come
	SendsPerSecond  float64
	Counts
}

// Rejected is a row of a request that nothing can be sent to.
type Rejected struct {
	Row    int    `json:"row" doc:"Of a file: the first one below the names is 1, and empty ones count. Of a JSON array: the first element is 1."`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// MaxRejected is how many rejected rows a batch remembers.
const MaxRejected = 100

// Counts say how many notifications of a batch have each status, as it is stored.
type Counts struct {
	Accepted, Sending, Pending, Success, Failed, Unknown, Skipped, Canceled int64
}

// Outstanding is how many are not final.
func (c Counts) Outstanding() int64 { return c.Accepted + c.Sending + c.Pending }

// Finished reports whether every notification is final. In SQL it is batchOutstanding = 0.
func (c Counts) Finished() bool { return c.Outstanding() == 0 }

// BatchState is what a batch is doing.
type BatchState string

// The states of a batch.
const (
	BatchScheduled BatchState = "scheduled" // its time has not come
	BatchRunning   BatchState = "running"
	BatchPaused    BatchState = "paused"
	BatchFinished  BatchState = "finished" // every notification is final
	BatchCanceled  BatchState = "canceled" // nothing more is sent; what was sent is still followed
)

// State is what the batch is doing.
func (b Batch) State() BatchState {
	switch {
	case b.CanceledAt != nil:
		return BatchCanceled
	case b.FinishedAt != nil || b.Finished():
		return BatchFinished
	case b.PausedAt != nil:
		return BatchPaused
	case b.Waits:
		return BatchScheduled
	}
	return BatchRunning
}

// Workflow is the workflow that carries the batch.
func (b Batch) Workflow() BatchWorkflow { return BatchWorkflow{b.ID, b.WorkflowID, b.Channel} }

// ofBatch is the condition by which the notifications n of batch b are found: whoever reads more than those
// that are still to be sent reads a part of the primary key, in which what others accepted at the same
// time is left out.
const ofBatch = `n.batch_id = b.id AND n.id BETWEEN b.first_id AND b.last_id`

// batchCounts gives, of batch b, how many notifications have each status.
const batchCounts = `(
	SELECT
		coalesce(sum(n) FILTER (WHERE status = 'ACCEPTED'), 0)::bigint AS accepted,
		coalesce(sum(n) FILTER (WHERE status = 'SENDING'), 0)::bigint AS sending,
		coalesce(sum(n) FILTER (WHERE status = 'PENDING'), 0)::bigint AS pending,
		coalesce(sum(n) FILTER (WHERE status = 'SUCCESS'), 0)::bigint AS success,
		coalesce(sum(n) FILTER (WHERE status = 'FAILED'), 0)::bigint AS failed,
		coalesce(sum(n) FILTER (WHERE status = 'UNKNOWN'), 0)::bigint AS unknown,
		coalesce(sum(n) FILTER (WHERE status = 'SKIPPED'), 0)::bigint AS skipped,
		coalesce(sum(n) FILTER (WHERE status = 'CANCELED'), 0)::bigint AS canceled
	FROM (
		SELECT status, count AS n FROM batch_counts WHERE batch_id = b.id
		UNION ALL
		SELECT status, delta FROM batch_moves WHERE batch_id = b.id
	) AS parts
)`

// batchOutstanding is, of counts c, how many notifications are not final.
const batchOutstanding = `(c.accepted + c.sending + c.pending)`

// batchSent is, of counts c, how many notifications were sent, or were tried in vain. What is under way
// may be given back.
const batchSent = `(c.pending + c.success + c.failed + c.unknown)`

// rateWindow is how far back the rate of sending is measured: no further than to where somebody last
// paused or resumed the batch, or changed its pace.
const rateWindow = 10 * time.Second

// batchSQL reads batches as RowToStructByPos needs them for a Batch, with the time of rateWindow as $1.
const batchSQL = `
	SELECT b.id, b.name, b.channel::text, b.message, b.template_id, b.template_version, b.schedule_id, b.sender_id, s.stopped_at IS NOT NULL, s.batches_queue_full_at IS NOT NULL,
		b.total, b.rejected_count, b.rejected, b.rejected_by_code, b.ignored_columns, b.send_interval, b.send_at,
		b.paused_at, b.pause_reason, b.canceled_at, b.finished_at, b.created_at, b.workflow_id,
		b.send_at > clock_timestamp(), coalesce(greatest(0, rate.sends), 0)::float8,
		c.accepted, c.sending, c.pending, c.success, c.failed, c.unknown, c.skipped, c.canceled
	FROM batches b
	JOIN senders s ON s.id = b.sender_id
	CROSS JOIN LATERAL ` + batchCounts + ` AS c
	LEFT JOIN LATERAL (
		SELECT (` + batchSent + ` - p.sent) / nullif(extract(epoch FROM clock_timestamp() - p.at), 0) AS sends
		FROM batch_samples p
		WHERE p.batch_id = b.id AND b.finished_at IS NULL AND p.at >= clock_timestamp() - $1::interval
		ORDER BY p.at
		LIMIT 1
	) AS rate ON true`

// Batch reads one batch. The error is ErrNotFound when there is none.
func (s *Store) Batch(ctx context.Context, id uuid.UUID) (Batch, error) {
	b, err := one(ctx, s, pgx.RowToStructByPos[Batch], batchSQL+` WHERE b.id = $2`, rateWindow, id)
	if err != nil && !errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("read batch: %w", err)
	}
	return b, err
}

// Batches lists batches, the newest first, after the place given (nil: from the start); at most limit.
func (s *Store) Batches(ctx context.Context, after *Place, limit int) ([]Batch, error) {
	if after == nil {
		after = &Place{CreatedAt: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}
	}
	page, err := many(ctx, s, pgx.RowToStructByPos[Batch], batchSQL+`
		WHERE (b.created_at, b.id) < ($2, $3)
		ORDER BY b.created_at DESC, b.id DESC
		LIMIT $4`, rateWindow, after.CreatedAt, after.ID, limit)
	if err != nil {
		return nil, fmt.Errorf("list batches: %w", err)
	}
	return page, nil
}

// Place is where the batch stands in the list.
func (b Batch) Place() Place { return Place{b.CreatedAt, b.ID} }

// NewBatch is what a caller asks to be sent to many. It must be valid: the store checks only what the
// schema checks.
type NewBatch struct {
	ID              uuid.UUID
	Name            *string
	Channel         notify.Channel
	Message         *string // or a template
	TemplateID      *int64
	TemplateVersion *int32
	SenderID        int64
	RequireHuman    bool
	ShardSize       int
	SendAt          *time.Time // nil, or a moment that has passed: now
	IgnoredColumns  []string
	ScheduleID      *int64 // the schedule that it is a run of

	// Recipients gives those to write, in order. It returns false after the last one, and an error when
	// the request turns out to be wrong: then nothing is accepted.
	Recipients func() (BatchRecipient, bool, error)
	// Rejected gives the number of rows that were left out and the first of them. It is called after
	// the last recipient.
	Rejected func() (int, []Rejected)
	// RejectedByCode gives how many of them there are for each code, and is called after Rejected. nil: nobody counts.
	RejectedByCode func() map[string]int

	Once   *Once                       // its Answer is not used
	Answer func(Batch) (Answer, error) // to the request, where Once is set
}

// BatchRecipient is one notification of a new batch.
type BatchRecipient struct {
	ID     uuid.UUID
	Row    int // in the request: the first one is 1
	To     notify.PhoneNumber
	ToHash []byte
	Params []byte // JSON; nil when the batch has no template
	Twin   bool   // an earlier row has the same number and parameters: this one is SKIPPED
}

// ErrNoRecipients means that a batch has no row to send to.
var ErrNoRecipients = errors.New("the batch has no recipients")

// AcceptBatch writes a batch and its notifications to the ledger. Its commit is the acceptance of all
// of them. The error is ErrNoRecipients, ErrKeyInUse, ErrKeyReused, what Recipients returned, or
// ErrArchived or ErrReferenceGone when that happened to the template meanwhile; then nothing was accepted.
// Where the same was asked before under the same key, replay is what was answered.
func (s *Store) AcceptBatch(ctx context.Context, n NewBatch) (accepted Batch, replay *Answer, err error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return accepted, nil, fmt.Errorf("accept batch: %w", err)
	}
	defer conn.Release()
	for _, name := range []string{"channel", "notification_status"} { // COPY needs to know them
		t, err := conn.Conn().LoadType(ctx, name)
		if err != nil {
			return accepted, nil, fmt.Errorf("accept batch: %w", err)
		}
		conn.Conn().TypeMap().RegisterType(t)
	}
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if n.Once != nil {
			if replay, err = lockKey(ctx, tx, n.Once); err != nil || replay != nil {
				return err
			}
		}
		if err := writeBatch(ctx, tx, n); err != nil {
			return err
		}
		if n.TemplateID != nil { // as late as can be: an upload takes long, and nobody shall wait for it
			if err := keepTemplate(ctx, tx, *n.TemplateID); err != nil {
				return err
			}
		}
		rows, err := tx.Query(ctx, batchSQL+` WHERE b.id = $2`, rateWindow, n.ID)
		if err != nil {
			return err
		}
		if accepted, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Batch]); err != nil || n.Once == nil {
			return err
		}
		answer, err := n.Answer(accepted)
		if err != nil {
			return err
		}
		return keepAnswer(ctx, tx, n.Once, answer)
	})
	if hasCode(err, foreignKeyViolation) {
		err = ErrReferenceGone
	}
	if err != nil {
		return Batch{}, nil, fmt.Errorf("accept batch: %w", err)
	}
	return accepted, replay, nil
}

// writeBatch writes the notifications as they come, and then the batch, which is known by then.
func writeBatch(ctx context.Context, tx pgx.Tx, n NewBatch) error {
	var now time.Time
	if err := tx.QueryRow(ctx, `SELECT now()`).Scan(&now); err != nil {
		return err
	}
	source := &batchRows{batch: n, now: now, skipped: notify.LedgerMessage(notify.CodeDuplicate, n.Channel, "")}
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"notifications"}, batchRowColumns, source); err != nil {
		if source.err != nil {
			return source.err
		}
		return err
	}
	if source.sent == 0 {
		return ErrNoRecipients
	}
	source.rejected, source.firstRejected = n.Rejected()
	if n.RejectedByCode != nil {
		source.rejectedByCode = n.RejectedByCode()
	}
	return insertBatch(ctx, tx, n, source.batchWritten)
}

// batchWritten is what became of the rows of a new batch.
type batchWritten struct {
	ids           idRange // of the notifications
	sent          int     // those that are to be sent
	twins         int     // those that are not
	rejected      int     // rows that there is none for
	firstRejected []Rejected

	rejectedByCode map[string]int
}

// insertBatch writes the batch itself, whose notifications are known.
func insertBatch(ctx context.Context, tx pgx.Tx, n NewBatch, w batchWritten) error {
	first, err := json.Marshal(append([]Rejected{}, w.firstRejected...))
	if err != nil {
		return err
	}
	byCode := w.rejectedByCode
	if byCode == nil {
		byCode = map[string]int{}
	}
	_, err = tx.Exec(ctx, `
		WITH batch AS (
			INSERT INTO batches (id, name, channel, message, template_id, template_version, sender_id,
				total, rejected_count, rejected, ignored_columns, shard_size, shards, send_at, carry_by, workflow_id, schedule_id,
				first_id, last_id, rejected_by_code)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8::int + $9::int, $10, $11, $12, $13, ($8::int + $13::int - 1) / $13::int, greatest($14::timestamptz, now()), now(), $15, $16, $17, $18, $19)
			RETURNING id
		)
		INSERT INTO batch_counts (batch_id, status, count)
		SELECT id, status, count
		FROM batch, (VALUES ('ACCEPTED'::notification_status, $8::int), ('SKIPPED', $9::int)) AS counts (status, count)`,
		n.ID, n.Name, n.Channel, n.Message, n.TemplateID, n.TemplateVersion, n.SenderID,
		w.sent, w.twins, w.rejected, first, append([]string{}, n.IgnoredColumns...), n.ShardSize, n.SendAt, notify.BatchWorkflowID(n.ID), n.ScheduleID,
		w.ids.first, w.ids.last, byCode)
	return err
}

// batchRows is what COPY reads.
type batchRows struct {
	batch   NewBatch
	now     time.Time
	skipped string // what people are told of a duplicate
	values  []any
	err     error
	batchWritten
}

var batchRowColumns = []string{
	"id", "channel", "status", "to_number", "to_national", "to_hash", "params", "sender_id", "require_human",
	"batch_id", "batch_row", "place", "workflow_id", "failure_code", "error_message", "settled_at",
	"created_at", "send_at", "started_at", "updated_at",
}

// Next reads the next recipient. started_at is set from the start: the batch's workflow starts its
// shards, and the relay looks only for those that take their place.
func (r *batchRows) Next() bool {
	to, ok, err := r.batch.Recipients()
	if err != nil || !ok {
		r.err = err
		return false
	}
	var status = notify.Accepted
	var place, workflow, code, message, settled any
	if to.Twin {
		r.twins++
		status, code, message, settled = notify.Skipped, notify.CodeDuplicate, r.skipped, r.now
	} else {
		place, workflow = r.sent, notify.ShardWorkflowID(r.batch.ID, r.sent/r.batch.ShardSize)
		r.sent++
	}
	r.ids.add(to.ID)
	// As plain bytes: an id of its own type would be written as text, and read again.
	r.values = append(r.values[:0],
		[16]byte(to.ID), string(r.batch.Channel), string(status), to.To.E164, to.To.National, to.ToHash, to.Params, r.batch.SenderID, r.batch.RequireHuman,
		[16]byte(r.batch.ID), to.Row, place, workflow, code, message, settled,
		CreatedAt(to.ID), r.now, r.now, r.now)
	return true
}

// Values are those of the row.
func (r *batchRows) Values() ([]any, error) { return r.values, nil }

// Err is what ended the recipients early.
func (r *batchRows) Err() error { return r.err }
