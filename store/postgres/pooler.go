package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// RefusePooler refuses a connection pooler that lends a connection's session to others between two transactions, as
// PgBouncer does with the pool_mode transaction or statement: an UnfitError says what to set.
//
// A pooler gives its clients process ids of its own making, so conn knows whether there is one. Then a second
// connection must not be given the session of conn, which is idle and still ours.
func RefusePooler(ctx context.Context, conn *pgx.Conn) error {
	ours, err := serverProcess(ctx, conn)
	if err != nil || ours == conn.PgConn().PID() {
		return err
	}
	other, err := pgx.ConnectConfig(ctx, conn.Config())
	if err != nil {
		return err
	}
	defer other.Close(context.WithoutCancel(ctx))
	if err := Begin(ctx, other, nil); err != nil {
		return err
	}
	theirs, err := serverProcess(ctx, other)
	if err == nil && theirs == ours {
		err = errPooler
	}
	return err
}

// serverProcess is the process id of the server's process that serves a connection now.
func serverProcess(ctx context.Context, conn *pgx.Conn) (pid uint32, err error) {
	err = conn.QueryRow(ctx, `SELECT pg_backend_pid()`, pgx.QueryExecModeExec).Scan(&pid)
	return pid, err
}

// refuseExecMode refuses the modes of pgx in which our parameters cannot be sent, or would become part of a
// statement's text.
func refuseExecMode(mode pgx.QueryExecMode) error {
	switch mode {
	case pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol:
		return &UnfitError{fmt.Sprintf("default_query_exec_mode=%s cannot send what Todoku writes: leave it out of the URL", mode)}
	}
	return nil
}
