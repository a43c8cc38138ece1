package devstack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

func startTestPostgres(t *testing.T, options PostgresOptions) *Postgres {
	t.Helper()
	options.NoSync = true
	options.Out = testWriter{t}
	p, err := StartPostgres(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

// query runs SQL and gives its first value as text.
func query(t *testing.T, databaseURL, sql string) string {
	t.Helper()
	var value any
	if err := ask(t.Context(), databaseURL, sql, &value); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(value)
}

func ask(ctx context.Context, databaseURL, sql string, value *any) error {
	db, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer db.Close(ctx)
	return db.QueryRow(ctx, sql).Scan(value)
}

func TestPostgresIsWhatTheLedgerNeeds(t *testing.T) {
	p := startTestPostgres(t, PostgresOptions{})
	for sql, want := range map[string]string{
		`SHOW server_encoding`:            "UTF8",
		`SHOW max_connections`:            "200",
		`SHOW listen_addresses`:           "127.0.0.1",
		`SHOW timezone`:                   "UTC",
		`SELECT current_database()::text`: "todoku",
		`SELECT datcollate FROM pg_database WHERE datname = 'todoku'`:         "C",
		`SELECT string_agg(DISTINCT auth_method, ',') FROM pg_hba_file_rules`: "scram-sha-256",
	} {
		if got := query(t, p.URL, sql); got != want {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
}

func TestPostgresKeepsItsDataOverStopAndKill(t *testing.T) {
	dir := openTempDir(t)
	p := startTestPostgres(t, PostgresOptions{Dir: dir})
	db, err := pgx.Connect(t.Context(), p.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), `CREATE TABLE kept AS SELECT 42 AS n`); err != nil {
		t.Fatal(err)
	}
	first := p.PID()
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an answer after a kill", func() bool {
		var n any
		return ask(t.Context(), p.URL, `SELECT n FROM kept`, &n) == nil && p.PID() != first
	})
	p.Stop()
	p = startTestPostgres(t, PostgresOptions{Dir: dir})
	if got := query(t, p.URL, `SELECT n FROM kept`); got != "42" {
		t.Errorf("after a restart: %s", got)
	}
}

func TestPostgresStartsBesideAStalePIDFile(t *testing.T) {
	dir := openTempDir(t)
	p := startTestPostgres(t, PostgresOptions{Dir: dir})
	data := strings.Fields(commandLine(p.PID()))[2]
	for what, stale := range map[string]string{
		"the pid is another program's now, as after a restart of the machine": fmt.Sprintf("%d\n%s\n1700000000\n%d\n\n127.0.0.1\n        0         0\nready   \n", os.Getpid(), data, 5433),
		"the server was killed before it had written its pid":                 "",
	} {
		p.Stop()
		if err := os.WriteFile(filepath.Join(data, "postmaster.pid"), []byte(stale), 0o600); err != nil {
			t.Fatal(err)
		}
		if u, _ := findUnprivilegedUser(); u != nil {
			if err := u.own(filepath.Join(data, "postmaster.pid"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		t.Log(what)
		p = startTestPostgres(t, PostgresOptions{Dir: dir})
	}
}

func TestPostgresThatCannotReadTheDataSaysWhichVersionItNeeds(t *testing.T) {
	u, err := findUnprivilegedUser()
	if err != nil {
		t.Fatal(err)
	}
	_, err = obtainPostgres(t.Context(), u, 9, t.Logf)
	if err == nil || !strings.Contains(err.Error(), "made by Postgres 9") {
		t.Errorf("error: %v", err)
	}
}

func TestPostgresGoesWhereItsUserCanReach(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root runs Postgres as somebody else")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(dir, "stack")
	for range 2 {
		p := startTestPostgres(t, PostgresOptions{Dir: inside})
		data := strings.Fields(commandLine(p.PID()))[2]
		if !strings.HasPrefix(data, "/var/tmp/todoku-") {
			t.Errorf("data is in %s", data)
		}
		t.Cleanup(func() { os.RemoveAll(filepath.Dir(data)) })
		p.Stop()
	}
}

// openTempDir is a folder for one test that any user can pass through, as t.TempDir is not.
func openTempDir(t *testing.T) string {
	t.Helper()
	dir, err := temporaryFolder()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
