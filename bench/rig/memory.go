package rig

import (
	"fmt"
	"os"
	"strings"
)

// Memory is how many bytes of memory the largest process of a part holds, now and at most since
// ForgetPeaks. Both are 0 where the system does not tell by /proc.
func (r *Rig) Memory(part Part) (now, peak int64) {
	for _, pid := range r.PIDs(part) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue // it has ended
		}
		now = max(now, kilobytes(string(text), "VmRSS:"))
		peak = max(peak, kilobytes(string(text), "VmHWM:"))
	}
	return now, peak
}

// kilobytes reads a line of /proc/PID/status, in bytes; 0 where it is not there.
func kilobytes(status, name string) (bytes int64) {
	for line := range strings.Lines(status) {
		if value, found := strings.CutPrefix(line, name); found {
			_, _ = fmt.Sscan(value, &bytes)
		}
	}
	return bytes << 10
}

// ForgetPeaks lets the peaks of a part's memory begin with what it holds now.
func (r *Rig) ForgetPeaks(part Part) {
	for _, pid := range r.PIDs(part) {
		// As proc(5) tells. Where it cannot be done, the peak is that since the start.
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
	}
}
