package rig

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/devstack"
	"github.com/todoku/todoku/devstack/wire"
)

// A Database is a Postgres behind a wire. It outlives the rig that uses it: the caller must Stop it.
type Database struct {
	Wire *wire.Wire

	url     string // through the wire
	primary *devstack.Postgres
	standby *devstack.Postgres // nil before AddStandby
}

// StartDatabase starts a Postgres whose clock is so far ahead of the machine's; see [devstack.PostgresOptions].
func StartDatabase(ctx context.Context, clock time.Duration) (*Database, error) {
	primary, err := devstack.StartPostgres(ctx, devstack.PostgresOptions{Clock: clock})
	if err != nil {
		return nil, err
	}
	d := &Database{primary: primary}
	if d.Wire, err = wire.To(host(primary)); err == nil {
		d.url, err = d.Wire.Through(primary.URL)
	}
	if err != nil {
		d.Stop()
		return nil, err
	}
	return d, nil
}

// URL names the database, through the wire.
func (d *Database) URL() string { return d.url }

// AddStandby starts a synchronous standby: from then on a commit is confirmed when both servers have it.
func (d *Database) AddStandby(ctx context.Context) (err error) {
	d.standby, err = devstack.StartPostgres(ctx, devstack.PostgresOptions{StandbyOf: d.primary.URL})
	if err != nil {
		return err
	}
	if err := d.configure(ctx, "synchronous_standby_names", "*"); err != nil {
		return err
	}
	return until(ctx, d.primary.URL, `SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')`)
}

// TurnReadOnly lets the server refuse writes and go on answering, as one whose place another is about to take.
func (d *Database) TurnReadOnly(ctx context.Context) error {
	return d.configure(ctx, "default_transaction_read_only", "on")
}

// FailOver makes the standby the primary, to which new connections lead. Those to the old server stay.
func (d *Database) FailOver(ctx context.Context) error {
	if err := execute(ctx, d.standby.URL, `SELECT pg_promote()`); err != nil {
		return err
	}
	if err := until(ctx, d.standby.URL, `SELECT NOT pg_is_in_recovery()`); err != nil {
		return err
	}
	d.Wire.Lead(host(d.standby))
	return nil
}

// StopPrimary ends the server that was the primary first.
func (d *Database) StopPrimary() {
	if d.primary != nil {
		d.primary.Stop()
		d.primary = nil
	}
}

// Stop ends all.
func (d *Database) Stop() {
	if d.Wire != nil {
		d.Wire.Close()
	}
	d.StopPrimary()
	if d.standby != nil {
		d.standby.Stop()
	}
}

// configure changes a setting of the primary.
func (d *Database) configure(ctx context.Context, setting, value string) error {
	return execute(ctx, d.primary.URL, fmt.Sprintf(`ALTER SYSTEM SET %s = '%s'`, setting, value), `SELECT pg_reload_conf()`)
}

func host(p *devstack.Postgres) string {
	u, err := url.Parse(p.URL)
	if err != nil {
		panic(err) // we have made it
	}
	return u.Host
}

func execute(ctx context.Context, url string, statements ...string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("reach a server of the rig: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// until waits until a query answers true.
func until(ctx context.Context, url, query string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("reach a server of the rig: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for holds := false; !holds; sleep(ctx, 50*time.Millisecond) {
		if err := conn.QueryRow(ctx, query).Scan(&holds); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
	}
	return nil
}
