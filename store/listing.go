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

// Listing is the turn to read a channel's list at the carrier. Over all processes one listing of a
// channel runs at a time.
type Listing struct {
	ID      uuid.UUID
	Channel notify.Channel
	BeganAt time.Time // what was sent before it shows in the list, unless it still waits in the carrier's queue
}

// listingLease is how long after its last sign of life a listing counts as abandoned.
const listingLease = 30 * time.Second

// ErrListingLost means that a listing was silent for so long that another one was begun.
var ErrListingLost = errors.New("another process has taken over the listing")

// BeginListing takes the turn to list a channel. It returns nil while another listing runs.
func (s *Store) BeginListing(ctx context.Context, channel notify.Channel) (*Listing, error) {
	listing, err := one(ctx, s, pgx.RowToStructByPos[Listing], `
		INSERT INTO listings (id, channel, began_at, alive_at)
		VALUES (gen_random_uuid(), $1, clock_timestamp(), clock_timestamp())
		ON CONFLICT (channel) WHERE ended_at IS NULL DO UPDATE SET
			id = EXCLUDED.id, began_at = EXCLUDED.began_at, alive_at = EXCLUDED.alive_at
		WHERE listings.alive_at < clock_timestamp() - $2::interval
		RETURNING id, channel::text, began_at`, channel, listingLease)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("begin a listing: %w", err)
	}
	return &listing, nil
}

// Window is a span of sent_at.
type Window struct{ From, Until time.Time }

// DueWindow returns the span of time in which most of a channel's rows that are to be asked for were
// sent, without a pause longer than gap: a list of it is worth more than asking for each. Rows that
// a listing has covered since their time came do not count. It returns nil when no span has more
// than few rows. delay is how long after sending the carrier is asked for the first time.
func (s *Store) DueWindow(ctx context.Context, channel notify.Channel, delay, gap time.Duration, few int) (*Window, error) {
	window, err := one(ctx, s, pgx.RowToStructByPos[Window], `
		WITH due AS (
			SELECT n.sent_at, n.sent_at - lag(n.sent_at) OVER (ORDER BY n.sent_at) > $3::interval AS after_pause
			FROM notifications n
			WHERE n.channel = $2 AND n.status = 'PENDING' AND n.twilio_sid IS NOT NULL
				AND `+checkAt+` <= clock_timestamp() AND NOT `+coveredSQL+`
		), numbered AS (
			SELECT sent_at, count(*) FILTER (WHERE after_pause) OVER (ORDER BY sent_at) AS span
			FROM due
		)
		SELECT min(sent_at), max(sent_at)
		FROM numbered
		GROUP BY span
		HAVING count(*) > $4
		ORDER BY count(*) DESC
		LIMIT 1`, delay, channel, gap, few)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("choose what to list: %w", err)
	}
	return &window, nil
}

// DueTogether reports whether more than few of a channel's rows are to be asked for that were sent
// about when this one was, not more than gap apart, as DueWindow counts them. The error is
// ErrNotFound when this one need not be asked for any more.
func (s *Store) DueTogether(ctx context.Context, id uuid.UUID, delay, gap time.Duration, few int) (bool, error) {
	many, err := one(ctx, s, pgx.RowTo[bool], `
		SELECT (
			SELECT count(*) > $4
			FROM (
				SELECT
				FROM notifications n
				WHERE n.channel = this.channel AND n.status = 'PENDING' AND n.twilio_sid IS NOT NULL
					AND n.sent_at BETWEEN this.sent_at - $3::interval AND this.sent_at + $3::interval
					AND `+checkAt+` <= clock_timestamp() AND NOT `+coveredSQL+`
				LIMIT $4 + 1
			) AS about_then
		)
		FROM (
			SELECT n.channel, n.sent_at
			FROM notifications n
			WHERE n.id = $2 AND n.status = 'PENDING' AND `+checkAt+` <= clock_timestamp()
		) AS this`, delay, id, gap, few)
	if err != nil && !errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("count what is to be asked for: %w", err)
	}
	return many, err
}

// KeepListing says that a listing goes on. The error is ErrListingLost when another one has begun.
func (s *Store) KeepListing(ctx context.Context, l Listing) error {
	return s.touchListing(ctx, `UPDATE listings SET alive_at = clock_timestamp() WHERE id = $1 AND ended_at IS NULL`, l.ID)
}

// EndListing ends a listing that showed everything that was sent in the window. Checks know of it
// for an hour.
func (s *Store) EndListing(ctx context.Context, l Listing, covered Window) error {
	return s.touchListing(ctx, `
		WITH old AS (
			DELETE FROM listings WHERE ended_at < clock_timestamp() - interval '1 hour'
		)
		UPDATE listings SET ended_at = clock_timestamp(), covers_from = $2, covers_until = $3
		WHERE id = $1 AND ended_at IS NULL`, l.ID, covered.From, covered.Until)
}

// DropListing gives the turn back: the listing had nothing to do, or failed.
func (s *Store) DropListing(ctx context.Context, l Listing) error {
	if _, err := s.pool.Exec(ctx, `DELETE FROM listings WHERE id = $1 AND ended_at IS NULL`, l.ID); err != nil {
		return fmt.Errorf("give up a listing: %w", err)
	}
	return nil
}

func (s *Store) touchListing(ctx context.Context, sql string, args ...any) error {
	tag, err := s.pool.Exec(ctx, sql, args...)
	if err != nil {
		return fmt.Errorf("keep a listing: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrListingLost
	}
	return nil
}
