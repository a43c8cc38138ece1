package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// UnfitError says why a server that answers cannot hold the ledger, and what to do.
type UnfitError struct{ Reason string }

func (e *UnfitError) Error() string { return "DATABASE_URL: " + e.Reason }

// sessionSettings are what every session of ours has, whatever the defaults of the server, the database or the role:
// what we read, how transactions see each other, and how long the server keeps the locks of a client that vanished.
// They are set after the connection was made: a pooler refuses start-up parameters that it does not know.
var sessionSettings = map[string]string{
	"bytea_output":                        "hex",
	"client_encoding":                     "UTF8",
	"DateStyle":                           "ISO, YMD",
	"default_transaction_isolation":       "read committed",
	"extra_float_digits":                  "1",
	"idle_in_transaction_session_timeout": "5min",
	"idle_session_timeout":                "0",
	"IntervalStyle":                       "postgres",
	"lock_timeout":                        "0",
	"row_security":                        "on",
	"session_replication_role":            "origin",
	"standard_conforming_strings":         "on",
	"statement_timeout":                   "0", // our own deadlines are shorter, and differ
	"tcp_keepalives_count":                "3",
	"tcp_keepalives_idle":                 "10",
	"tcp_keepalives_interval":             "5",
	"tcp_user_timeout":                    "20s",
	"TimeZone":                            "UTC",
	"transaction_timeout":                 "0",
	"transform_null_equals":               "off",

	// Parameters, and the rows that details of errors quote, are phone numbers and texts. Only a superuser may set the
	// first two.
	"log_error_verbosity":               "terse",
	"log_parameter_max_length":          "0",
	"log_parameter_max_length_on_error": "0",
}

// Begin gives a new connection its settings, those given besides our own, and checks that it leads to a server that
// fits. An UnfitError says that it does not.
func Begin(ctx context.Context, conn *pgx.Conn, settings map[string]string) error {
	all := maps.Clone(sessionSettings)
	maps.Copy(all, settings)
	names := slices.Sorted(maps.Keys(all))
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = all[name]
	}
	var encoding, database string
	// One round trip, and no prepared statement. A setting that this version lacks is left out.
	err := conn.QueryRow(ctx, `
		SELECT current_setting('server_encoding'), current_database(), (
			SELECT count(set_config(w.name, w.value, false))
			FROM unnest($1::text[], $2::text[]) AS w (name, value)
			JOIN pg_settings s ON lower(s.name) = lower(w.name)
			WHERE s.context = 'user' OR (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
		)`, pgx.QueryExecModeExec, names, values).Scan(&encoding, &database, nil)
	switch {
	case err != nil:
		return fmt.Errorf("prepare a connection to the database: %w", err)
	case encoding != "UTF8":
		return &UnfitError{fmt.Sprintf("the database %s has the encoding %s, which cannot hold every text: make one with "+
			"CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0", database, encoding)}
	}
	return nil
}

const ownSessions = "Todoku needs sessions of its own (settings, locks, prepared statements): " +
	"set pool_mode = session for its database, or write the address of Postgres itself"

var (
	errPooler = &UnfitError{"it leads to a connection pooler that lends one session to several connections. " + ownSessions}

	errParameter = &UnfitError{"it leads to a connection pooler that refuses a parameter of the URL: leave the parameter out, or add " +
		"it to ignore_startup_parameters of the pooler. " + ownSessions}
)

// explainStart turns a pooler's refusal of a start-up parameter into what to do.
func explainStart(err error) error {
	answer, ok := errors.AsType[*pgconn.PgError](err)
	if ok && answer.Code == "08P01" {
		return errParameter
	}
	return err
}

// Explain says, of an error that ended the first attempt to use the database, what to do about it.
func Explain(err error, config *pgx.ConnConfig) error {
	err = explainStart(err)
	if unfit, ok := errors.AsType[*UnfitError](err); ok {
		return unfit
	}
	where := fmt.Sprintf("DATABASE_URL: the database %s on %s:%d", config.Database, config.Host, config.Port)
	if answer, ok := errors.AsType[*pgconn.PgError](err); ok {
		return fmt.Errorf("%s refuses: %w", where, answer)
	}
	if trouble := Find(err); trouble == ReadOnly {
		return fmt.Errorf("%s is read-only: %w", where, err)
	}
	return fmt.Errorf("%s cannot be reached: %w", where, err)
}
