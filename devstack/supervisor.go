package devstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

const (
	restartPauseMin = 100 * time.Millisecond
	restartPauseMax = 5 * time.Second
	// healthyAfter is how long a process must have run for its next restart to be prompt again.
	healthyAfter = 10 * time.Second
	// changeWithin limits how long news of a replaced process waits for that process to become ready.
	changeWithin = 10 * time.Second
)

// A Supervisor keeps processes running: each one that ends is started again, after a pause that grows from 0.1 s to 5 s
// while it keeps ending. Stop ends them in reverse order. When the supervisor's own process dies, in whatever way, its
// guard ends them within a few seconds.
type Supervisor struct {
	options SupervisorOptions
	say     func(format string, args ...any)

	restarting context.Context // ends when Stop begins
	cancel     context.CancelFunc
	keepers    sync.WaitGroup

	mu       sync.Mutex // guards what follows
	guard    *guard
	live     []guarded // what runs now, in order of start
	steps    [][]*Child
	standing []guardOrder // what every guard is told
	stopping bool
}

// SupervisorOptions are the settings of a [Supervisor].
type SupervisorOptions struct {
	// Dir holds the logs of the processes, log/NAME.log, and a record of each, run/NAME.
	Dir string
	// Temporary makes Dir be removed at the end, by Stop or by the guard.
	Temporary bool
	// Lock, if not empty, is a file that stays locked until the last process has ended, even when the supervisor was
	// killed; making the next supervisor waits for it, up to 20 s.
	Lock string
	// Out takes lines about processes that ended and were started again. Nil: nobody hears of it.
	Out io.Writer
	// OnChange, if set, is called after a process was replaced by a new one, as soon as that is ready (at the latest
	// 10 s after its start). It must not call Stop.
	OnChange func(*Child)
}

// A Child is one process under supervision, through all its replacements.
type Child struct {
	process Process

	mu       sync.Mutex
	current  *run
	restarts int
}

// NewSupervisor starts the guard, and ends what an earlier supervisor and its guard may have left in Dir when both were
// killed. There are no processes yet. It fails with [ErrGuardNotWired] in a program that
// does not call [GuardMain].
func NewSupervisor(options SupervisorOptions) (*Supervisor, error) {
	s := &Supervisor{options: options, say: printer(options.Out)}
	if options.Lock != "" {
		s.standing = append(s.standing, guardOrder{Lock: options.Lock})
	}
	if options.Temporary {
		s.standing = append(s.standing, guardOrder{Remove: options.Dir})
	}
	var err error
	if s.guard, err = startGuard(s.standing); err != nil {
		return nil, err
	}
	endLeftovers(filepath.Dir(s.recordPath("any")), s.say)
	s.restarting, s.cancel = context.WithCancel(context.Background())
	go s.keepGuard()
	return s, nil
}

// printer makes a function that writes whole lines to out, one at a time.
func printer(out io.Writer) func(string, ...any) {
	if out == nil {
		return func(string, ...any) {}
	}
	var mu sync.Mutex
	return func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(out, format+"\n", args...)
	}
}

