// Package store is the ledger and every other table: all SQL of the product lives here, one
// statement per idea, next to the Go function that runs it.
package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/todoku/todoku/clock"
	"github.com/todoku/todoku/store/postgres"
)

// defaultConnections is how many connections a process opens at most, where its DATABASE_URL does
// not say otherwise with pool_max_conns: enough for every lane of groups, and for reads beside them.
const defaultConnections = 16

// ErrNotFound means that the ledger has no such row.
var ErrNotFound = errors.New("not found")

// Store runs statements on a pool of connections. It is safe for concurrent use.
//
// Transactions lock in one order, so that no two of them wait for each other: first the turn of whoever
// resumes a sender, then rows of notifications by id, the turn of a batch, the batch's row, the turn of a
// sender, and the sender's row last. One that needs none of a kind leaves it out.
type Store struct {
	pool   *pool
	clock  clock.Offset
	claims claimMemory
}

// Open connects to the database at url (postgres://…). It fails when the database cannot be reached
// within 5 s; the error names the host and never the password.
func Open(ctx context.Context, url string) (*Store, error) {
	config, err := postgres.PoolConfig(url)
	if err != nil {
		return nil, err
	}
	settings := map[string]string{
		"application_name": "todoku",
		"jit":              "off", // our statements are short: compiling one takes longer than running it

		// Every statement of ours has its index. A plan that was made, and is kept, while the tables are
		// small or without statistics would read them whole when they are large.
		"enable_seqscan": "off",

		// A statement is planned once, for any arguments. Left to itself, Postgres plans one anew for each
		// call for as long as its arrays have one element, and to plan one of ours takes several times as
		// long as to run it.
		"plan_cache_mode": "force_generic_plan",
	}
	params := config.ConnConfig.RuntimeParams
	for name := range settings {
		if params[name] != "" { // the URL decides
			settings[name] = params[name]
			delete(params, name)
		}
	}
	settings["synchronous_commit"] = durableCommit(params["synchronous_commit"])
	delete(params, "synchronous_commit")
	if !strings.Contains(url, "pool_max_conns") {
		config.MaxConns = defaultConnections
	}
	s := &Store{pool: &pool{}, clock: clock.Offset{Of: clock.Database}}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		registerUUID(conn.TypeMap())
		if err := postgres.Begin(ctx, conn, settings); err != nil {
			return err
		}
		return s.claims.verify(ctx, conn)
	}
	closes := config.ConnConfig.OnPgError
	config.ConnConfig.OnPgError = func(conn *pgconn.PgConn, answer *pgconn.PgError) bool {
		s.pool.note(answer)
		return closes(conn, answer)
	}
	if s.pool.Pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	pingCtx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err = s.pool.AcquireFunc(pingCtx, func(conn *pgxpool.Conn) error { return postgres.RefusePooler(pingCtx, conn.Conn()) })
	if err != nil {
		s.pool.Close()
		return nil, postgres.Explain(err, config.ConnConfig)
	}
	return s, nil
}

// Close waits for running statements and closes every connection.
func (s *Store) Close() { s.pool.Close() }

// MaxConnections is how many connections the store opens at most.
func (s *Store) MaxConnections() int { return int(s.pool.Config().MaxConns) }

// Ready reports whether the database takes writes, or what it lately said that it lacks.
func (s *Store) Ready(ctx context.Context) error {
	readOnly, err := one(ctx, s, pgx.RowTo[bool], `SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean`)
	switch {
	case err != nil:
		return err
	case readOnly:
		s.pool.Reset() // a new connection may lead to the server that took over
		return ErrStandby
	}
	return s.pool.lacks()
}

// IsTimeLimit reports whether err says that a statement was ended because its time was over. A database that
// cannot be connected to in that time is an outage.
func IsTimeLimit(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && !errors.As(err, new(*pgconn.ConnectError))
}

// IsOutage reports whether err says that the database cannot serve just now, so that the same call may
// succeed later. Nothing is known of what a statement that failed so has done.
func IsOutage(err error) bool { return postgres.Find(err) != "" || errors.Is(err, ErrStandby) }

// Outage says in a few words, Postgres's own where there are any, why the database cannot serve. It is "" where
// IsOutage is false.
func Outage(err error) string {
	if errors.Is(err, ErrStandby) {
		return string(postgres.ReadOnly)
	}
	return postgres.Describe(err)
}

// one runs a query that answers with exactly one row.
func one[T any](ctx context.Context, s *Store, scan pgx.RowToFunc[T], sql string, args ...any) (T, error) {
	var row T
	err := s.pool.again(ctx, statementLimit, func(ctx context.Context) (err error) {
		row, err = oneOf(ctx, s.pool, scan, sql, args...)
		return err
	})
	return row, err
}

// oneOf is one in a transaction.
func oneOf[T any](ctx context.Context, q querier, scan pgx.RowToFunc[T], sql string, args ...any) (T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		var zero T
		return zero, err
	}
	row, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return row, ErrNotFound
	}
	return row, err
}

// many runs a query that answers with any number of rows.
func many[T any](ctx context.Context, s *Store, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	var all []T
	err := s.pool.again(ctx, statementLimit, func(ctx context.Context) (err error) {
		all, err = manyOf(ctx, s.pool, scan, sql, args...)
		return err
	})
	return all, err
}

// manyOf is many on one connection.
func manyOf[T any](ctx context.Context, q querier, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}
