package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Query is the statement of a page, for a test of its plan.
func (f Filter) Query(after *Place, limit int) (sql string, args []any) { return f.query(after, limit) }

// Planned is how often a statement of one connection was planned for its arguments, and how often the
// plan for any was used.
type Planned struct {
	SQL           string
	Custom, Whole int64
}

// Plans are those of every statement that a connection has prepared.
func (s *Store) Plans(ctx context.Context) ([]Planned, error) {
	return many(ctx, s, pgx.RowToStructByPos[Planned], `SELECT statement, custom_plans, generic_plans FROM pg_prepared_statements`)
}
