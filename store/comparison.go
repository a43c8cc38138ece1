package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/todoku/todoku/notify"
)

// Comparison holds a batch against what the carrier lists: what that shows is collected in a temporary
// table, and joined with the ledger when all of it is there. It keeps one connection until it is closed,
// and no transaction open.
type Comparison struct {
	Channel notify.Channel
	From    string  // the address of the batch's sender
	Window  *Window // in which all of the batch was sent until now; nil: nothing of it was

	check uuid.UUID
	batch uuid.UUID
	asked time.Time // what the next part of the list shows is not older
	conn  *pgxpool.Conn
}

// CarrierSend is a message or a call that the carrier shows.
type CarrierSend struct {
	SID       string
	Word      string // the carrier's status
	To        string // E.164
	Ours      bool   // made through the API, from the batch's sender
	CreatedAt time.Time
}

// BeginComparison begins to make a check. The error is ErrNotFound when the check has ended, or
// another one has taken its place.
func (s *Store) BeginComparison(ctx context.Context, check uuid.UUID) (_ *Comparison, err error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("compare with the carrier: %w", err)
	}
	c := &Comparison{check: check, conn: conn}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	if err := c.lives(ctx); err != nil {
		return nil, err
	}
	var from, until *time.Time
	err = conn.QueryRow(ctx, `
		SELECT b.id, b.channel::text, s.address, clock_timestamp(), sent.first, sent.last
		FROM carrier_checks c
		JOIN batches b ON b.id = c.batch_id
		JOIN senders s ON s.id = b.sender_id
		CROSS JOIN LATERAL (
			SELECT min(least(n.first_claimed_at, n.sent_at)) AS first, max(greatest(n.claimed_at, n.sent_at)) AS last
			FROM notifications n
			WHERE `+ofBatch+`
		) AS sent
		WHERE c.id = $1`, check).Scan(&c.batch, &c.Channel, &c.From, &c.asked, &from, &until)
	if err != nil {
		return nil, fmt.Errorf("compare with the carrier: %w", err)
	}
	if from != nil {
		c.Window = &Window{*from, *until}
	}
	_, err = conn.Exec(ctx, `
		CREATE TEMP TABLE at_carrier (
			sid text PRIMARY KEY, word text NOT NULL, outcome notification_status NOT NULL, to_number text NOT NULL,
			ours boolean NOT NULL, created_at timestamptz, asked_at timestamptz NOT NULL
		)`)
	if err != nil {
		return nil, fmt.Errorf("compare with the carrier: %w", err)
	}
	return c, nil
}

// Close gives up what was collected.
func (c *Comparison) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := c.conn.Exec(ctx, `DROP TABLE IF EXISTS at_carrier`); err != nil {
		_ = c.conn.Conn().Close(ctx) // the table goes with the connection
	}
	c.conn.Release()
}

// lives says that the check goes on.
func (c *Comparison) lives(ctx context.Context) error {
	tag, err := c.conn.Exec(ctx, `UPDATE carrier_checks SET alive_at = clock_timestamp() WHERE id = $1 AND ended_at IS NULL`, c.check)
	if err != nil {
		return fmt.Errorf("compare with the carrier: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrNotFound
	}
	return nil
}

// Add collects a part of what the carrier shows, which was asked for after the part before was added.
// The error is ErrNotFound when another check has taken the place of this one.
func (c *Comparison) Add(ctx context.Context, sends []CarrierSend) error {
	if err := c.lives(ctx); err != nil {
		return err
	}
	err := pgx.BeginFunc(ctx, c.conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `CREATE TEMP TABLE part (sid text, word text, outcome text, to_number text, ours boolean, created_at timestamptz) ON COMMIT DROP`)
		if err != nil {
			return err
		}
		columns := []string{"sid", "word", "outcome", "to_number", "ours", "created_at"}
		_, err = tx.CopyFrom(ctx, pgx.Identifier{"part"}, columns, pgx.CopyFromSlice(len(sends), func(i int) ([]any, error) {
			s := sends[i]
			outcome := notify.Pending
			if word, known := notify.LookupWord(c.Channel, s.Word); known {
				outcome = word.Outcome
			}
			var created *time.Time
			if !s.CreatedAt.IsZero() {
				created = &s.CreatedAt
			}
			return []any{s.SID, s.Word, string(outcome), s.To, s.Ours, created}, nil
		}))
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			INSERT INTO at_carrier (sid, word, outcome, to_number, ours, created_at, asked_at)
			SELECT DISTINCT ON (sid) sid, word, outcome::notification_status, to_number, ours, created_at, $1 FROM part
			ON CONFLICT (sid) DO UPDATE SET word = EXCLUDED.word, outcome = EXCLUDED.outcome, asked_at = EXCLUDED.asked_at`, c.asked)
		if err != nil {
			return err
		}
		return tx.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&c.asked)
	})
	if err != nil {
		return fmt.Errorf("compare with the carrier: %w", err)
	}
	return nil
}

// absent are the batch's notifications that the carrier has accepted, by the ledger, and that nothing
// of what was collected shows. What was sent since the comparison began ($2) is left out.
const absent = `
	SELECT n.id, n.batch_row, n.twilio_sid AS sid
	FROM batches b
	JOIN notifications n ON ` + ofBatch + `
	WHERE b.id = $1 AND n.twilio_sid IS NOT NULL AND n.sent_at <= $2
		AND NOT EXISTS (SELECT FROM at_carrier c WHERE c.sid = n.twilio_sid)`

// Absent gives the SIDs of some of the notifications that the list does not show: what still waits in
// the carrier's queue is one of them, so each is to be asked for.
func (c *Comparison) Absent(ctx context.Context, limit int) ([]string, error) {
	if c.Window == nil {
		return nil, nil
	}
	if _, err := c.conn.Exec(ctx, `ANALYZE at_carrier`); err != nil { // a temporary table has no statistics of its own accord
		return nil, fmt.Errorf("compare with the carrier: %w", err)
	}
	rows, err := c.conn.Query(ctx, `SELECT sid FROM (`+absent+` ORDER BY n.batch_row LIMIT $3) AS absent`, c.batch, c.Window.Until, limit)
	if err != nil {
		return nil, fmt.Errorf("compare with the carrier: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// End writes down where the batch and what was collected differ, and ends the check. missing are those
// SIDs that the carrier, asked for each, does not have. The error is ErrNotFound when another check has
// taken the place of this one.
func (c *Comparison) End(ctx context.Context, missing []string) error {
	err := pgx.BeginFunc(ctx, c.conn, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE carrier_checks SET ended_at = clock_timestamp(), failure = NULL WHERE id = $1 AND ended_at IS NULL`, c.check)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return ErrNotFound
		}
		if _, err := tx.Exec(ctx, `DELETE FROM carrier_differences WHERE batch_id = $1`, c.batch); err != nil || c.Window == nil {
			return err
		}
		return c.compare(ctx, tx, missing)
	})
	if err != nil && !errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("compare with the carrier: %w", err)
	}
	return err
}

