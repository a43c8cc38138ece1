package devstack

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// A record of each child lies beside the logs, so that a start after the unlikely (supervisor and guard killed at once,
// as `pkill -9 -f` does) finds what still runs there: two Temporals on one file, or two Postgres in one folder, would
// be worse than none.
type record struct {
	PID     int              `json:"pid"`
	Command string           `json:"command"`
	Stops   []syscall.Signal `json:"stops"`
	Began   time.Time        `json:"began"`
}

// keepRecord records that a process runs under the name that path ends in.
func keepRecord(path string, pid int, stops []syscall.Signal) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make the folder of process records: %w", err)
	}
	text, err := json.Marshal(record{PID: pid, Command: commandLine(pid), Stops: stops, Began: time.Now()})
	if err != nil {
		return fmt.Errorf("record process %d: %w", pid, err)
	}
	return keepFile(path, text)
}

// endLeftovers ends the processes that an earlier start recorded in folder, the youngest first, if they still run and
// are still the same commands: a pid alone may have become another program's.
func endLeftovers(folder string, say func(string, ...any)) {
	paths, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		return // a folder whose name is no pattern was not made by us
	}
	type named struct {
		record
		name string
	}
	var left []named
	for _, path := range paths {
		r := named{name: filepath.Base(path)}
		if text, err := os.ReadFile(path); err == nil && json.Unmarshal(text, &r.record) == nil {
			left = append(left, r)
		}
		_ = os.Remove(path) // the next process of that name writes it anew
	}
	slices.SortFunc(left, func(a, b named) int { return b.Began.Compare(a.Began) })
	for _, r := range left {
		if r.PID <= 1 || r.Command == "" || !alive(r.PID) || commandLine(r.PID) != r.Command {
			continue
		}
		endProcess(r.PID, r.Stops, 5*time.Second, func(limit time.Duration) bool { return waitGone(r.PID, limit) })
		say("%s of an earlier start was still running: ended process %d", r.name, r.PID)
	}
}
