package devstack

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// postgresUser owns the cluster and the database.
const postgresUser = "todoku"

// PostgresOptions are the settings of a Postgres server of our own. The zero value gives a server on a free port with
// an empty database, gone without a trace when it is stopped.
type PostgresOptions struct {
	// Dir is where the server keeps its data, in postgres/, and its log. Empty: a temporary folder.
	Dir string
	// Port is the preferred port of 127.0.0.1; another is taken where it is in use. 0: any.
	Port int
	// Database is created where it does not exist; "todoku" if empty.
	Database string
	// NoSync lets the server confirm what the disk may not have yet (fsync=off). Data survives the death of any process,
	// not that of the machine. It makes tests faster and is wrong for measurements.
	NoSync bool
	// Clock is how far the server's clock is ahead of this machine's; behind, if it is negative. It needs libfaketime:
	// ErrNoFakeTime says that it is not installed.
	Clock time.Duration
	// StandbyOf, if not empty, is the URL of a server of which this one becomes a standby, with its databases and users.
	// It needs pg_basebackup, which embedded distributions lack: the error is then fs.ErrNotExist.
	StandbyOf string
	// Out takes lines about what is installed and what moved.
	Out io.Writer
}

// Postgres is a running server.
type Postgres struct {
	// URL names the server, user, password and database, as in DATABASE_URL.
	URL string

	child      *Child
	supervisor *Supervisor
}

// StartPostgres finds, and where necessary installs, Postgres, and runs a server under supervision. It returns when the
// database can be used; ctx limits only that wait. The caller must Stop it.
func StartPostgres(ctx context.Context, options PostgresOptions) (*Postgres, error) {
	supervisor, err := superviseOne(&options.Dir, options.Out)
	if err != nil {
		return nil, err
	}
	p, err := startPostgres(ctx, supervisor, options)
	if err != nil {
		supervisor.Stop()
		return nil, err
	}
	p.supervisor = supervisor
	return p, nil
}

// superviseOne makes the supervisor of a server that stands alone. An empty dir becomes a temporary folder.
func superviseOne(dir *string, out io.Writer) (*Supervisor, error) {
	temporary := *dir == ""
	if temporary {
		made, err := temporaryFolder()
		if err != nil {
			return nil, err
		}
		*dir = made
	}
	s, err := NewSupervisor(SupervisorOptions{Dir: *dir, Temporary: temporary, Out: out})
	if err != nil && temporary {
		os.Remove(*dir)
	}
	return s, err
}

// temporaryFolder makes a folder that others may pass through, as the user that runs Postgres must, but not list.
func temporaryFolder() (string, error) {
	dir, err := os.MkdirTemp("", "todoku-")
	if err != nil {
		return "", fmt.Errorf("make a temporary folder: %w", err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		return "", fmt.Errorf("open the temporary folder to Postgres: %w", err)
	}
	return dir, nil
}

// PID is the id of the server's main process.
func (p *Postgres) PID() int { return p.child.PID() }

// Stop ends the server and removes its folder if that was temporary.
func (p *Postgres) Stop() { p.supervisor.Stop() }

// startPostgres runs a server under a given supervisor.
func startPostgres(ctx context.Context, s *Supervisor, options PostgresOptions) (*Postgres, error) {
	if options.Database == "" {
		options.Database = "todoku"
	}
	u, err := findUnprivilegedUser()
	if err != nil {
		return nil, err
	}
	home, away, err := postgresHome(options.Dir, u, s.say)
	if err != nil {
		return nil, err
	}
	if away && s.options.Temporary {
		s.order(guardOrder{Remove: home})
	}
	data := filepath.Join(home, "data")
	binaries, err := obtainPostgres(ctx, u, clusterMajor(data), s.say)
	if err != nil {
		return nil, err
	}
	if clusterMajor(data) == 0 {
		if options.StandbyOf != "" {
			err = copyCluster(ctx, s, binaries, home, u, options.StandbyOf)
		} else {
			err = makeCluster(ctx, s, binaries, home, u, options.NoSync)
		}
		if err != nil {
			return nil, err
		}
	}
	environment, err := postgresClock(postgresEnvironment(), options.Clock)
	if err != nil {
		return nil, err
	}
	password, err := os.ReadFile(filepath.Join(home, "password"))
	if err != nil {
		return nil, fmt.Errorf("read the password of the Postgres cluster in %s: %w", home, err)
	}
	started := &Postgres{}
	err = withPorts("127.0.0.1", s.say, func(ports []int) error {
		admin := postgresURL(string(password), ports[0], "postgres")
		children, err := s.Start(ctx, Process{
			Name:        "postgres",
			Path:        binaries.program("postgres"),
			Args:        serverArguments(data, ports[0], options.NoSync),
			Env:         environment,
			Dir:         data,
			Ready:       postgresProbe(admin),
			Stops:       []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT}, // "fast" and "immediate" shutdown
			BeforeStart: func() error { return removeStalePID(data) },
			user:        u,
		})
		if err != nil {
			return err
		}
		started.child = children[0]
		started.URL = postgresURL(string(password), ports[0], options.Database)
		if options.StandbyOf != "" {
			return nil
		}
		return createDatabase(ctx, admin, options.Database)
	}, wantedPort{of: "Postgres", preferred: options.Port})
	if err != nil {
		return nil, err
	}
	return started, nil
}

