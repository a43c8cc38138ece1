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

func TestNotificationsThatExistAreFoundByTheirBatchAndNumber(t *testing.T) {
	url := devstacktest.Postgres(t)
	if _, err := migrations.Up(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.Background())
	const fewerEntries = 12
	takeBack(t, url, fewerEntries)
	// accept does what a process of the version before does: it accepts three singles, and as many for each batch.
	accept := func(batches ...int) {
		if _, err := db.Exec(t.Context(), `
			WITH s AS (
				INSERT INTO senders (channel, address) VALUES ('SMS', '+15005550006') ON CONFLICT (channel, address) DO UPDATE SET address = excluded.address RETURNING id
			), b AS (
				INSERT INTO batches (id, channel, message, sender_id, total, rejected_count, rejected, ignored_columns, shard_size, shards, send_at, workflow_id, carry_by)
				SELECT lpad(b::text, 32, '0')::uuid, 'SMS', 'hello', s.id, 3, 0, '[]', '{}', 3, 1, now(), 'batch', now() FROM s, unnest($1::int[]) AS b
			)
			INSERT INTO notifications (id, channel, to_number, to_national, to_hash, message, sender_id, batch_id, batch_row)
			SELECT CASE WHEN b = 0 THEN gen_random_uuid() ELSE lpad((10 * n + b)::text, 32, '0')::uuid END,
				'SMS', '+12025550143', '(202) 555-0143', 'x', CASE WHEN b = 0 THEN 'hello' END, s.id,
				lpad(nullif(b, 0)::text, 32, '0')::uuid, CASE WHEN b > 0 THEN n END
			FROM s, generate_series(1, 3) AS n, unnest(0 || $1::int[]) AS b`, batches); err != nil {
			t.Fatal(err)
		}
	}
	accept(1, 2)
	for try := range 2 { // what is taken back can be made again
		if _, err := migrations.Up(t.Context(), url); err != nil {
			t.Fatal(err)
		}
		var ids string
		if err := db.QueryRow(t.Context(), `
			SELECT string_agg(concat_ws(' ', ltrim(id::text, '0-'), ltrim(first_id::text, '0-'), ltrim(last_id::text, '0-')), ', ' ORDER BY id)
			FROM batches WHERE id < '00000000-0000-0000-0000-000000000003'`).Scan(&ids); err != nil {
			t.Fatal(err)
		}
		if want := "1 11 31, 2 12 32"; ids != want {
			t.Errorf("the batches and their ids are %s, want %s", ids, want)
		}
		accept(3 + try)
		var incomplete, unfound int
		if err := db.QueryRow(t.Context(), `
			SELECT count(*) FROM batches b
			WHERE 3 <> (SELECT count(*) FROM notifications n WHERE n.batch_id = b.id AND n.id BETWEEN b.first_id AND b.last_id)`).Scan(&incomplete); err != nil || incomplete > 0 {
			t.Errorf("%d batches lack rows, error %v", incomplete, err)
		}
		if err := db.QueryRow(t.Context(), `
			SELECT count(*) FROM notifications n LEFT JOIN notification_recipients r ON r.to_hash = n.to_hash AND r.notification_id = n.id
			WHERE r.to_hash IS NULL`).Scan(&unfound); err != nil || unfound > 0 {
			t.Errorf("%d notifications are not found by their numbers, error %v", unfound, err)
		}
		takeBack(t, url, fewerEntries)
	}
}

// takeBack takes back every migration from the version on.
func takeBack(t *testing.T, url string, version int64) {
	t.Helper()
	for {
		down, err := migrations.Down(t.Context(), url)
		if err != nil || len(down) != 1 {
			t.Fatalf("took back %v, error %v", down, err)
		}
		if down[0].Version == version {
			return
		}
	}
}