func (c *Comparison) compare(ctx context.Context, tx pgx.Tx, missing []string) error {
	for _, step := range []struct {
		sql  string
		args []any
	}{
		// Sends from the batch's sender that no notification has, or only one that was made because nobody
		// had asked for it. A send whose answer a claim still waits for is nobody's yet.
		{`
			CREATE TEMP TABLE unowned ON COMMIT DROP AS
			SELECT c.sid, c.word, c.to_number, c.created_at
			FROM at_carrier c
			WHERE c.ours
				AND NOT EXISTS (SELECT FROM notifications n WHERE n.twilio_sid = c.sid AND n.found_at IS NULL)
				AND NOT EXISTS (SELECT FROM notifications n WHERE n.status = 'SENDING' AND n.to_number = c.to_number)`, nil},
		{`ANALYZE unowned`, nil},
		{`CREATE TEMP TABLE differences (kind text, rank int, id uuid, batch_row int, sid text, word text, created_at timestamptz) ON COMMIT DROP`, nil},
		{`
			INSERT INTO differences
			SELECT DISTINCT ON (e.twilio_sid) $2, 1, n.id, n.batch_row, e.twilio_sid, c.word, c.created_at
			FROM notification_events e
			JOIN notifications n ON n.id = e.notification_id
			LEFT JOIN at_carrier c ON c.sid = e.twilio_sid
			WHERE e.kind = 'second_sid' AND e.twilio_sid IS NOT NULL AND n.batch_id = $1`, []any{c.batch, SecondSID}},
		{`
			INSERT INTO differences
			SELECT DISTINCT ON (u.sid) $2, 2, n.id, n.batch_row, u.sid, u.word, u.created_at
			FROM batches b
			JOIN notifications n ON ` + ofBatch + `
			JOIN unowned u ON u.to_number = n.to_number
			WHERE b.id = $1 AND NOT EXISTS (SELECT FROM differences d WHERE d.sid = u.sid)
			ORDER BY u.sid, n.status = 'SKIPPED', n.twilio_sid IS NOT NULL, n.batch_row`, []any{c.batch, ExtraAtCarrier}},
		{`
			INSERT INTO differences
			SELECT $3, 3, id, batch_row, sid
			FROM (` + absent + `) AS absent
			WHERE sid = ANY ($4)`, []any{c.batch, c.Window.Until, MissingAtCarrier, missing}},
		// A row that has moved since the carrier was asked may know more than it.
		{`
			INSERT INTO differences
			SELECT $2, 4, n.id, n.batch_row, c.sid, c.word, c.created_at
			FROM at_carrier c
			JOIN notifications n ON n.twilio_sid = c.sid
			WHERE n.batch_id = $1 AND n.updated_at < c.asked_at
				AND c.word IS DISTINCT FROM n.twilio_status AND c.outcome <> n.status AND NOT (c.outcome = 'PENDING' AND n.status = 'UNKNOWN')`,
			[]any{c.batch, StatusDiffers}},
		{`
			UPDATE carrier_checks SET
				compared = (
					SELECT count(*)
					FROM batches b
					JOIN notifications n ON ` + ofBatch + `
					WHERE b.id = $1 AND n.twilio_sid IS NOT NULL AND n.sent_at <= $2
				),
				listed = (SELECT count(*) FROM at_carrier),
				unverified = (SELECT count(*) FROM (` + absent + `) AS absent) - d.missing,
				second_sids = d.second_sids, extra = d.extra, missing = d.missing, status_differs = d.differing
			FROM (
				SELECT count(*) FILTER (WHERE rank = 1) AS second_sids, count(*) FILTER (WHERE rank = 2) AS extra,
					count(*) FILTER (WHERE rank = 3) AS missing, count(*) FILTER (WHERE rank = 4) AS differing
				FROM differences
			) AS d
			WHERE batch_id = $1`, []any{c.batch, c.Window.Until}},
		{`
			INSERT INTO carrier_differences (batch_id, place, kind, notification_id, twilio_sid, carrier_status, carrier_created_at)
			SELECT $1, row_number() OVER (ORDER BY rank, batch_row, sid), kind, id, sid, word, created_at
			FROM differences
			ORDER BY rank, batch_row, sid
			LIMIT $2`, []any{c.batch, MaxDifferences}},
	} {
		if _, err := tx.Exec(ctx, step.sql, step.args...); err != nil {
			return err
		}
	}
	return nil
}
