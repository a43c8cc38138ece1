// Package devstacktest gives tests a real Postgres and a real Temporal. Each test program starts at most one of each,
// when a test first asks, and they are gone when the program ends, however it ends.
//
//	func TestMain(m *testing.M) { devstacktest.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		db := devstacktest.Ledger(t)
//		temporal := devstacktest.Temporal(t)
//		…
//	}
package devstacktest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/devstack"
	"github.com/todoku/todoku/devstack/wire"
	"github.com/todoku/todoku/migrations"
)

// startWithin limits the start of a server. It is generous: several test programs start theirs at once.
const startWithin = 2 * time.Minute

// Main is the whole of a TestMain: it runs the tests, stops the servers and exits.
func Main(m *testing.M) {
	devstack.GuardMain()
	code := m.Run()
	stopServers()
	os.Exit(code)
}

// server is one that the tests of a program share; it starts when it is first asked for.
type server[T interface{ Stop() }] struct {
	mu      sync.Mutex
	started bool
	value   T
	err     error
}

func (s *server[T]) get(t testing.TB, start func(context.Context) (T, error)) T {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		ctx, cancel := context.WithTimeout(context.Background(), startWithin)
		defer cancel()
		s.value, s.err = start(ctx)
		s.started = true
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.value
}

func (s *server[T]) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started && s.err == nil {
		s.value.Stop()
	}
	s.started = false
}

var (
	postgres       server[*devstack.Postgres]
	temporalServer server[*devstack.TemporalServer]
)

func stopServers() {
	temporalServer.stop()
	postgres.stop()
}

var databases atomic.Int64

// Postgres gives the URL of a fresh, empty database, which is dropped when the test ends. The server does not wait for
// the disk.
func Postgres(t testing.TB) string {
	t.Helper()
	return newDatabase(t, "template0")
}

// templates holds, by name, the URLs of databases to be copied, or what kept them from being made.
var templates = struct {
	sync.Mutex
	made map[string]error
}{made: map[string]error{}}

// PostgresFromTemplate gives the URL of a fresh copy of a database that migrate, called once for each name in a test
// program, has filled; the copy takes a fraction of the time. migrate must close its connections. The copy is dropped
// when the test ends.
func PostgresFromTemplate(t testing.TB, name string, migrate func(databaseURL string) error) string {
	t.Helper()
	template := "template_" + name
	templates.Lock()
	defer templates.Unlock()
	err, made := templates.made[name]
	if !made {
		if err = createDatabase(template, "template0", serverURL(t)); err == nil {
			err = migrate(databaseURL(t, template))
		}
		templates.made[name] = err
	}
	if err != nil {
		t.Fatalf("make the template database %q: %v", name, err)
	}
	return newDatabase(t, template)
}

// Ledger gives the URL of a fresh database with the schema of this version, and no rows.
func Ledger(t testing.TB) string {
	t.Helper()
	return PostgresFromTemplate(t, "ledger", func(databaseURL string) error {
		_, err := migrations.Up(context.Background(), databaseURL)
		return err
	})
}

// newDatabase copies a template into a database for one test.
func newDatabase(t testing.TB, template string) string {
	t.Helper()
	server := serverURL(t)
	name := fmt.Sprintf("test_%d", databases.Add(1))
	if err := createDatabase(name, template, server); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := execute(server, `DROP DATABASE `+pgx.Identifier{name}.Sanitize()+` WITH (FORCE)`); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	return databaseURL(t, name)
}

// applicationRole reads and writes rows and cannot change the schema, as API and workers may in production.
const applicationRole = "todoku_app"

// AsApplication gives the URL of a test's database for a role that has no rights but those of [migrations.Grant].
func AsApplication(t testing.TB, databaseURL string) string {
	t.Helper()
	roles.Lock()
	defer roles.Unlock()
	if !roles.made {
		if err := execute(serverURL(t), `CREATE ROLE `+applicationRole+` LOGIN PASSWORD 'app'`); err != nil {
			t.Fatal(err)
		}
		roles.made = true
	}
	if err := migrations.Grant(t.Context(), databaseURL, applicationRole); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(applicationRole, "app")
	return u.String()
}

var roles struct {
	sync.Mutex
	made bool
}

// Wire lays a wire to a database, which lasts as long as the test, and gives the database's URL through it.
func Wire(t testing.TB, databaseURL string) (w *wire.Wire, through string) {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	if w, err = wire.To(u.Host); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	if through, err = w.Through(databaseURL); err != nil {
		t.Fatal(err)
	}
	return w, through
}

