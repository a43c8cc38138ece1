package devstack

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func newSupervisor(t *testing.T, options SupervisorOptions) *Supervisor {
	t.Helper()
	if options.Dir == "" {
		options.Dir = t.TempDir()
	}
	options.Out = testWriter{t}
	s, err := NewSupervisor(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

func TestKilledProcessIsStartedAgain(t *testing.T) {
	changed := make(chan *Child, 1)
	s := newSupervisor(t, SupervisorOptions{OnChange: func(c *Child) { changed <- c }})
	children, err := s.Start(t.Context(), shell("sleeper", "exec sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	first := children[0].PID()
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c := <-changed
	if c.Name() != "sleeper" || c.PID() == first || c.Restarts() != 1 || !alive(c.PID()) {
		t.Errorf("after a kill: %s as %d (before: %d), %d restarts", c.Name(), c.PID(), first, c.Restarts())
	}
	s.Stop()
	if alive(c.PID()) {
		t.Error("the second process outlived Stop")
	}
}

func TestProcessThatKeepsEndingIsStartedAtGrowingPauses(t *testing.T) {
	dir := t.TempDir()
	s := newSupervisor(t, SupervisorOptions{Dir: dir})
	children, err := s.Start(t.Context(), shell("quitter", "echo again; exit 3"))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "four runs in the log", func() bool {
		log, err := os.ReadFile(filepath.Join(dir, "log", "quitter.log"))
		return err == nil && strings.Count(string(log), "again") >= 4
	})
	if children[0].Restarts() < 2 {
		t.Errorf("%d restarts", children[0].Restarts())
	}
}

func TestStopGoesBackwards(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "trace")
	s := newSupervisor(t, SupervisorOptions{})
	for _, name := range []string{"first", "second", "third"} {
		p := shell(name, fmt.Sprintf(`trap 'echo %s >> %s; exit' TERM; touch %[2]s.%[1]s; while :; do sleep 0.05; done`, name, trace))
		p.Ready = func(context.Context) error { _, err := os.Stat(trace + "." + name); return err }
		if _, err := s.Start(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	s.Stop()
	order, err := os.ReadFile(trace)
	if err != nil || string(order) != "third\nsecond\nfirst\n" {
		t.Errorf("order of stopping: %q, %v", order, err)
	}
}

func TestProcessThatIgnoresItsSignalIsKilled(t *testing.T) {
	s := newSupervisor(t, SupervisorOptions{})
	trapped := filepath.Join(t.TempDir(), "trapped")
	p := shell("stubborn", `trap '' TERM; touch `+trapped+`; while :; do sleep 0.05; done`)
	p.Ready = func(context.Context) error { _, err := os.Stat(trapped); return err }
	p.StopWithin = 100 * time.Millisecond
	children, err := s.Start(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if alive(children[0].PID()) {
		t.Error("it still runs")
	}
}

func TestProcessThatFailsToStartShowsItsLastLines(t *testing.T) {
	never := func(context.Context) error { return errors.New("not yet") }
	tests := []struct {
		name, script string
		within       time.Duration
		want         []string
	}{
		{"ends", "echo the disk is full; exit 4", 0, []string{"ended before it was ready", "exit status 4", "the disk is full"}},
		{"hangs", "echo waiting for the moon; exec sleep 1000", 500 * time.Millisecond, []string{"not ready within 500ms", "not yet", "waiting for the moon"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newSupervisor(t, SupervisorOptions{})
			p := shell(test.name, test.script)
			p.Ready, p.ReadyWithin = never, test.within
			_, err := s.Start(t.Context(), p)
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v lacks %q", err, want)
				}
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, g := range s.live {
				if alive(g.PID) {
					t.Errorf("process %d was left behind", g.PID)
				}
			}
		})
	}
}

func TestRunOnce(t *testing.T) {
	s := newSupervisor(t, SupervisorOptions{})
	if err := s.RunOnce(t.Context(), shell("fine", "exit 0")); err != nil {
		t.Error(err)
	}
	err := s.RunOnce(t.Context(), shell("broken", "echo column does not exist; exit 1"))
	if err == nil || !strings.Contains(err.Error(), "column does not exist") {
		t.Errorf("error of a failed run: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.RunOnce(ctx, shell("endless", "exec sleep 1000")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error of a run whose context ended: %v", err)
	}
}

func TestSupervisorNeedsItsGuardWired(t *testing.T) {
	guardWired.Store(false)
	defer guardWired.Store(true)
	if _, err := NewSupervisor(SupervisorOptions{Dir: t.TempDir()}); !errors.Is(err, ErrGuardNotWired) {
		t.Errorf("error without GuardMain: %v", err)
	}
}

// killedSupervisor starts scripts under a supervisor in a process of its own, kills that when due says so, and gives
// the folder that it used and the pids of its guard and scripts.
func killedSupervisor(t *testing.T, due func() bool, scripts ...string) (dir string, pids []int) {
	t.Helper()
	cmd := inRole(t, append([]string{"supervise"}, scripts...)...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	lines.Scan()
	dir = lines.Text()
	lines.Scan()
	for _, word := range strings.Fields(lines.Text()) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		if !alive(pid) {
			t.Errorf("process %d does not run before the kill", pid)
		}
		pids = append(pids, pid)
	}
	if len(pids) != len(scripts)+1 {
		t.Fatalf("pids: %v", pids)
	}
	eventually(t, "time to kill it", due)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	return dir, pids
}

func TestKilledSupervisorLeavesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "grandchild")
	var grandchild int
	dir, pids := killedSupervisor(t,
		func() bool {
			text, err := os.ReadFile(file)
			if err != nil {
				return false
			}
			grandchild, err = strconv.Atoi(strings.TrimSpace(string(text)))
			return err == nil
		},
		"exec sleep 1000",
		"trap '' TERM INT HUP; while :; do sleep 0.05; done",
		"sleep 1001 & echo $! > "+file+"; wait",
	)
	pids = append(pids, grandchild)
	for _, pid := range pids {
		eventually(t, fmt.Sprintf("end of process %d (%s)", pid, commandLine(pid)), func() bool { return !alive(pid) })
	}
	eventually(t, "end of the temporary folder", func() bool { _, err := os.Stat(dir); return os.IsNotExist(err) })
}

func TestKilledGuardIsReplaced(t *testing.T) {
	s := newSupervisor(t, SupervisorOptions{})
	children, err := s.Start(t.Context(), shell("sleeper", "exec sleep 1000"))
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	old := s.guard
	s.mu.Unlock()
	if err := syscall.Kill(old.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var replacement *guard
	eventually(t, "a new guard", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		replacement = s.guard
		return replacement != old
	})
	// The end of its orders, without a word about the children's, is what the new guard sees when we are killed.
	replacement.close()
	eventually(t, "the new guard ends the old child", func() bool { return !alive(children[0].PID()) || children[0].Restarts() > 0 })
}

func TestLeftoverOfAnEarlierStartIsEnded(t *testing.T) {
	dir := t.TempDir()
	leftover := exec.Command("/bin/sh", "-c", "exec sleep 1002")
	leftover.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := leftover.Start(); err != nil {
		t.Fatal(err)
	}
	go leftover.Wait()
	eventually(t, "the shell becomes sleep", func() bool { return commandLine(leftover.Process.Pid) == "sleep 1002" })
	if err := keepRecord(filepath.Join(dir, "run", "sleeper"), leftover.Process.Pid, []syscall.Signal{syscall.SIGTERM}); err != nil {
		t.Fatal(err)
	}
	newSupervisor(t, SupervisorOptions{Dir: dir})
	if alive(leftover.Process.Pid) {
		t.Error("the leftover still runs")
	}
}

func TestProcessThatTookOverARecordedPIDIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	other := exec.Command("/bin/sh", "-c", "exec sleep 1003")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer other.Wait()
	defer other.Process.Kill()
	path := filepath.Join(dir, "run", "sleeper")
	if err := keepRecord(path, other.Process.Pid, nil); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(record{PID: other.Process.Pid, Command: "some other command"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	newSupervisor(t, SupervisorOptions{Dir: dir})
	if !alive(other.Process.Pid) {
		t.Error("it was ended")
	}
}

func TestFullLogIsSetAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log", "api.log")
	file, begin, err := openLog(path)
	if err != nil || begin != 0 {
		t.Fatal(begin, err)
	}
	if err := file.Truncate(logLimit + 1); err != nil {
		t.Fatal(err)
	}
	file.Close()
	file, begin, err = openLog(path)
	if err != nil || begin != 0 {
		t.Fatal(begin, err)
	}
	file.Close()
	if info, err := os.Stat(path + ".1"); err != nil || info.Size() != logLimit+1 {
		t.Errorf("the full log: %v, %v", info, err)
	}
}
