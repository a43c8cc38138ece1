package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// durableCommit is what connections ask for: a commit is confirmed when it is on the server's disk and,
// where there is a synchronous standby, on that one's. A stronger setting stays.
func durableCommit(wanted string) string {
	if wanted == "remote_apply" {
		return wanted
	}
	return "on"
}

// ErrNotDurable means that commits are confirmed before they are on disk: what a crash forgets is sent again.
var ErrNotDurable = errors.New("DATABASE_URL: commits are not durable, for synchronous_commit stays off on its connections: " +
	"run ALTER ROLE … SET synchronous_commit = on for the role that it names")

// Durability names what lets the server forget commits that it has confirmed, one line for each. The
// error is ErrNotDurable where the connections themselves do. A server that is configured so on purpose,
// for tests, says so by the setting todoku.volatile.
func (s *Store) Durability(ctx context.Context) (warnings []string, err error) {
	type server struct {
		Commit           string
		Fsync, FullPages bool
		Synchronous      bool
		Standbys         int
		Volatile         bool
	}
	has, err := one(ctx, s, pgx.RowToStructByPos[server], `
		SELECT current_setting('synchronous_commit'), current_setting('fsync')::boolean, current_setting('full_page_writes')::boolean,
			current_setting('synchronous_standby_names') <> '',
			(SELECT count(*) FROM pg_stat_replication r
				WHERE coalesce(r.sync_state, 'async') = 'async' AND coalesce(r.state, 'streaming') IN ('streaming', 'catchup')
					AND coalesce(r.application_name, '') NOT IN ('pg_receivewal', 'pg_basebackup')
					AND NOT EXISTS (SELECT FROM pg_replication_slots l WHERE l.active_pid = r.pid AND l.slot_type = 'logical')),
			coalesce(nullif(current_setting('todoku.volatile', true), '')::boolean, false)`)
	if err != nil {
		return nil, fmt.Errorf("ask the database how durable its commits are: %w", err)
	}
	if has.Commit == "off" || has.Commit == "local" {
		return nil, ErrNotDurable
	}
	if has.Volatile {
		return nil, nil
	}
	if !has.Fsync {
		warnings = append(warnings, "the database server runs with fsync=off: after a crash it may have forgotten sends, which are then sent again: set fsync=on")
	}
	if !has.FullPages {
		warnings = append(warnings, "the database server runs with full_page_writes=off: after a crash its data may be damaged: set full_page_writes=on")
	}
	if has.Standbys > 0 && !has.Synchronous {
		warnings = append(warnings, "the database server has an asynchronous standby and no synchronous one: "+
			"after a fail-over it may have forgotten sends; set synchronous_standby_names")
	}
	return warnings, nil
}
