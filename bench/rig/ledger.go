package rig

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/todoku/todoku/notify"
)

// Ledger reads the tables from outside, as an auditor does: it does not trust the code that it audits,
// so it has its own SQL.
type Ledger struct{ pool *pgxpool.Pool }

func openLedger(ctx context.Context, url string) (*Ledger, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	config.MaxConns = 4
	config.ConnConfig.ConnectTimeout = 5 * time.Second
	config.ConnConfig.RuntimeParams["application_name"] = "rig"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	return &Ledger{pool}, nil
}

// Version is that of the database server.
func (l *Ledger) Version(ctx context.Context) (version string, err error) {
	err = l.pool.QueryRow(ctx, `SELECT split_part(current_setting('server_version'), ' ', 1)`).Scan(&version)
	return version, err
}

// A Row is a notification in the ledger.
type Row struct {
	ID         uuid.UUID
	To         string
	Reference  *string
	Status     notify.Status
	TwilioSID  *string
	Attempts   int
	WorkflowID *string
	Code       *string // of the failure, the carrier's or ours
}

// Rows reads all notifications, or those with a reference.
func (l *Ledger) Rows(ctx context.Context, reference string) ([]Row, error) {
	rows, err := l.pool.Query(ctx, `
		SELECT id, to_number, reference, status::text, twilio_sid, attempts, workflow_id, coalesce(twilio_error_code, failure_code)
		FROM notifications
		WHERE $1 = '' OR reference = $1
		ORDER BY id`, reference)
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Row])
}

// Unsettled counts the notifications with a reference, or of all, that have no final status. It is asked
// again and again, so each status is read along an index of its own.
func (l *Ledger) Unsettled(ctx context.Context, reference string) (n int, err error) {
	err = l.pool.QueryRow(ctx, `
		SELECT count(*)
		FROM (
			SELECT reference FROM notifications WHERE status = 'ACCEPTED' AND batch_id IS NULL
			UNION ALL SELECT reference FROM notifications WHERE status = 'ACCEPTED' AND batch_id IS NOT NULL
			UNION ALL SELECT reference FROM notifications WHERE status = 'SENDING'
			UNION ALL SELECT reference FROM notifications WHERE status = 'PENDING'
		) AS unsettled
		WHERE $1 = '' OR reference = $1`, reference).Scan(&n)
	return n, err
}

// Statuses counts the notifications of a batch by their status, row by row.
func (l *Ledger) Statuses(ctx context.Context, batch uuid.UUID) (map[notify.Status]int, error) {
	rows, err := l.pool.Query(ctx, `SELECT status::text, count(*) FROM notifications WHERE batch_id = $1 GROUP BY 1`, batch)
	if err != nil {
		return nil, fmt.Errorf("read the ledger: %w", err)
	}
	counts := map[notify.Status]int{}
	var status notify.Status
	var n int
	_, err = pgx.ForEachRow(rows, []any{&status, &n}, func() error {
		counts[status] = n
		return nil
	})
	return counts, err
}

// AwaitSettled waits until nothing with the reference is unsettled, or, when nothing has settled for so
// long, gives up and returns how much is not. An outage of the database is waited for too.
func (l *Ledger) AwaitSettled(ctx context.Context, reference string, patience time.Duration) (left int, err error) {
	return awaitNone(ctx, patience, func() (int, error) { return l.Unsettled(ctx, reference) })
}

// awaitNone waits until count finds nothing or, when it has found the same, or has failed, for so long,
// gives up and returns what it found last.
func awaitNone(ctx context.Context, patience time.Duration, count func() (int, error)) (left int, err error) {
	left, changed := -1, time.Now()
	for {
		now, err := count()
		switch {
		case err == nil && now == 0:
			return 0, nil
		case err == nil && now != left:
			left, changed = now, time.Now()
		case time.Since(changed) > patience || ctx.Err() != nil:
			return left, err
		}
		sleep(ctx, 100*time.Millisecond)
	}
}

// Timeline tells, a line for each event, what happened to a notification, without its number.
func (l *Ledger) Timeline(ctx context.Context, id uuid.UUID) (string, error) {
	var story strings.Builder
	var row, to string
	err := l.pool.QueryRow(ctx, `
		SELECT to_number, concat_ws(' ', status, 'attempts', attempts, twilio_sid, twilio_status, twilio_error_code, failure_code,
			'workflow', workflow_id, 'created', created_at, 'started', started_at, 'claimed', claimed_at, 'deadline', claim_deadline,
			'absent since', absent_since, 'sent', sent_at, 'check', check_at, 'settled', settled_at)
		FROM notifications WHERE id = $1`, id).Scan(&to, &row)
	if err != nil {
		return "", fmt.Errorf("read notification %s: %w", id, err)
	}
	fmt.Fprintf(&story, "%s to %s: %s\n", id, notify.Mask(to), row)
	rows, err := l.pool.Query(ctx, `
		SELECT concat_ws(' ', at, kind, status, source, twilio_status, twilio_sid, error_code, detail)
		FROM notification_events WHERE notification_id = $1 ORDER BY id`, id)
	if err != nil {
		return "", fmt.Errorf("read the timeline of %s: %w", id, err)
	}
	events, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, event := range events {
		fmt.Fprintf(&story, "    %s\n", event)
	}
	return story.String(), err
}
