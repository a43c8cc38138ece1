package devstack

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// A Process says how to run a program that is to be kept running.
type Process struct {
	Name string   // unique within the supervisor; names the log
	Path string   // the program
	Args []string // without the program's name
	Env  []string // nil: the supervisor's own
	Dir  string   // working folder; empty: the supervisor's own

	// Ready is asked until it says yes. Nil: a process that has started is ready.
	Ready Probe
	// ReadyWithin limits the wait for Ready; 60 s if 0.
	ReadyWithin time.Duration

	// Stops are the signals that ask it to end, one after the other; SIGTERM if empty. SIGKILL comes last by itself.
	Stops []syscall.Signal
	// StopWithin is how long each signal is given to work; 10 s if 0.
	StopWithin time.Duration

	// BeforeStart, if set, runs before each start, the first and every later one.
	BeforeStart func() error

	// user is whom to run it as; nil: as ourselves.
	user *unprivilegedUser
}

var errEnded = errors.New("the process ended")

func (p Process) withDefaults() Process {
	if p.ReadyWithin == 0 {
		p.ReadyWithin = 60 * time.Second
	}
	if p.StopWithin == 0 {
		p.StopWithin = 10 * time.Second
	}
	if len(p.Stops) == 0 {
		p.Stops = []syscall.Signal{syscall.SIGTERM}
	}
	return p
}

// run is one running instance of a Process.
type run struct {
	pid      int
	began    time.Time
	logPath  string
	logBegin int64
	ended    chan struct{} // closed when it has ended and been reaped
	result   error         // set before ended is closed
}

// start runs the process in the guard's group.
func (p Process) start(g *guard, logPath string) (*run, error) {
	if p.BeforeStart != nil {
		if err := p.BeforeStart(); err != nil {
			return nil, err
		}
	}
	log, begin, err := openLog(logPath)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Env, cmd.Dir = p.Env, p.Dir
	cmd.Stdout, cmd.Stderr = log, log // files, not pipes: what a process logs survives us and never blocks it
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: g.pid}
	if p.user != nil {
		cmd.SysProcAttr.Credential = p.user.credential()
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.Name, err)
	}
	r := &run{pid: cmd.Process.Pid, began: time.Now(), logPath: logPath, logBegin: begin, ended: make(chan struct{})}
	go func() {
		r.result = cmd.Wait()
		close(r.ended)
	}()
	return r, nil
}

// stop asks the process to end, makes it end, and returns when it has.
func (r *run) stop(p Process) {
	endProcess(r.pid, p.Stops, p.StopWithin, func(limit time.Duration) bool {
		select {
		case <-r.ended:
			return true
		case <-time.After(limit):
			return false
		}
	})
	<-r.ended
}

// how says how an ended process ended.
func (r *run) how() string {
	var exit *exec.ExitError
	switch {
	case r.result == nil:
		return "exit status 0"
	case errors.As(r.result, &exit):
		return exit.Error()
	default:
		return r.result.Error()
	}
}

// failure adds to an error what a person needs next: the last lines logged and where the rest is.
func (r *run) failure(err error) error {
	lines := lastLines(r.logPath, r.logBegin)
	if _, statErr := os.Stat(r.logPath); statErr != nil || lines == "" {
		return err
	}
	return fmt.Errorf("%w; the end of %s:%s", err, r.logPath, lines)
}
