package store

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/todoku/todoku/store/postgres"
)

const (
	// statementLimit ends a statement, or a transaction, whose server does not answer. What legitimately takes
	// longer, because it reads an upload or compares a whole batch, runs on a connection of its own.
	statementLimit = 15 * time.Second
	// longLimit is for statements that touch many rows, under unhurried.
	longLimit = 2 * time.Minute
	// listLimit is for what sends to a list, which may have a million members.
	listLimit = 4 * time.Minute
	// conflictTries is how often a transaction is run that conflicts with others, at most.
	conflictTries = 4
	conflictPause = 20 * time.Millisecond
	// troubleMemory is how long readiness tells what the server last refused.
	troubleMemory = 10 * time.Second
)

// pool gives every statement a deadline, runs again what conflicted with another transaction, and drops its
// connections when they lead to a server that cannot write or does not answer.
type pool struct {
	*pgxpool.Pool
	full atomic.Pointer[refusal] // what the server last lacked
}

// refusal is an answer of the server, and when it came.
type refusal struct {
	answer *pgconn.PgError
	at     time.Time
}

// note looks at each error that the server answers with.
func (p *pool) note(answer *pgconn.PgError) {
	switch postgres.Find(answer) {
	case postgres.ReadOnly:
		go p.Reset() // the other connections lead there too
	case postgres.Exhausted, postgres.Damaged:
		p.full.Store(&refusal{answer, time.Now()})
	}
}

// lacks is what the server said lately that it lacks, or nil.
func (p *pool) lacks() error {
	if last := p.full.Load(); last != nil && time.Since(last.at) < troubleMemory {
		return last.answer
	}
	return nil
}

type unhurriedKey struct{}

// unhurried gives the statements that run with the context longLimit in place of statementLimit.
func unhurried(ctx context.Context) context.Context {
	return context.WithValue(ctx, unhurriedKey{}, true)
}

// again does something that is a transaction of its own: within the limit, and once more where it conflicted with
// another one.
func (p *pool) again(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	if limit < longLimit && ctx.Value(unhurriedKey{}) != nil {
		limit = longLimit
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for try := 1; ; try++ {
		err := do(limited)
		if err != nil && ctx.Err() == nil && limited.Err() != nil {
			p.Reset() // what did not answer takes the idle connections to the same host with it
		}
		if !postgres.Conflicts(err) || try == conflictTries {
			return err
		}
		pause := time.Duration(try) * conflictPause
		select {
		case <-limited.Done():
			return err
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// Exec runs a statement that is a transaction of its own.
func (p *pool) Exec(ctx context.Context, sql string, args ...any) (tag pgconn.CommandTag, err error) {
	err = p.again(ctx, statementLimit, func(ctx context.Context) (err error) {
		tag, err = p.Pool.Exec(ctx, sql, args...)
		return err
	})
	return tag, err
}

// Acquire takes a connection for what has limits of its own.
func (p *pool) Acquire(ctx context.Context) (conn *pgxpool.Conn, err error) {
	err = p.again(ctx, statementLimit, func(ctx context.Context) error {
		conn, err = p.Pool.Acquire(ctx)
		return err
	})
	return conn, err
}

// Begin begins a transaction that has limits of its own.
func (p *pool) Begin(ctx context.Context) (tx pgx.Tx, err error) {
	err = p.again(ctx, statementLimit, func(ctx context.Context) error {
		tx, err = p.Pool.Begin(ctx)
		return err
	})
	return tx, err
}

// transact runs do in a transaction, and again where that conflicted with another one: do must set what it
// returns anew each time.
func (p *pool) transact(ctx context.Context, do func(context.Context, pgx.Tx) error) error {
	return p.transactWithin(ctx, statementLimit, do)
}

// transactWithin is transact with a limit of its own.
func (p *pool) transactWithin(ctx context.Context, limit time.Duration, do func(context.Context, pgx.Tx) error) error {
	return p.again(ctx, limit, func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, p.Pool, func(tx pgx.Tx) error { return do(ctx, tx) })
	})
}
