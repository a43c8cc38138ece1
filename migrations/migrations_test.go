package migrations_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/devstack/devstacktest"
	"github.com/todoku/todoku/migrations"
)

func TestMain(m *testing.M) { devstacktest.Main(m) }

func TestTheSchemaGoesUpAndDownAndUpAgain(t *testing.T) {
	url := devstacktest.Postgres(t)
	up, err := migrations.Up(t.Context(), url)
	if err != nil || len(up) == 0 {
		t.Fatalf("applied %v, error %v", up, err)
	}
	for range up {
		if down, err := migrations.Down(t.Context(), url); err != nil || len(down) != 1 {
			t.Fatalf("took back %v, error %v", down, err)
		}
	}
	if err := migrations.Check(t.Context(), url); !errors.Is(err, migrations.ErrBehind) {
		t.Errorf("without a schema: %v, want %v", err, migrations.ErrBehind)
	}
	if again, err := migrations.Up(t.Context(), url); err != nil || len(again) != len(up) {
		t.Errorf("applied %d of %d, error %v", len(again), len(up), err)
	}
	if err := migrations.Check(t.Context(), url); err != nil {
		t.Error(err)
	}
}

func TestAnOlderBinarySaysThatTheSchemaIsNewer(t *testing.T) {
	url := devstacktest.Postgres(t)
	if _, err := migrations.Up(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.Background())
	if _, err := db.Exec(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)`); err != nil {
		t.Fatal(err)
	}
	if _, err := migrations.Up(t.Context(), url); !errors.Is(err, migrations.ErrAhead) {
		t.Errorf("up: %v, want %v", err, migrations.ErrAhead)
	}
	if err := migrations.Check(t.Context(), url); !errors.Is(err, migrations.ErrAhead) {
		t.Errorf("check: %v, want %v", err, migrations.ErrAhead)
	}
}
