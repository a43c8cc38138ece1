package devstack

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// endProcess sends pid each of the signals in turn, and SIGKILL at last, until gone says that it has ended; within is
// the time that each signal is given to work. gone waits at most as long as it is told.
func endProcess(pid int, signals []syscall.Signal, within time.Duration, gone func(limit time.Duration) bool) {
	for _, sig := range signals {
		if syscall.Kill(pid, sig) != nil || gone(within) {
			return
		}
	}
	_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself just now
	gone(within)
}

// waitGone waits until the process, which need not be a child of ours, has ended.
func waitGone(pid int, limit time.Duration) bool {
	for deadline := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		if !alive(pid) {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

// alive reports whether a process runs; a zombie, which only waits for its parent to read its state, does not.
func alive(pid int) bool {
	if err := syscall.Kill(pid, 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return runtime.GOOS != "linux" || !errors.Is(err, os.ErrNotExist)
	}
	// "PID (NAME) STATE …", and NAME may hold anything: proc_pid_stat(5).
	_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')'):], []byte(") "))
	return !bytes.HasPrefix(state, []byte("Z")) && !bytes.HasPrefix(state, []byte("X"))
}

// commandLine is the command line of a running process, its words joined by spaces; empty if there is none such.
func commandLine(pid int) string {
	if runtime.GOOS == "linux" {
		raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if err != nil {
			return ""
		}
		return string(bytes.ReplaceAll(bytes.TrimRight(raw, "\x00"), []byte{0}, []byte{' '}))
	}
	out, err := exec.Command("ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
