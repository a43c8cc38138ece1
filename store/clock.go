package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// clockAge is for how long a measurement of the database's clock is relied on.
const clockAge = 10 * time.Second

// Now is what the database's clock shows. Moments that are compared with stored ones come from here. It is
// calculated; where nothing has measured the clock for a while, it is measured. While the database cannot be
// reached, the last measurement counts.
func (s *Store) Now(ctx context.Context) time.Time {
	if !s.clock.Fresh(clockAge) {
		_ = s.Ping(ctx)
	}
	return s.AtDatabase(time.Now())
}

// AtDatabase translates a moment of this process's clock into one of the database's.
func (s *Store) AtDatabase(moment time.Time) time.Time { return s.clock.There(moment) }

// Ping reports whether the database answers, and measures its clock.
func (s *Store) Ping(ctx context.Context) error {
	asked := time.Now()
	now, err := one(ctx, s, pgx.RowTo[time.Time], `SELECT clock_timestamp()`)
	if err != nil {
		return fmt.Errorf("ask the database for its time: %w", err)
	}
	s.clock.Learn(asked, now, 0, time.Now())
	return nil
}
