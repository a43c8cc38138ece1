package store_test

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/devstack/devstacktest"
	"github.com/todoku/todoku/migrations"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

func TestThroughAPoolerThatKeepsSessionsApartAllWorks(t *testing.T) {
	t.Parallel()
	pooled := pgBouncer(t, devstacktest.Postgres(t), "session")
	if _, err := migrations.Up(t.Context(), pooled); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second start found the first one's prepared statements
		s, err := store.Open(t.Context(), pooled)
		if err != nil {
			t.Fatal(err)
		}
		claim(t, s, accept(t, s, notify.SMS, false))
		if got, err := s.Setting(t.Context(), "synchronous_commit"); err != nil || got != "on" {
			t.Errorf("synchronous_commit = %q (%v)", got, err)
		}
		s.Close()
	}
}

func TestAPoolerThatMixesSessionsIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"transaction", "statement"} {
		pooled := pgBouncer(t, devstacktest.Ledger(t), mode)
		const want = "set pool_mode = session"
		if _, err := migrations.Up(t.Context(), pooled); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("migrate, %s: %v", mode, err)
		}
		if s, err := store.Open(t.Context(), pooled); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("open, %s: %v", mode, err)
			if err == nil {
				s.Close()
			}
		}
	}
}

func TestAPoolerThatRefusesAParameterOfTheURLIsNamed(t *testing.T) {
	t.Parallel()
	pooled := pgBouncer(t, devstacktest.Ledger(t), "session")
	s, err := store.Open(t.Context(), pooled+"&search_path=public")
	if err == nil {
		s.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "ignore_startup_parameters") {
		t.Errorf("open: %v", err)
	}
}

func TestModesOfPgxInWhichParametersCannotBeSentAreRefused(t *testing.T) {
	t.Parallel()
	ledger := devstacktest.Ledger(t)
	for mode, refused := range map[string]bool{
		"exec": true, "simple_protocol": true, "cache_statement": false, "cache_describe": false, "describe_exec": false,
	} {
		s, err := store.Open(t.Context(), ledger+"&default_query_exec_mode="+mode)
		switch {
		case refused && (err == nil || !strings.Contains(err.Error(), "default_query_exec_mode="+strings.ReplaceAll(mode, "_", " "))):
			t.Errorf("%s: %v", mode, err)
		case !refused && err != nil:
			t.Errorf("%s: %v", mode, err)
		case !refused:
			claim(t, s, accept(t, s, notify.SMS, false))
		}
		if err == nil {
			s.Close()
		}
	}
}

// pgBouncer starts a PgBouncer before a database.
func pgBouncer(t *testing.T, databaseURL, mode string) (pooled string) {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("PgBouncer is not installed (apt-get install pgbouncer)")
	}
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().(*net.TCPAddr)
	listener.Close()
	password, _ := u.User.Password()
	config := fmt.Sprintf(`
[databases]
* = host=%s port=%s user=%s password=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = %s
`, u.Hostname(), u.Port(), u.User.Username(), password, address.Port, mode)
	file := filepath.Join(os.TempDir(), "pgbouncer-"+uuid.NewString()+".ini") // its user may not enter the test's folder
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(file) })
	args := []string{file}
	if os.Geteuid() == 0 { // it refuses to run as root
		args = append(args, "--user=nobody")
	}
	pgbouncer := exec.Command(program, args...)
	var log strings.Builder
	pgbouncer.Stdout, pgbouncer.Stderr = &log, &log
	if err := pgbouncer.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = pgbouncer.Process.Kill()
		_ = pgbouncer.Wait()
		if t.Failed() {
			t.Logf("PgBouncer (%s):\n%s", mode, log.String())
		}
	})
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address.String()); err == nil {
			conn.Close()
			u.Host = address.String()
			return u.String()
		}
	}
	t.Fatal("PgBouncer does not listen")
	return ""
}