// Start starts the processes side by side and returns when all are ready. They are one step of the order in which Stop
// works backwards. On an error, which holds the last lines that the failed process logged, none of them is left.
func (s *Supervisor) Start(ctx context.Context, processes ...Process) ([]*Child, error) {
	children := make([]*Child, 0, len(processes))
	undo := func(err error) ([]*Child, error) {
		for _, c := range slices.Backward(children) {
			c.current.stop(c.process)
		}
		return nil, err
	}
	for _, p := range processes {
		p = p.withDefaults()
		r, err := s.launch(p)
		if err != nil {
			return undo(err)
		}
		children = append(children, &Child{process: p, current: r})
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan error, len(children))
	for _, c := range children {
		go func() { answers <- c.awaitReady(waiting, c.current, c.process.ReadyWithin) }()
	}
	for range children {
		if err := <-answers; err != nil {
			return undo(err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return undo(errStopping)
	}
	s.steps = append(s.steps, children)
	for _, c := range children {
		s.keepers.Go(func() { s.keep(c) })
	}
	return children, nil
}

// RunOnce runs a process to its end, and fails if it fails. Ready and BeforeStart are for others.
func (s *Supervisor) RunOnce(ctx context.Context, p Process) error {
	p = p.withDefaults()
	r, err := s.launch(p)
	if err != nil {
		return err
	}
	select {
	case <-r.ended:
	case <-ctx.Done():
		r.stop(p)
		return fmt.Errorf("%s: %w", p.Name, context.Cause(ctx))
	}
	if r.result != nil {
		return r.failure(fmt.Errorf("%s failed: %s", p.Name, r.how()))
	}
	return nil
}

// Stop ends all processes, the last started first, and then the guard. It may be called again.
func (s *Supervisor) Stop() {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	s.cancel()
	s.keepers.Wait()
	for _, step := range slices.Backward(s.steps) {
		var ending sync.WaitGroup
		for _, c := range step {
			ending.Go(func() { c.running().stop(c.process) })
		}
		ending.Wait()
	}
	s.steps = nil
	s.guard.close()
}

// order gives the guard, and every later one, a standing order.
func (s *Supervisor) order(o guardOrder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.standing = append(s.standing, o)
	s.guard.send(o)
}

var errStopping = errors.New("the processes are being stopped")

// launch starts a process and lets the guard know.
func (s *Supervisor) launch(p Process) (*run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return nil, errStopping
	}
	r, err := p.start(s.guard, s.logPath(p.Name))
	if err != nil {
		return nil, err
	}
	begun := guarded{PID: r.pid, Stops: p.Stops}
	s.live = append(s.live, begun)
	s.guard.send(guardOrder{Started: &begun})
	go func() {
		<-r.ended
		s.mu.Lock()
		defer s.mu.Unlock()
		s.live = slices.DeleteFunc(s.live, func(g guarded) bool { return g.PID == r.pid })
		s.guard.send(guardOrder{Ended: r.pid})
	}()
	if err := keepRecord(s.recordPath(p.Name), r.pid, p.Stops); err != nil {
		s.say("%s runs, but a later start will not find it if all else fails: %v", p.Name, err)
	}
	return r, nil
}

func (s *Supervisor) logPath(name string) string {
	return filepath.Join(s.options.Dir, "log", name+".log")
}

func (s *Supervisor) recordPath(name string) string {
	return filepath.Join(s.options.Dir, "run", name)
}

// keep starts the child's process again whenever it ends, until Stop.
func (s *Supervisor) keep(c *Child) {
	for pause := restartPauseMin; ; pause = min(2*pause, restartPauseMax) {
		r := c.running()
		select {
		case <-r.ended:
		case <-s.restarting.Done():
			return
		}
		if time.Since(r.began) > healthyAfter {
			pause = restartPauseMin
		}
		s.say("%s (process %d) ended: %s; starting it again", c.process.Name, r.pid, r.how())
		next := s.relaunch(c.process, &pause)
		if next == nil {
			return
		}
		c.replace(next)
		switch err := c.awaitReady(s.restarting, next, changeWithin); {
		case err == nil:
			s.say("%s runs again as process %d", c.process.Name, next.pid)
		case errors.Is(err, errEnded), s.restarting.Err() != nil:
			continue
		default:
			s.say("%s runs again as process %d, but is not ready yet", c.process.Name, next.pid)
		}
		if s.options.OnChange != nil {
			s.options.OnChange(c)
		}
	}
}

// relaunch starts a process after the pause, which grows with each start that fails. Nil: Stop has begun.
func (s *Supervisor) relaunch(p Process, pause *time.Duration) *run {
	for {
		select {
		case <-time.After(*pause):
		case <-s.restarting.Done():
			return nil
		}
		r, err := s.launch(p)
		if err == nil {
			return r
		}
		if !errors.Is(err, errStopping) {
			s.say("%s cannot be started again yet: %v", p.Name, err)
		}
		*pause = min(2**pause, restartPauseMax)
	}
}

// keepGuard replaces a guard that was killed and tells the new one of all children.
func (s *Supervisor) keepGuard() {
	for {
		s.mu.Lock()
		old := s.guard
		s.mu.Unlock()
		select {
		case <-s.restarting.Done():
			return
		case <-old.done:
		}
		s.mu.Lock()
		if s.stopping {
			s.mu.Unlock()
			return
		}
		next, err := startGuard(s.standing)
		if err == nil {
			s.guard = next
			for _, g := range s.live {
				next.send(guardOrder{Started: &g})
			}
		}
		s.mu.Unlock()
		if err != nil {
			s.say("the guard process ended and cannot be replaced yet: %v", err)
			select {
			case <-s.restarting.Done():
				return
			case <-time.After(time.Second):
			}
		}
	}
}

// Name is the name of the child's [Process].
func (c *Child) Name() string { return c.process.Name }

// PID is the id of the child's present process, or of its last one while a new one is on its way.
func (c *Child) PID() int { return c.running().pid }

// Restarts counts how often the process was replaced.
func (c *Child) Restarts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.restarts
}

func (c *Child) running() *run {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

func (c *Child) replace(r *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current = r
	c.restarts++
}

// awaitReady waits until the child's process r is ready, for at most limit.
func (c *Child) awaitReady(ctx context.Context, r *run, limit time.Duration) error {
	if c.process.Ready == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not ready within %v", limit))
	defer cancel()
	err := await(ctx, c.process.Ready, r.ended)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errEnded):
		return r.failure(fmt.Errorf("%s: %w before it was ready: %s", c.process.Name, errEnded, r.how()))
	default:
		return r.failure(fmt.Errorf("%s: %w", c.process.Name, err))
	}
}
