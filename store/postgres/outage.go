package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"
)

// Trouble is why the database cannot serve a statement just now.
type Trouble string

// What keeps the database from serving.
const (
	Unreachable Trouble = "the database cannot be reached"
	Stopping    Trouble = "the database is starting or shutting down"
	ReadOnly    Trouble = "the database is read-only"
	Conflict    Trouble = "the statement conflicted with others"
	Exhausted   Trouble = "the database lacks resources"
	TimedOut    Trouble = "the database did not answer in time"
	Pooled      Trouble = "a connection pooler mixed sessions"
	Damaged     Trouble = "the database reported a system error"
)

// troubles classifies what Postgres answers: by its whole SQLSTATE, else by the first two characters, its class
// (https://www.postgresql.org/docs/current/errcodes-appendix.html).
var troubles = map[string]Trouble{
	"08":    Unreachable, // connection exception, 08P01 of a pooler included
	"25006": ReadOnly,    // read_only_sql_transaction
	"25P03": TimedOut,    // idle_in_transaction_session_timeout
	"25P04": TimedOut,    // transaction_timeout
	"26000": Pooled,      // invalid_sql_statement_name: the statement was prepared on another connection
	"28000": Unreachable, // invalid_authorization_specification: while a password or pg_hba.conf is changed
	"28P01": Unreachable, // invalid_password
	"3D000": Unreachable, // invalid_catalog_name: while a dump is restored
	"40001": Conflict,    // serialization_failure
	"40P01": Conflict,    // deadlock_detected
	"40003": Unreachable, // statement_completion_unknown
	"42P05": Pooled,      // duplicate_prepared_statement
	"53":    Exhausted,   // insufficient resources: 53100 disk full, 53200 out of memory, 53300 too many connections
	"55006": Conflict,    // object_in_use
	"55P03": Conflict,    // lock_not_available: lock_timeout
	"57":    Stopping,    // operator intervention: 57P01 admin_shutdown, 57P02 crash_shutdown, 57P03 cannot_connect_now
	"57014": TimedOut,    // query_canceled: statement_timeout
	"58":    Damaged,     // system error: 58030 io_error
}

// Find reports what keeps the database from serving; it is "" for an error that says something else. The same call
// may succeed later. Nothing is known of what a statement that failed so has done.
func Find(err error) Trouble {
	if answer, ok := errors.AsType[*pgconn.PgError](err); ok {
		return classify(answer.Code)
	}
	var network net.Error
	var connect *pgconn.ConnectError
	switch {
	case err == nil:
		return ""
	case errors.Is(err, pgconn.ErrReadOnlyConnection):
		return ReadOnly
	case pgconn.Timeout(err), errors.Is(err, context.DeadlineExceeded):
		return TimedOut
	case errors.As(err, &connect), errors.As(err, &network), pgconn.SafeToRetry(err),
		errors.Is(err, net.ErrClosed), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, puddle.ErrClosedPool):
		return Unreachable
	}
	return ""
}

func classify(code string) Trouble {
	if trouble, ok := troubles[code]; ok {
		return trouble
	}
	if len(code) < 2 {
		return ""
	}
	return troubles[code[:2]]
}

// Describe says what keeps the database from serving, with Postgres's own words where they tell what the server lacks.
// It has no part of a statement and none of its values.
func Describe(err error) string {
	trouble := Find(err)
	if answer, ok := errors.AsType[*pgconn.PgError](err); ok && (trouble == Exhausted || trouble == Damaged) {
		return fmt.Sprintf("%s: %s (SQLSTATE %s)", trouble, answer.Message, answer.Code)
	}
	return string(trouble)
}

// Conflicts reports whether a transaction failed only because of another one at the same time, so that it may be run
// again at once.
func Conflicts(err error) bool {
	answer, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (answer.Code == "40001" || answer.Code == "40P01")
}
