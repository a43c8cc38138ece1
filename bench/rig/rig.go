// Package rig runs the whole product on this machine, each part as a process of its own, and gives
// benchmarks and chaos tests hands to drive it with: a client of the API that retries as told, the
// simulator's controls, an auditor's view of the ledger, Temporal, and signals to the processes.
package rig

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"syscall"
	"testing"
	"time"
	_ "time/tzdata" // the programs of the rig are todoku too, which brings its own zones

	"github.com/todoku/todoku/cli"
	"github.com/todoku/todoku/devstack"
)

// roles are the commands of todoku that a stack runs.
var roles = []string{"api", "migrate", "simulator", "worker"}

// profileFolder names the setting that makes every process write a CPU profile, ROLE-PID.pprof, into
// a folder when it is stopped.
const profileFolder = "TODOKU_RIG_PROFILES"

// Main must be the first call in the main function of a program that uses a rig: the rig's processes
// are this very program in the roles of todoku, so that what is measured or tortured is what is in
// the source now. Tests call [TestMain].
func Main() {
	devstack.GuardMain()
	if len(os.Args) < 2 || !slices.Contains(roles, os.Args[1]) {
		return
	}
	stop := profile(os.Getenv(profileFolder), os.Args[1])
	code := cli.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// TestMain is the whole of a TestMain.
func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

func profile(folder, role string) (stop func()) {
	if folder == "" {
		return func() {}
	}
	file, err := os.Create(filepath.Join(folder, fmt.Sprintf("%s-%d.pprof", role, os.Getpid())))
	if err == nil {
		err = pprof.StartCPUProfile(file)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "no CPU profile:", err)
		return func() {}
	}
	return func() {
		pprof.StopCPUProfile()
		file.Close()
	}
}

// Options are the settings of a [Rig]. The zero value is one worker at the product's own defaults.
type Options struct {
	Workers  int               // 1 if 0
	Settings map[string]string // settings of todoku, by name; nothing else of ours is taken from the environment
	Profiles string            // a folder for CPU profiles; empty: none
	Database *Database         // nil: a Postgres of the rig's own, which it kills and starts again
	Program  string            // the todoku program, as [BuildShifted] makes one; empty: this very program
	Out      io.Writer         // lines about what starts and what dies; nil: nobody reads them
}

// A Rig is the whole product, running, on free ports and with a folder that is gone afterwards. Its
// Postgres waits for the disk, as in production.
type Rig struct {
	API       *API
	Simulator *Simulator
	Ledger    *Ledger
	Temporal  *Temporal

	stack *devstack.Stack
}

// Start starts a rig and returns when it is ready. ctx limits only that; the caller must Stop it.
func Start(ctx context.Context, options Options) (*Rig, error) {
	stack, err := devstack.Start(ctx, devstack.Options{
		Ephemeral: true, Workers: max(options.Workers, 1), Executable: options.Program, Env: options.environment(), Out: options.Out,
	})
	if err != nil {
		return nil, err
	}
	ready := stack.Ready()
	r := &Rig{API: newAPI(ready.API, ready.APIKey), Simulator: newSimulator(ready.Simulator), stack: stack}
	if r.Ledger, err = openLedger(ctx, ready.DatabaseURL); err == nil {
		r.Temporal, err = dialTemporal(ready.Temporal)
	}
	if err != nil {
		r.Stop()
		return nil, err
	}
	return r, nil
}

// Stop ends every process.
func (r *Rig) Stop() {
	if r.Temporal != nil {
		r.Temporal.client.Close()
	}
	if r.Ledger != nil {
		r.Ledger.pool.Close()
	}
	r.stack.Stop()
}

func (o Options) environment() []string {
	env := []string{"TODOKU_LOG_LEVEL=warn"}
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	for name, value := range o.Settings {
		env = append(env, name+"="+value)
	}
	if o.Database != nil {
		env = append(env, "DATABASE_URL="+o.Database.URL())
	}
	if o.Profiles != "" {
		env = append(env, profileFolder+"="+o.Profiles)
	}
	return env
}

// DatabaseURL names the rig's database, with its password.
func (r *Rig) DatabaseURL() string { return r.stack.Ready().DatabaseURL }

// Workers are the base URLs at which the workers say how they are.
func (r *Rig) Workers() []string { return r.stack.Ready().Workers }

// A Part is one or more processes of the rig that do the same.
type Part string

// The parts of a rig.
const (
	PartAPI       Part = "API"
	PartWorkers   Part = "worker"
	PartTemporal  Part = "Temporal"
	PartPostgres  Part = "Postgres"
	PartSimulator Part = "simulator"
)

// PIDs are the processes that a part has at this moment; one that is being replaced may be dead.
func (r *Rig) PIDs(part Part) []int {
	pids := r.stack.Ready().PIDs
	switch part {
	case PartAPI:
		return []int{pids.API}
	case PartWorkers:
		return pids.Workers
	case PartTemporal:
		return []int{pids.Temporal}
	case PartPostgres:
		return []int{pids.Postgres}
	case PartSimulator:
		return []int{pids.Simulator}
	}
	panic("the rig has no part " + part)
}

// Kill ends processes as kill -9 does. The rig starts them again.
func (r *Rig) Kill(pids ...int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may be dead already
	}
}

// KeepDown kills a part again and again, as soon as it comes up, until ctx ends.
func (r *Rig) KeepDown(ctx context.Context, part Part) {
	for ctx.Err() == nil {
		r.Kill(r.PIDs(part)...)
		sleep(ctx, 50*time.Millisecond)
	}
}

// Freeze stops a part in its tracks, as a machine that hangs does, until ctx ends.
func (r *Rig) Freeze(ctx context.Context, part Part) {
	pids := r.PIDs(part)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP) // it may be dead already
	}
	<-ctx.Done()
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
