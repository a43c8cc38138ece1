package devstack

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// The guard is a second process of this very program. It holds the reading end of a pipe whose writing end only the
// supervisor has, so it learns of the supervisor's death from the kernel, however that came about, and ends what the
// supervisor left behind. All children live in the guard's process group from before their first instruction, which
// makes that complete even for a child of which the guard has not been told yet, and keeps Ctrl-C on a terminal from
// reaching them ahead of the orderly stop.

const (
	// guardVariable, when set, tells GuardMain that this process is a guard.
	guardVariable = "TODOKU_DEVSTACK_GUARD"
	// guardPatience is how long a new guard waits for the guard of a killed predecessor to finish its cleaning.
	guardPatience = 20 * time.Second
	// guardGrace is what the guard grants a process after each signal before it goes on to the next.
	guardGrace = time.Second
)

var guardWired atomic.Bool

// ErrGuardNotWired is returned when a supervisor is made in a program that does not call [GuardMain].
var ErrGuardNotWired = errors.New("devstack: GuardMain must be the first call in main (in tests: devstacktest.Main in TestMain), " +
	"or processes would outlive a killed supervisor")

// GuardMain must be the first call in the main function of every program that uses this package; tests call
// devstacktest.Main instead. In the one process that the package has started as its guard it does the guard's work and
// does not return; everywhere else it only notes that it was called.
func GuardMain() {
	if os.Getenv(guardVariable) == "" {
		guardWired.Store(true)
		return
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	if err := watchSupervisor(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// guardOrder is one line from the supervisor to its guard; exactly one field is set.
type guardOrder struct {
	Lock    string   `json:"lock,omitempty"`    // hold this lock file for as long as you live
	Retract string   `json:"retract,omitempty"` // remove this file, which says that all is well, as soon as orders end
	Remove  string   `json:"remove,omitempty"`  // remove this folder when every process has ended
	Started *guarded `json:"started,omitempty"` // a child began
	Ended   int      `json:"ended,omitempty"`   // a child ended and was reaped: its pid may soon be another's
	Begin   bool     `json:"begin,omitempty"`   // answer with one line when the orders so far are carried out
}

// guarded is a child as the guard knows it.
type guarded struct {
	PID   int              `json:"pid"`
	Stops []syscall.Signal `json:"stops"`
}

// watchSupervisor is the guard's life: it follows orders until they end, which is when the supervisor is gone or has
// stopped everything itself, and ends what is left, the youngest first.
func watchSupervisor(orders io.Reader, answers io.Writer) error {
	var children []guarded
	var files, folders []string
	for decoder := json.NewDecoder(orders); ; {
		var order guardOrder
		if err := decoder.Decode(&order); err != nil {
			break
		}
		switch {
		case order.Lock != "":
			lock := flock.New(order.Lock)
			defer lock.Close()
			ctx, cancel := context.WithTimeout(context.Background(), guardPatience)
			_, err := lock.TryLockContext(ctx, 20*time.Millisecond)
			cancel()
			if err != nil {
				return fmt.Errorf("processes of an earlier start still hold %s: %w", order.Lock, err)
			}
		case order.Retract != "":
			files = append(files, order.Retract)
		case order.Remove != "":
			folders = append(folders, order.Remove)
		case order.Started != nil:
			children = append(children, *order.Started)
		case order.Ended != 0:
			children = slices.DeleteFunc(children, func(c guarded) bool { return c.PID == order.Ended })
		case order.Begin:
			if _, err := fmt.Fprintln(answers, "watching"); err != nil {
				return err
			}
		}
	}
	for _, file := range files {
		_ = os.Remove(file) // nobody is left to tell
	}
	for _, child := range slices.Backward(children) {
		endProcess(child.PID, child.Stops, guardGrace, func(limit time.Duration) bool { return waitGone(child.PID, limit) })
	}
	for _, folder := range folders {
		_ = os.RemoveAll(folder)
	}
	return killOwnGroup()
}

// killOwnGroup ends every process of this process group and with them the caller.
func killOwnGroup() error {
	if syscall.Getpgrp() != os.Getpid() {
		return nil // not the leader: the group is somebody else's
	}
	return syscall.Kill(0, syscall.SIGKILL)
}

// guard is the supervisor's side.
type guard struct {
	pid  int
	done chan struct{} // closed when the guard's process has ended

	mu     sync.Mutex
	orders *os.File
}

// startGuard starts a guard and returns when it has carried out its first orders.
func startGuard(orders []guardOrder) (*guard, error) {
	if !guardWired.Load() {
		return nil, ErrGuardNotWired
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program to run its guard: %w", err)
	}
	if runtime.GOOS == "linux" {
		program = "/proc/self/exe" // also right when the file was rebuilt or removed since we started
	}
	ordersRead, ordersWrite, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the guard's pipe: %w", err)
	}
	defer ordersRead.Close()
	answersRead, answersWrite, err := os.Pipe()
	if err != nil {
		ordersWrite.Close()
		return nil, fmt.Errorf("make the guard's pipe: %w", err)
	}
	defer answersRead.Close()
	defer answersWrite.Close()
	cmd := &exec.Cmd{
		Path:        program,
		Args:        []string{"devstack-guard"},
		Env:         append(os.Environ(), guardVariable+"=1"),
		Stdin:       ordersRead,
		Stdout:      answersWrite,
		Stderr:      answersWrite,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	if err := cmd.Start(); err != nil {
		ordersWrite.Close()
		return nil, fmt.Errorf("start the guard process: %w", err)
	}
	answersWrite.Close()
	g := &guard{pid: cmd.Process.Pid, done: make(chan struct{}), orders: ordersWrite}
	go func() {
		_ = cmd.Wait() // it ends by its own SIGKILL: the state says nothing
		close(g.done)
	}()
	for _, order := range orders {
		g.send(order)
	}
	g.send(guardOrder{Begin: true})
	_ = answersRead.SetReadDeadline(time.Now().Add(guardPatience + 10*time.Second))
	answer, err := bufio.NewReader(answersRead).ReadString('\n')
	if answer != "watching\n" {
		g.close()
		if answer != "" {
			return nil, fmt.Errorf("guard process: %s", answer)
		}
		return nil, fmt.Errorf("the guard process does not answer: %w", err)
	}
	return g, nil
}

// send gives the guard an order. A guard that is gone does not matter here: its successor is told everything again.
func (g *guard) send(order guardOrder) {
	line, err := json.Marshal(order)
	if err != nil {
		panic(err) // a struct of strings and numbers
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.orders.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = g.orders.Write(append(line, '\n'))
}

// close lets the guard finish and waits for that.
func (g *guard) close() {
	g.mu.Lock()
	g.orders.Close()
	g.mu.Unlock()
	<-g.done
}
