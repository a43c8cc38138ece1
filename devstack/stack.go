// Package devstack runs the whole product on one machine: Postgres, Temporal, the simulator, the workers and the API,
// each as a process that is started again when it dies and is gone when its supervisor is, even if that was killed.
// `todoku dev` is a [Stack]; tests use its parts, [StartPostgres] and [StartTemporal], through the package devstacktest.
//
// Every program that uses this package calls [GuardMain] first.
package devstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// The ports that a stack prefers, all on 127.0.0.1. Postgres leaves 5432 to the one that the machine may have.
const (
	preferredPostgres   = 5433
	preferredTemporal   = 7233
	preferredTemporalUI = 8233
	preferredSimulator  = 9911
	preferredWorker     = 8081 // of the first worker, the others' follow
	preferredAPI        = "127.0.0.1:8080"
)

// The account that the simulator is given. It takes any.
const (
	simulatorAccount = "AC00000000000000000000000000000000"
	simulatorToken   = "simulator"
)

// SimulatorNumber is what is sent from where the simulator is used and no number is set: Twilio's magic one
// that may send.
const SimulatorNumber = "+15005550006"

// SimulatorSettings are the settings by which a process sends through the simulator at url.
func SimulatorSettings(url string) map[string]string {
	return map[string]string{
		"TWILIO_API_URL":     url,
		"TWILIO_ACCOUNT_SID": simulatorAccount,
		"TWILIO_AUTH_TOKEN":  simulatorToken,
	}
}

// Options are the settings of a [Stack].
type Options struct {
	// Dir keeps the stack's data; ".todoku" if empty.
	Dir string
	// Ephemeral takes free ports instead of the usual ones, and a temporary folder instead of Dir.
	Ephemeral bool
	// Workers is how many workers run.
	Workers int
	// ReadyFile, if not empty, is where the stack writes [Ready] once it is ready and whenever a process was replaced.
	ReadyFile string
	// Executable is the todoku program; this very one if empty.
	Executable string
	// Env holds the settings, as NAME=value; this process's own environment if nil.
	Env []string
	// Check looks at the settings that every process of ours gets, once Twilio and the database are there.
	// Its error ends the start. Nil: there is nothing to check.
	Check func(ctx context.Context, env []string) error
	// Out takes the lines for the person at the terminal; nil for none.
	Out io.Writer
}

// A Stack is the whole product, running.
type Stack struct {
	options    Options
	say        func(string, ...any)
	lock       *flock.Flock
	supervisor *Supervisor
	env        environment // what each of our own processes gets

	// apiPort stays taken by us until the API starts: workers are told its address before that.
	apiPort net.Listener

	mu                                 sync.Mutex // guards what follows
	ready                              Ready
	postgres, temporal, simulator, api *Child // nil where it is not ours to run
	workers                            []*Child
	workerURLs                         []string // where they say how they are
	announced                          bool
}

// Run starts a stack, keeps it until ctx ends, and stops it. It returns nil when it was stopped by ctx, and an error
// when it could not start.
func Run(ctx context.Context, options Options) error {
	s, err := Start(ctx, options)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	<-ctx.Done()
	s.say("\nstopping …")
	s.Stop()
	s.say("stopped")
	return nil
}

