// Package store is the ledger and every other table: all SQL of the product lives here, one
// statement per idea, next to the Go function that runs it.
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/todoku/todoku/clock"
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
	pool   *pgxpool.Pool
	clock  clock.Offset
	claims claimMemory
}

// Open connects to the database at url (postgres://…). It fails when the database cannot be reached
// within 5 s; the error names the host and never the password.
func Open(ctx context.Context, url string) (*Store, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("DATABASE_URL cannot be read as postgres://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	for name, value := range map[string]string{
		"application_name": "todoku",
		"jit":              "off", // our statements are short: compiling one takes longer than running it

		// Every statement of ours has its index. A plan that was made, and is kept, while the tables are
		// small or without statistics would read them whole when they are large.
		"enable_seqscan": "off",

		// A statement is planned once, for any arguments. Left to itself, Postgres plans one anew for each
		// call for as long as its arrays have one element, and to plan one of ours takes several times as
		// long as to run it.
		"plan_cache_mode": "force_generic_plan",
	} {
		if config.ConnConfig.RuntimeParams[name] == "" {
			config.ConnConfig.RuntimeParams[name] = value
		}
	}
	params := config.ConnConfig.RuntimeParams
	params["synchronous_commit"] = durableCommit(params["synchronous_commit"])
	if !strings.Contains(url, "pool_max_conns") {
		config.MaxConns = defaultConnections
	}
	s := &Store{clock: clock.Offset{Of: clock.Database}}
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		registerUUID(conn.TypeMap())
		return s.claims.verify(ctx, conn)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	s.pool = pool
	pingCtx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := s.Ping(pingCtx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("DATABASE_URL: the database %s on %s:%d cannot be reached: %w",
			config.ConnConfig.Database, config.ConnConfig.Host, config.ConnConfig.Port, err)
	}
	return s, nil
}

// Close waits for running statements and closes every connection.
func (s *Store) Close() { s.pool.Close() }

// MaxConnections is how many connections the store opens at most.
func (s *Store) MaxConnections() int { return int(s.pool.Config().MaxConns) }

// IsOutage reports whether err says that the database could not be reached or is shutting down, so
// that the same call may succeed later. Nothing is known of what a statement that failed so has done.
func IsOutage(err error) bool {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		switch answer.Code[:2] {
		case "08", "53", "57", "58": // connection exception, insufficient resources, operator intervention, system error
			return true
		}
		return false
	}
	var network net.Error
	var connect *pgconn.ConnectError
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.Timeout(err) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// one runs a query that answers with exactly one row.
func one[T any](ctx context.Context, s *Store, scan pgx.RowToFunc[T], sql string, args ...any) (T, error) {
	return oneOf(ctx, s.pool, scan, sql, args...)
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
	return manyOf(ctx, s.pool, scan, sql, args...)
}

// manyOf is many on one connection.
func manyOf[T any](ctx context.Context, q querier, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}