// postgresHome is the folder for data and password: DIR/postgres, or, where the user who runs Postgres cannot reach
// that (away), one in /var/tmp that belongs to DIR.
func postgresHome(dir string, u *unprivilegedUser, say func(string, ...any)) (home string, away bool, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return "", false, fmt.Errorf("find the folder for Postgres: %w", err)
	}
	home = filepath.Join(dir, "postgres")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return "", false, fmt.Errorf("make the folder for Postgres: %w", err)
	}
	if err := u.own(home, 0o700); err != nil {
		return "", false, err
	}
	if u == nil || u.can('w', home) {
		return home, false, nil
	}
	sum := sha256.Sum256([]byte(dir))
	elsewhere := filepath.Join("/var/tmp", fmt.Sprintf("todoku-%x", sum[:6]))
	if err := os.Mkdir(elsewhere, 0o700); err == nil {
		if err := u.own(elsewhere, 0o700); err != nil {
			return "", false, err
		}
	}
	info, err := os.Lstat(elsewhere)
	if err != nil {
		return "", false, fmt.Errorf("make a folder for Postgres that user %s can reach: %w", u.name, err)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || !ok || owner.Uid != u.uid {
		return "", false, fmt.Errorf("user %s cannot reach %s, and %s, where its data would go, belongs to somebody else: remove it", u.name, home, elsewhere)
	}
	say("user %s, who runs Postgres, cannot reach %s: its data is in %s", u.name, home, elsewhere)
	return elsewhere, true, nil
}

// clusterMajor is the major version of Postgres that made the cluster in data; 0 if there is none.
func clusterMajor(data string) int {
	text, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(text))) // what is not a version is not a cluster of ours
	return n
}

// makeCluster makes a cluster in HOME/data. It appears there whole or not at all: initdb may be killed half-way.
func makeCluster(ctx context.Context, s *Supervisor, binaries postgresBinaries, home string, u *unprivilegedUser, noSync bool) error {
	passwordFile, unfinished := filepath.Join(home, "password"), filepath.Join(home, "data.unfinished")
	if err := os.RemoveAll(unfinished); err != nil {
		return fmt.Errorf("remove an unfinished Postgres cluster: %w", err)
	}
	if err := keepPassword(home, rand.Text(), u); err != nil {
		return err
	}
	arguments := []string{
		"--pgdata=" + unfinished, "--username=" + postgresUser, "--pwfile=" + passwordFile,
		"--auth-host=scram-sha-256", "--auth-local=scram-sha-256", "--encoding=UTF8", "--locale=C",
	}
	if noSync {
		arguments = append(arguments, "--no-sync")
	}
	began := time.Now()
	err := s.RunOnce(ctx, Process{
		Name: "initdb", Path: binaries.program("initdb"), Args: arguments, Env: postgresEnvironment(), Dir: home, user: u,
	})
	if err != nil {
		return fmt.Errorf("make a Postgres cluster: %w", err)
	}
	if err := os.Rename(unfinished, filepath.Join(home, "data")); err != nil {
		return fmt.Errorf("put the new Postgres cluster in its place: %w", err)
	}
	s.say("Postgres %d: new cluster in %s (%.1f s)", binaries.major, home, time.Since(began).Seconds())
	return nil
}

