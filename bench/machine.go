package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"github.com/todoku/todoku/devstack"
)

// machine is what the figures depend on.
type machine struct {
	cores    int
	cpu      string
	memory   string
	versions []string
	load     float64 // over the minute before the run: what else the machine had to do
}

func (m machine) String() string {
	text := fmt.Sprintf("%d cores (%s), %s of memory, %s.", m.cores, m.cpu, m.memory, strings.Join(m.versions, ", "))
	if m.load > 0.5 {
		text += fmt.Sprintf(" The machine was not idle before the run (load average %.1f), so the ratios say more than the rates.", m.load)
	}
	return text
}

func thisMachine(ctx context.Context) machine {
	m := machine{
		cores:  runtime.NumCPU(),
		cpu:    cmp.Or(field("/proc/cpuinfo", "model name"), run(ctx, "sysctl", "-n", "machdep.cpu.brand_string"), "unknown CPU"),
		memory: "an unknown amount",
	}
	kilobytes, _, _ := strings.Cut(field("/proc/meminfo", "MemTotal"), " ")
	if n, err := strconv.ParseFloat(kilobytes, 64); err == nil {
		m.memory = fmt.Sprintf("%.0f GB", n/(1<<20))
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		first, _, _ := strings.Cut(string(text), " ")
		m.load, _ = strconv.ParseFloat(first, 64) // 0 when it cannot be read: nothing is said of it then
	}
	m.versions = []string{runtime.GOOS + "/" + runtime.GOARCH, runtime.Version()}
	temporal, err := devstack.FindTemporalCLI()
	if err != nil {
		temporal = "temporal"
	}
	for _, of := range []struct{ name, program, pattern string }{
		{"Temporal", temporal, `Server (\d+\.\d+\.\d+)`},
		{"Node", "node", `v(\d+\.\d+\.\d+)`},
		{"Redis", "redis-server", `v=(\d+\.\d+\.\d+)`},
	} {
		if found := regexp.MustCompile(of.pattern).FindStringSubmatch(run(ctx, of.program, "--version")); found != nil {
			m.versions = append(m.versions, of.name+" "+found[1])
		}
	}
	return m
}

// field reads the value of a line NAME: VALUE; empty where there is none.
func field(path, name string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		key, value, found := strings.Cut(lines.Text(), ":")
		if found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// run returns what a program prints; empty when it cannot be run.
func run(ctx context.Context, program string, args ...string) string {
	out, err := exec.CommandContext(ctx, program, args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
