package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// InboundListing says which calls to our number are still to be looked for in the carrier's list.
type InboundListing struct {
	Number string
	Since  time.Time // calls that came in before were somebody else's
	From   time.Time // calls that came in before were looked for
	Until  time.Time // now
}

// listInboundOf makes the number, empty for none, the one whose calls are ours from now on. What it was already, it
// stays.
func listInboundOf(ctx context.Context, tx pgx.Tx, number string) error {
	if number == "" {
		_, err := tx.Exec(ctx, `DELETE FROM inbound_listing`)
		return err
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO inbound_listing AS l (number) VALUES ($1)
		ON CONFLICT (single) DO UPDATE SET
			number = excluded.number, since = excluded.since, listed_until = excluded.listed_until
		WHERE l.number <> excluded.number`, number)
	return err
}

// InboundListing reads which calls are to be looked for. The error is ErrNotFound while no number is ours.
func (s *Store) InboundListing(ctx context.Context) (InboundListing, error) {
	listing, err := one(ctx, s, pgx.RowToStructByPos[InboundListing], `
		SELECT number, since, listed_until, clock_timestamp() FROM inbound_listing`)
	if err != nil && !errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("read which calls are to be looked for: %w", err)
	}
	return listing, err
}

// InboundListed notes that every call to the number is known that came in before.
func (s *Store) InboundListed(ctx context.Context, number string, until time.Time) error {
	if _, err := s.pool.Exec(ctx, `
		UPDATE inbound_listing SET listed_until = greatest(listed_until, $2)
		WHERE number = $1`, number, until); err != nil {
		return fmt.Errorf("note which calls are known: %w", err)
	}
	return nil
}

// UnknownInbound returns those of the calls that the ledger does not know.
func (s *Store) UnknownInbound(ctx context.Context, ids []uuid.UUID) (map[uuid.UUID]bool, error) {
	unknown, err := many(ctx, s, pgx.RowTo[uuid.UUID], `
		SELECT t.id FROM unnest($1::uuid[]) AS t (id)
		WHERE NOT EXISTS (SELECT FROM inbound_calls c WHERE c.id = t.id)`, ids)
	if err != nil {
		return nil, fmt.Errorf("look for calls: %w", err)
	}
	set := make(map[uuid.UUID]bool, len(unknown))
	for _, id := range unknown {
		set[id] = true
	}
	return set, nil
}
