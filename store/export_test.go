package store

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Query is the statement of a page, for a test of its plan.
func (f Filter) Query(after *Place, limit int) (sql string, args []any) {
	return f.query(after, nil, limit)
}

// WindowQuery is the statement by which a page finds the end of a window, for a test of its plan; empty: it needs none.
func (f Filter) WindowQuery(after *Place, rows int) (sql string, args []any) {
	part, exact := f.indexed()
	if exact {
		return "", nil
	}
	return part.place(after, rows)
}

// Prepared is a statement that a connection has prepared.
type Prepared struct {
	Name   string
	SQL    string
	Params int
	Custom int64 // how often it was planned for its arguments
}

// Prepared lists the statements that a connection has prepared.
func (s *Store) Prepared(ctx context.Context) ([]Prepared, error) {
	return many(ctx, s, pgx.RowToStructByPos[Prepared], `SELECT name, statement, cardinality(parameter_types), custom_plans FROM pg_prepared_statements`)
}

// Plan is how the database runs the statement, whatever its arguments.
func (s *Store) Plan(ctx context.Context, p Prepared) ([]string, error) {
	args := ""
	if p.Params > 0 {
		args = "(" + strings.TrimSuffix(strings.Repeat("NULL, ", p.Params), ", ") + ")"
	}
	return many(ctx, s, pgx.RowTo[string], "EXPLAIN EXECUTE "+pgx.Identifier{p.Name}.Sanitize()+args, pgx.QueryExecModeSimpleProtocol)
}

// Setting is the value of a setting of Postgres on a connection of the pool.
func (s *Store) Setting(ctx context.Context, name string) (string, error) {
	return one(ctx, s, pgx.RowTo[string], `SELECT current_setting($1)`, name)
}

// Conflicting runs a transaction that fails with a SQLSTATE the first times, and says how often it was run.
func (s *Store) Conflicting(ctx context.Context, code string, times int) (tries int, err error) {
	err = s.pool.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if tries++; tries > times {
			return nil
		}
		_, err := tx.Exec(ctx, `DO $$ BEGIN RAISE EXCEPTION 'a test' USING ERRCODE = '`+code+`'; END $$`)
		return err
	})
	return tries, err
}