// Start starts everything, in order, and returns when it is ready. ctx limits only that; the caller must Stop the stack.
func Start(ctx context.Context, options Options) (*Stack, error) {
	s := &Stack{options: options, say: printer(options.Out)}
	if err := s.start(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// Stop ends every process, the last started first, and removes the ready file. It may be called again.
func (s *Stack) Stop() {
	s.mu.Lock()
	if s.announced && s.options.ReadyFile != "" {
		_ = os.Remove(s.options.ReadyFile) // it may have been taken away
	}
	s.announced = false
	s.mu.Unlock()
	if s.supervisor != nil {
		s.supervisor.Stop()
	}
	if s.apiPort != nil {
		s.apiPort.Close()
	}
	if s.lock != nil {
		s.lock.Close()
	}
}

// Ready says where everything is now.
func (s *Stack) Ready() Ready {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readyNow()
}

func (s *Stack) start(ctx context.Context) error {
	began := time.Now()
	steps := []func(context.Context) error{
		s.prepare,
		s.startPostgres,
		s.migrate,
		s.startTemporal,
		s.startSimulator,
		s.check,
		s.reserveAPI,
		s.startWorkers,
		s.startAPI,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := s.announce(); err != nil {
		return err
	}
	s.say("ready in %.1f s", time.Since(began).Seconds())
	s.printTable()
	return nil
}

// prepare makes the folder, locks it and starts the supervisor.
func (s *Stack) prepare(context.Context) (err error) {
	o := &s.options
	if o.Executable == "" {
		if o.Executable, err = os.Executable(); err != nil {
			return fmt.Errorf("find the todoku program: %w", err)
		}
	}
	if o.Env == nil {
		o.Env = os.Environ()
	}
	s.env = newEnvironment(o.Env)
	if o.ReadyFile != "" {
		if o.ReadyFile, err = filepath.Abs(o.ReadyFile); err != nil {
			return fmt.Errorf("find the ready file: %w", err)
		}
	}
	supervise := SupervisorOptions{Out: o.Out, OnChange: s.changed, Temporary: o.Ephemeral}
	if o.Ephemeral {
		if o.Dir, err = temporaryFolder(); err != nil {
			return err
		}
	} else {
		if o.Dir == "" {
			o.Dir = ".todoku"
		}
		if o.Dir, err = filepath.Abs(o.Dir); err != nil {
			return fmt.Errorf("find the folder %s: %w", o.Dir, err)
		}
		if err := os.MkdirAll(o.Dir, 0o755); err != nil {
			return fmt.Errorf("make the folder for all data: %w", err)
		}
		if s.lock, err = lockFolder(o.Dir); err != nil {
			return err
		}
		supervise.Lock = filepath.Join(o.Dir, "guard.lock")
	}
	supervise.Dir = o.Dir
	if s.supervisor, err = NewSupervisor(supervise); err != nil && o.Ephemeral {
		os.Remove(o.Dir)
	}
	if err != nil || o.ReadyFile == "" {
		return err
	}
	if err := os.Remove(o.ReadyFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove an older ready file: %w", err)
	}
	s.supervisor.order(guardOrder{Retract: o.ReadyFile})
	return nil
}

func (s *Stack) startPostgres(ctx context.Context) error {
	if s.env.has("DATABASE_URL") {
		s.say("Postgres: the one that DATABASE_URL names")
		var err error
		s.ready.DatabaseURL, err = s.env.secret("DATABASE_URL")
		return err
	}
	p, err := startPostgres(ctx, s.supervisor, PostgresOptions{Dir: s.options.Dir, Port: s.preferred(preferredPostgres)})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.postgres, s.ready.DatabaseURL = p.child, p.URL
	s.env.set("DATABASE_URL", p.URL)
	s.say("Postgres is ready")
	return nil
}

func (s *Stack) migrate(ctx context.Context) error {
	if err := s.makeSecrets(); err != nil {
		return err
	}
	return s.supervisor.RunOnce(ctx, s.own("migrate", s.env, "migrate", "up"))
}

func (s *Stack) startTemporal(ctx context.Context) error {
	if address := s.env["TEMPORAL_ADDRESS"]; address != "" {
		s.say("Temporal: the one at TEMPORAL_ADDRESS, %s", address)
		s.ready.Temporal = address
		limited, cancel := context.WithTimeoutCause(ctx, 3*time.Second, errors.New("no answer within 3 s"))
		defer cancel()
		if err := await(limited, TCPProbe(address), nil); err != nil {
			return fmt.Errorf("TEMPORAL_ADDRESS is %s, but nothing can be reached there (leave it empty for a dev server of our own): %w", address, err)
		}
		return nil
	}
	binary, err := FindTemporalCLI()
	if errors.Is(err, ErrNoTemporalCLI) {
		binary, err = BuildTemporalCLI(ctx, ".bin", s.options.Out)
	}
	if err != nil {
		return err
	}
	t, err := startTemporal(ctx, s.supervisor, binary, TemporalOptions{
		Dir:    s.options.Dir,
		Port:   s.preferred(preferredTemporal),
		UIPort: s.preferred(preferredTemporalUI),
	})
	if err != nil {
		return err
	}
	// The user's other Temporal settings (TLS, keys, a profile) are for the server that they did not choose.
	for name := range s.env {
		if strings.HasPrefix(name, "TEMPORAL_") {
			delete(s.env, name)
		}
	}
	s.env.set("TEMPORAL_ADDRESS", t.Address)
	s.env.set("TEMPORAL_NAMESPACE", TemporalNamespace)
	s.env.set("TEMPORAL_CONFIG_FILE", os.DevNull)
	s.env.set("TODOKU_TEMPORAL_UI_URL", t.UIURL)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.temporal, s.ready.Temporal, s.ready.TemporalUI = t.child, t.Address, t.UIURL
	s.say("Temporal is ready")
	return nil
}

func (s *Stack) startSimulator(ctx context.Context) error {
	if s.env.has("TWILIO_ACCOUNT_SID") && s.env.has("TWILIO_AUTH_TOKEN") {
		if s.env.has("TWILIO_API_URL") {
			s.say("Twilio: what is at TWILIO_API_URL")
		} else {
			s.say("Twilio: the real one, for TWILIO_ACCOUNT_SID is set: messages and calls cost money, also those that an earlier run with this account left scheduled or waiting")
		}
		return nil
	}
	if s.env.has("TWILIO_ACCOUNT_SID") != s.env.has("TWILIO_AUTH_TOKEN") {
		s.say("Twilio: the simulator, for only one of TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN is set")
	}
	return withPorts("127.0.0.1", s.say, func(ports []int) error {
		address := "127.0.0.1:" + strconv.Itoa(ports[0])
		p := s.own("simulator", s.env, "simulator", "--addr", address)
		p.Ready = HTTPProbe("http://" + address + "/_simulator/stats")
		children, err := s.supervisor.Start(ctx, p)
		if err != nil {
			return err
		}
		for name, value := range SimulatorSettings("http://" + address) {
			s.env.set(name, value)
		}
		s.env.setDefault("TWILIO_PHONE_NUMBER", SimulatorNumber)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.simulator, s.ready.Simulator = children[0], "http://"+address
		s.say("the simulator is ready")
		return nil
	}, wantedPort{"the simulator", s.preferred(preferredSimulator)})
}

func (s *Stack) check(ctx context.Context) error {
	if s.options.Check == nil {
		return nil
	}
	return s.options.Check(ctx, s.env.lines())
}

// reserveAPI settles where the API will be: the workers give that address to the simulator.
func (s *Stack) reserveAPI(context.Context) error {
	wanted := s.env["TODOKU_ADDR"]
	if wanted == "" {
		wanted = preferredAPI
	}
	host, portText, err := net.SplitHostPort(wanted)
	if err != nil {
		return fmt.Errorf("TODOKU_ADDR is %q, but must be host:port: %w", wanted, err)
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return fmt.Errorf("TODOKU_ADDR is %q, but the port must be a number", wanted)
	}
	var address string
	err = withPorts(host, s.say, func(ports []int) (err error) {
		address = net.JoinHostPort(host, strconv.Itoa(ports[0]))
		s.apiPort, err = net.Listen("tcp", address)
		return err
	}, wantedPort{"the API", s.preferred(port)})
	if err != nil {
		return fmt.Errorf("reserve the API's address: %w", err)
	}
	s.env.set("TODOKU_ADDR", address)
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		address = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.apiPort.Addr().(*net.TCPAddr).Port))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready.API = "http://" + address
	public := s.env["TODOKU_PUBLIC_URL"]
	switch moved := s.apiPort.Addr().(*net.TCPAddr).Port != port; {
	case s.simulator != nil:
		if public != "" {
			s.say("TODOKU_PUBLIC_URL is not used: the simulator calls back at %s", s.ready.API)
		}
		s.env.set("TODOKU_PUBLIC_URL", s.ready.API)
	case public != "" && moved:
		s.say("Twilio calls back at %s (TODOKU_PUBLIC_URL): let that lead to %s, for the API is not at port %d",
			public, s.ready.API, port)
	}
	return nil
}

func (s *Stack) startWorkers(ctx context.Context) error {
	if s.options.Workers == 0 {
		s.say("no workers: what is accepted waits for one")
		return nil
	}
	wanted := make([]wantedPort, s.options.Workers)
	for i := range wanted {
		wanted[i] = wantedPort{of: "worker " + strconv.Itoa(i+1), preferred: s.preferred(preferredWorker + i)}
	}
	return withPorts("127.0.0.1", s.say, func(ports []int) error {
		processes, urls := make([]Process, len(ports)), make([]string, len(ports))
		for i, port := range ports {
			address := "127.0.0.1:" + strconv.Itoa(port)
			processes[i] = s.own("worker-"+strconv.Itoa(i+1), s.env.with("TODOKU_WORKER_ADDR", address), "worker")
			urls[i] = "http://" + address
			processes[i].Ready = HTTPProbe(urls[i] + "/readyz")
		}
		children, err := s.supervisor.Start(ctx, processes...)
		if err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.workers, s.workerURLs = children, urls
		s.say("%d worker(s) are ready", len(children))
		return nil
	}, wanted...)
}

func (s *Stack) startAPI(ctx context.Context) error {
	p := s.own("api", s.env, "api")
	p.Ready = HTTPProbe(s.ready.API + "/readyz")
	if err := s.apiPort.Close(); err != nil {
		return fmt.Errorf("free the API's port: %w", err)
	}
	children, err := s.supervisor.Start(ctx, p)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.api = children[0]
	s.say("the API is ready")
	return nil
}

// own is one of our own processes: the todoku program in one of its roles.
func (s *Stack) own(name string, env environment, arguments ...string) Process {
	return Process{Name: name, Path: s.options.Executable, Args: arguments, Env: env.lines()}
}

// preferred is the port to ask for: the usual one, or any for an ephemeral stack.
func (s *Stack) preferred(port int) int {
	if s.options.Ephemeral {
		return 0
	}
	return port
}

// changed is told of a replaced process.
func (s *Stack) changed(*Child) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.announced || s.options.ReadyFile == "" {
		return
	}
	if err := s.readyNow().write(s.options.ReadyFile); err != nil {
		s.say("%v", err)
	}
}

// announce writes the ready file for the first time.
func (s *Stack) announce() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.announced = true
	if s.options.ReadyFile == "" {
		return nil
	}
	return s.readyNow().write(s.options.ReadyFile)
}

// readyNow is Ready with the pids of this moment. The caller holds the lock.
func (s *Stack) readyNow() Ready {
	r := s.ready
	r.PIDs = PIDs{Workers: []int{}}
	r.Workers = append([]string{}, s.workerURLs...)
	pid := func(c *Child) int {
		if c == nil {
			return 0
		}
		return c.PID()
	}
	r.PIDs.Postgres, r.PIDs.Temporal, r.PIDs.Simulator, r.PIDs.API = pid(s.postgres), pid(s.temporal), pid(s.simulator), pid(s.api)
	for _, worker := range s.workers {
		r.PIDs.Workers = append(r.PIDs.Workers, worker.PID())
	}
	return r
}
