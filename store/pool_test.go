package store_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/devstack/devstacktest"
	"github.com/todoku/todoku/migrations"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

func TestADatabaseThatIsNotUTF8IsRefusedByName(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"SQL_ASCII", "LATIN1"} {
		url := devstacktest.PostgresEncoded(t, encoding)
		if _, err := migrations.Up(t.Context(), url); err == nil || !strings.Contains(err.Error(), encoding) {
			t.Errorf("migrate on %s: %v", encoding, err)
		}
		if s, err := store.Open(t.Context(), url); err == nil || !strings.Contains(err.Error(), encoding) {
			t.Errorf("open on %s: %v", encoding, err)
			if err == nil {
				s.Close()
			}
		}
	}
}

func TestDefaultsOfTheRoleAndTheDatabaseDoNotChangeWhatIsRead(t *testing.T) {
	t.Parallel()
	_, db := openLedger(t)
	var database string
	if err := db.QueryRow(t.Context(), `SELECT current_database()`).Scan(&database); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"DateStyle": "ISO, YMD", "IntervalStyle": "postgres", "TimeZone": "UTC", "bytea_output": "hex",
		"default_transaction_isolation": "read committed", "log_parameter_max_length_on_error": "0", "log_parameter_max_length": "0",
	}
	for name, value := range map[string]string{
		"DateStyle": "SQL, DMY", "IntervalStyle": "iso_8601", "TimeZone": "Asia/Tokyo", "bytea_output": "escape",
		"default_transaction_isolation": "serializable", "log_parameter_max_length_on_error": "-1",
	} {
		if _, err := db.Exec(t.Context(), `ALTER DATABASE `+pgx.Identifier{database}.Sanitize()+` SET `+name+` = '`+value+`'`); err != nil {
			t.Fatal(err)
		}
	}
	s, err := store.Open(t.Context(), db.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for name, value := range want {
		if got, err := s.Setting(t.Context(), name); err != nil || got != value {
			t.Errorf("%s = %q (%v), want %q", name, got, err, value)
		}
	}
}

func TestAServerThatLogsValuesIsNamedAtTheStart(t *testing.T) {
	t.Parallel()
	_, db := openLedger(t)
	owner := db.Config()
	role := "plain_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	for _, statement := range []string{
		`CREATE ROLE ` + role + ` LOGIN PASSWORD 'plain' IN ROLE pg_read_all_data, pg_write_all_data`,
		`ALTER ROLE ` + role + ` SET log_min_duration_statement = 0`,
	} {
		if _, err := db.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if _, err := db.Exec(context.Background(), `DROP ROLE `+role); err != nil {
			t.Error(err)
		}
	})
	plain := fmt.Sprintf("postgres://%s:plain@%s:%d/%s?sslmode=disable", role, owner.Host, owner.Port, owner.Database)
	for url, want := range map[string][]string{
		owner.ConnString(): nil, // a superuser's sessions turn it off
		plain:              {"log_parameter_max_length=0", "log_error_verbosity=terse"},
	} {
		s, err := store.Open(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		warning, err := s.LoggedValues(t.Context())
		if err != nil || (warning == "") != (want == nil) {
			t.Errorf("it says %q (%v)", warning, err)
		}
		for _, setting := range want {
			if !strings.Contains(warning, setting) {
				t.Errorf("it says %q, without %s", warning, setting)
			}
		}
	}
}

func TestWhatConflictsWithAnotherTransactionIsRunAgain(t *testing.T) {
	t.Parallel()
	s, _ := openLedger(t)
	if tries, err := s.Conflicting(t.Context(), "40P01", 2); err != nil || tries != 3 {
		t.Errorf("deadlock: %d tries, %v", tries, err)
	}
	if tries, err := s.Conflicting(t.Context(), "40001", 99); tries != 4 || !store.IsOutage(err) {
		t.Errorf("serialization failure: %d tries, %v", tries, err)
	}
	if tries, err := s.Conflicting(t.Context(), "23505", 99); tries != 1 || store.IsOutage(err) {
		t.Errorf("unique violation: %d tries, %v", tries, err)
	}
}

func TestAStatementEndsWhenTheDatabasesHostStopsToAnswer(t *testing.T) {
	t.Parallel()
	host, through := devstacktest.Wire(t, devstacktest.Ledger(t))
	s, err := store.Open(t.Context(), through)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if _, err := s.EnsureSender(t.Context(), notify.SMS, "+15005550006"); err != nil {
		t.Fatal(err)
	}
	host.Silence()
	// The test's own deadline is far longer than that of a statement.
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	var all sync.WaitGroup
	for name, statement := range map[string]func() error{
		"a read":         func() error { _, err := s.Notification(ctx, uuid.Must(uuid.NewV7())); return err },
		"a write":        func() error { _, err := s.EnsureSender(ctx, notify.Call, "+15005550007"); return err },
		"readiness":      func() error { return s.Ready(ctx) },
		"the keys":       func() error { _, err := s.Keys(ctx); return err },
		"a template":     func() error { _, err := s.DeleteTemplate(ctx, 1); return err },
		"a cancellation": func() error { _, err := s.Cancel(ctx, uuid.Must(uuid.NewV7())); return err },
	} {
		all.Go(func() {
			err := statement()
			if ctx.Err() != nil {
				t.Errorf("%s waited for its caller's deadline", name)
			} else if !store.IsOutage(err) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	all.Wait()
	host.Restore()
	again, cancelAgain := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancelAgain()
	if _, err := s.EnsureSender(again, notify.SMS, "+15005550008"); err != nil {
		t.Errorf("after it answers again: %v", err)
	}
}
