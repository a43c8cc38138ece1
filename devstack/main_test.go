package devstack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// The test program plays all the parts: where roleVariable is set it is not the tests but the todoku program with
// stand-ins for its roles, or a supervisor that a test can kill.
const roleVariable = "DEVSTACK_TEST_ROLES"

func TestMain(m *testing.M) {
	GuardMain()
	if os.Getenv(roleVariable) != "" {
		if err := playRole(os.Args[1], os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	m.Run()
}

func playRole(role string, arguments []string) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	switch role {
	case "migrate": // counts how often it ran
		db, err := pgx.Connect(ctx, os.Getenv("DATABASE_URL"))
		if err != nil {
			return err
		}
		defer db.Close(ctx)
		_, err = db.Exec(ctx, `CREATE TABLE IF NOT EXISTS starts (at timestamptz); INSERT INTO starts VALUES (now())`)
		return err
	case "api":
		return serve(ctx, os.Getenv("TODOKU_ADDR"))
	case "worker":
		return serve(ctx, os.Getenv("TODOKU_WORKER_ADDR"))
	case "simulator":
		return serve(ctx, arguments[1])
	case "dev": // DIR READYFILE
		options := Options{Dir: arguments[0], Workers: 2, ReadyFile: arguments[1], Out: os.Stdout}
		options.Ephemeral = options.Dir == ""
		return Run(ctx, options)
	case "supervise": // COMMAND…: each a shell script
		return superviseScripts(ctx, arguments)
	default:
		return fmt.Errorf("no role %q", role)
	}
}

// serve answers every path with 200 and the settings that the process was given.
func serve(ctx context.Context, address string) error {
	server := &http.Server{Addr: address, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(newEnvironment(os.Environ()))
	})}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// superviseScripts runs scripts in a temporary folder and prints that, the guard's pid and theirs.
func superviseScripts(ctx context.Context, scripts []string) error {
	dir, err := temporaryFolder()
	if err != nil {
		return err
	}
	s, err := NewSupervisor(SupervisorOptions{Dir: dir, Temporary: true, Out: os.Stderr})
	if err != nil {
		return err
	}
	defer s.Stop()
	fmt.Println(dir)
	pids := []int{s.guard.pid}
	for i, script := range scripts {
		children, err := s.Start(ctx, shell(fmt.Sprintf("script-%d", i), script))
		if err != nil {
			return err
		}
		pids = append(pids, children[0].PID())
	}
	fmt.Println(strings.Trim(fmt.Sprint(pids), "[]"))
	<-ctx.Done()
	return nil
}

// shell is a process that runs a script.
func shell(name, script string) Process {
	return Process{Name: name, Path: "/bin/sh", Args: []string{"-c", script}, StopWithin: 5 * time.Second}
}

// inRole is this test program as a todoku program of its own.
func inRole(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(thisProgram(t), arguments...)
	cmd.Env = append(os.Environ(), roleVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

func thisProgram(t *testing.T) string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// eventually fails the test when a condition does not come true; the wait is long because machines are slow, not
// because the product may be.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// testWriter sends lines to the test's log.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}
