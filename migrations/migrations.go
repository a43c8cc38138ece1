// Package migrations holds the database's schema as SQL files, embedded in the binary, and applies
// them with goose. Each file says what it makes and, in its Down part, how to take it back.
package migrations

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/todoku/todoku/store/postgres"
)

//go:embed *.sql
var files embed.FS

// ErrBehind means that the database lacks migrations that this binary needs.
var ErrBehind = errors.New("the database's schema is not up to date: run `todoku migrate up`")

// ErrAhead means that a newer binary has migrated the database.
var ErrAhead = errors.New("the database's schema is newer than this todoku: install the version that migrated it")

// Migration is one file and whether the database has it.
type Migration struct {
	Version   int64      `json:"version"`
	Name      string     `json:"name"`
	AppliedAt *time.Time `json:"applied_at"` // nil: not applied
}

// Up applies every missing migration and returns what it applied. Processes that start together
// wait for each other on a session lock. The error is ErrAhead when a newer binary was there before.
func Up(ctx context.Context, databaseURL string) (applied []Migration, err error) {
	err = with(ctx, databaseURL, func(p *goose.Provider) error {
		if have, want, err := p.GetVersions(ctx); err != nil || have > want {
			return cmp.Or(err, ErrAhead)
		}
		results, err := p.Up(ctx)
		applied = fromResults(results)
		return err
	})
	return applied, err
}

// Down takes the newest migration back, with the data in what it made, and returns it; it returns
// nothing when there is none left.
func Down(ctx context.Context, databaseURL string) (undone []Migration, err error) {
	err = with(ctx, databaseURL, func(p *goose.Provider) error {
		result, err := p.Down(ctx)
		if errors.Is(err, goose.ErrNoNextVersion) {
			return nil
		}
		if result != nil {
			undone = fromResults([]*goose.MigrationResult{result})
		}
		return err
	})
	return undone, err
}

// Status lists every migration in order.
func Status(ctx context.Context, databaseURL string) (all []Migration, err error) {
	err = with(ctx, databaseURL, func(p *goose.Provider) error {
		statuses, err := p.Status(ctx)
		for _, s := range statuses {
			m := Migration{Version: s.Source.Version, Name: s.Source.Path}
			if s.State == goose.StateApplied {
				m.AppliedAt = &s.AppliedAt
			}
			all = append(all, m)
		}
		return err
	})
	return all, err
}

// Check returns ErrBehind or ErrAhead when the database's schema is not this binary's.
func Check(ctx context.Context, databaseURL string) error {
	return with(ctx, databaseURL, func(p *goose.Provider) error {
		have, want, err := p.GetVersions(ctx)
		switch {
		case err != nil:
			return err
		case have < want:
			return ErrBehind
		case have > want:
			return ErrAhead
		}
		return nil
	})
}

func with(ctx context.Context, databaseURL string, do func(*goose.Provider) error) error {
	config, err := postgres.ConnConfig(databaseURL)
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*config, stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		return postgres.Begin(ctx, conn, nil)
	}))
	defer db.Close()
	if err := try(ctx, db, config); err != nil {
		return err
	}
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return fmt.Errorf("prepare the migration lock: %w", err)
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithSessionLocker(locker))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	return do(p)
}

// try names the host and not the password when the database cannot be reached or does not fit.
func try(ctx context.Context, db *sql.DB, config *pgx.ConnConfig) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := db.Conn(ctx)
	if err == nil {
		defer conn.Close()
		err = conn.Raw(func(driver any) error { return postgres.RefusePooler(ctx, driver.(*stdlib.Conn).Conn()) })
	}
	if err != nil {
		return postgres.Explain(err, config)
	}
	return nil
}

func fromResults(results []*goose.MigrationResult) []Migration {
	migrations := make([]Migration, 0, len(results))
	now := time.Now()
	for _, r := range results {
		m := Migration{Version: r.Source.Version, Name: r.Source.Path}
		if r.Direction == "up" {
			m.AppliedAt = &now
		}
		migrations = append(migrations, m)
	}
	return migrations
}