// copyCluster makes a cluster in HOME/data that follows another server until it is promoted.
func copyCluster(
	ctx context.Context, s *Supervisor, binaries postgresBinaries, home string, u *unprivilegedUser, primary string,
) error {
	from, err := url.Parse(primary)
	if err != nil {
		return fmt.Errorf("read the URL of the primary server: %w", err)
	}
	password, _ := from.User.Password()
	if err := keepPassword(home, password, u); err != nil {
		return err
	}
	err = s.RunOnce(ctx, Process{
		Name: "pg_basebackup", Path: binaries.client("pg_basebackup"), Env: postgresEnvironment(), Dir: home, user: u,
		Args: []string{
			"--pgdata=" + filepath.Join(home, "data"), "--dbname=" + primary, "--write-recovery-conf", "--checkpoint=fast",
		},
	})
	if err != nil {
		return fmt.Errorf("copy a Postgres cluster: %w", err)
	}
	return nil
}

// keepPassword keeps the password of the cluster's user beside it.
func keepPassword(home, password string, u *unprivilegedUser) error {
	file := filepath.Join(home, "password")
	if err := os.WriteFile(file, []byte(password), 0o600); err != nil {
		return fmt.Errorf("keep the password of the Postgres cluster: %w", err)
	}
	return u.own(file, 0o600)
}

// ErrNoFakeTime means that no server can be run whose clock is not the machine's.
var ErrNoFakeTime = errors.New("libfaketime is not installed (for example: apt-get install libfaketime)")

// postgresClock adds to a server's environment what shifts its clock.
func postgresClock(environment []string, ahead time.Duration) ([]string, error) {
	if ahead == 0 {
		return environment, nil
	}
	for _, folder := range []string{"/usr/lib/*/faketime", "/usr/lib*/faketime", "/usr/local/lib/faketime"} {
		// The patterns are well formed.
		if found, _ := filepath.Glob(filepath.Join(folder, "libfaketime.so.1")); len(found) > 0 {
			return append(environment, "LD_PRELOAD="+found[0], fmt.Sprintf("FAKETIME=%+.3f", ahead.Seconds()),
				"FAKETIME_DONT_FAKE_MONOTONIC=1"), nil
		}
	}
	return nil, ErrNoFakeTime
}

// serverArguments configure the server by its command line alone, so that a cluster needs no editing.
func serverArguments(data string, port int, noSync bool) []string {
	settings := []string{
		"listen_addresses=127.0.0.1",
		"port=" + strconv.Itoa(port),
		"unix_socket_directories=",
		"max_connections=200",
		"shared_buffers=128MB",
		"timezone=UTC",
		"log_timezone=UTC",
		"logging_collector=off",
	}
	if noSync {
		settings = append(settings, "fsync=off", "full_page_writes=off", "todoku.volatile=on") // the last: on purpose
	}
	arguments := []string{"-D", data}
	for _, setting := range settings {
		arguments = append(arguments, "-c", setting)
	}
	return arguments
}

// postgresEnvironment leaves out the caller's PG… variables and locale; without LC_ALL, Postgres on macOS ends with
// "postmaster became multithreaded during startup".
func postgresEnvironment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
}

func postgresURL(password string, port int, database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(postgresUser, password),
		Host:     "127.0.0.1:" + strconv.Itoa(port),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// postgresProbe is ready when a query is answered: a port alone is open before the server has recovered.
func postgresProbe(databaseURL string) Probe {
	return func(ctx context.Context) error {
		connection, err := pgx.Connect(ctx, databaseURL)
		if err != nil {
			return err
		}
		defer connection.Close(context.WithoutCancel(ctx))
		return connection.Ping(ctx)
	}
}

// createDatabase creates a database where it does not exist.
func createDatabase(ctx context.Context, admin, name string) error {
	connection, err := pgx.Connect(ctx, admin)
	if err != nil {
		return fmt.Errorf("connect to create database %s: %w", name, err)
	}
	defer connection.Close(context.WithoutCancel(ctx))
	var exists bool
	if err := connection.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&exists); err != nil {
		return fmt.Errorf("look for database %s: %w", name, err)
	}
	if exists {
		return nil
	}
	if _, err := connection.Exec(ctx, `CREATE DATABASE `+pgx.Identifier{name}.Sanitize()); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

// removeStalePID removes the postmaster.pid of a server that was killed when it names none, since the server was killed
// while it wrote it, or when its process id now belongs to some other program, as after a restart of the machine:
// Postgres would refuse to start. In every other case the file stays, for Postgres reads more from it than the pid.
func removeStalePID(data string) error {
	path := filepath.Join(data, "postmaster.pid")
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read Postgres's pid file: %w", err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err == nil && (!alive(pid) || strings.Contains(commandLine(pid), data)) {
		return nil
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove the pid file of a Postgres that was killed: %w", err)
	}
	return nil
}