// serverURL is the URL of the shared server's own database.
func serverURL(t testing.TB) string {
	t.Helper()
	return postgres.get(t, func(ctx context.Context) (*devstack.Postgres, error) {
		return devstack.StartPostgres(ctx, devstack.PostgresOptions{NoSync: true})
	}).URL
}

func databaseURL(t testing.TB, name string) string {
	t.Helper()
	u, err := url.Parse(serverURL(t))
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

func createDatabase(name, template, server string) error {
	return execute(server, fmt.Sprintf(`CREATE DATABASE %s TEMPLATE %s`, pgx.Identifier{name}.Sanitize(), pgx.Identifier{template}.Sanitize()))
}

func execute(databaseURL, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	db, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return fmt.Errorf("connect to the tests' Postgres: %w", err)
	}
	defer db.Close(ctx)
	if _, err := db.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", strings.SplitN(statement, " TEMPLATE", 2)[0], err)
	}
	return nil
}

// Temporal gives host:port of a Temporal dev server; its namespace is devstack.TemporalNamespace. Tests share it, so
// they use workflow ids and task queues of their own. Where there is no Temporal CLI the test fails and says how to get it.
func Temporal(t testing.TB) string {
	t.Helper()
	return temporalServer.get(t, func(ctx context.Context) (*devstack.TemporalServer, error) {
		return devstack.StartTemporal(ctx, devstack.TemporalOptions{})
	}).Address
}

// Snapshot gives the URL of a copy of a database as it is in this moment, which is dropped when the test ends.
// Connections to the database are cut for it.
func Snapshot(t testing.TB, databaseURL string) string {
	t.Helper()
	name := databaseName(t, databaseURL)
	closeDatabase(t, name)
	defer openDatabase(t, name)
	return newDatabase(t, name)
}

// FailOver puts another database in the place of one, as when a standby takes over: connections are cut, and
// new ones find the other. What the first had is then at the other's URL.
func FailOver(t testing.TB, databaseURL, to string) {
	t.Helper()
	server, name, other := serverURL(t), databaseName(t, databaseURL), databaseName(t, to)
	closeDatabase(t, name)
	closeDatabase(t, other)
	for _, names := range [][2]string{{name, name + "_old"}, {other, name}, {name + "_old", other}} {
		rename := fmt.Sprintf(`ALTER DATABASE %s RENAME TO %s`, pgx.Identifier{names[0]}.Sanitize(), pgx.Identifier{names[1]}.Sanitize())
		if err := execute(server, rename); err != nil {
			t.Fatal(err)
		}
	}
	openDatabase(t, name)
	openDatabase(t, other)
}

// SetReadOnly makes a database refuse writes, as a standby does, or take them again. Connections are cut.
func SetReadOnly(t testing.TB, databaseURL string, readOnly bool) {
	t.Helper()
	name := databaseName(t, databaseURL)
	if err := execute(serverURL(t), fmt.Sprintf(`ALTER DATABASE %s SET default_transaction_read_only = %t`, pgx.Identifier{name}.Sanitize(), readOnly)); err != nil {
		t.Fatal(err)
	}
	if readOnly { // those that lead to a server that became a standby stay, and those that are read-only too
		closeDatabase(t, name)
		openDatabase(t, name)
	}
}

// PostgresEncoded gives the URL of a fresh, empty database with another encoding than UTF8. It is dropped when the test ends.
func PostgresEncoded(t testing.TB, encoding string) string {
	t.Helper()
	url := newDatabase(t, "template0")
	name := pgx.Identifier{databaseName(t, url)}.Sanitize()
	for _, statement := range []string{
		`DROP DATABASE ` + name,
		`CREATE DATABASE ` + name + ` TEMPLATE template0 ENCODING '` + encoding + `' LOCALE 'C'`,
	} {
		if err := execute(serverURL(t), statement); err != nil {
			t.Fatal(err)
		}
	}
	return url
}

func databaseName(t testing.TB, databaseURL string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(u.Path, "/")
}

// closeDatabase keeps new connections out of a database, and cuts those that there are.
func closeDatabase(t testing.TB, name string) {
	t.Helper()
	allow(t, name, false)
	if err := execute(serverURL(t), fmt.Sprintf(`SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '%s'`, name)); err != nil {
		t.Fatal(err)
	}
}

func openDatabase(t testing.TB, name string) { t.Helper(); allow(t, name, true) }

func allow(t testing.TB, name string, connections bool) {
	t.Helper()
	if err := execute(serverURL(t), fmt.Sprintf(`ALTER DATABASE %s ALLOW_CONNECTIONS %t`, pgx.Identifier{name}.Sanitize(), connections)); err != nil {
		t.Fatal(err)
	}
}
