package rig

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Parts are all parts of a rig.
var Parts = []Part{PartAPI, PartWorkers, PartTemporal, PartPostgres, PartSimulator}

// clockTick is the unit of times in /proc: USER_HZ, which is 100 on every Linux that Go runs on.
const clockTick = time.Second / 100

// CPU is how much processor time each part has used since it was started, its children included. It is
// nil where the system does not tell by /proc.
func (r *Rig) CPU() map[Part]time.Duration {
	own, parents := map[int]time.Duration{}, map[int]int{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well formed
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		// The name, in brackets, may hold anything; the fields after it are numbered from 3 in proc(5).
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) < 15 {
			continue
		}
		number := func(field int) int {
			n, _ := strconv.Atoi(fields[field-3])
			return n
		}
		parents[pid] = number(4)
		own[pid] = time.Duration(number(14)+number(15)+number(16)+number(17)) * clockTick // user, system, and of children waited for
	}
	if len(own) == 0 {
		return nil
	}
	used := map[Part]time.Duration{}
	for _, part := range Parts {
		for _, root := range r.PIDs(part) {
			for pid := range own {
				if root == pid || root == parents[pid] {
					used[part] += own[pid]
				}
			}
		}
	}
	return used
}
