package devstack

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// environment is what a process is given, by name. A secret NAME may instead come from the file that NAME_FILE names.
type environment map[string]string

// newEnvironment reads NAME=value lines, of which the last for a name counts.
func newEnvironment(lines []string) environment {
	e := environment{}
	for _, line := range lines {
		if name, value, ok := strings.Cut(line, "="); ok {
			e[name] = value
		}
	}
	return e
}

// secret gives the value of NAME, or the contents of the file in NAME_FILE; empty if neither is set.
func (e environment) secret(name string) (string, error) {
	if e[name] != "" || e[name+"_FILE"] == "" {
		return e[name], nil
	}
	text, err := os.ReadFile(e[name+"_FILE"])
	if err != nil {
		return "", fmt.Errorf("read %s_FILE: %w", name, err)
	}
	return strings.TrimSpace(strings.TrimPrefix(string(text), "\uFEFF")), nil // Windows writes a byte order mark
}

// has reports whether NAME or NAME_FILE is set.
func (e environment) has(name string) bool { return e[name] != "" || e[name+"_FILE"] != "" }

// set sets NAME, and takes away a NAME_FILE that would contradict it.
func (e environment) set(name, value string) {
	e[name] = value
	delete(e, name+"_FILE")
}

// setDefault sets NAME unless it is set already, in either way.
func (e environment) setDefault(name, value string) {
	if !e.has(name) {
		e.set(name, value)
	}
}

// with is a copy with one more setting.
func (e environment) with(name, value string) environment {
	c := maps.Clone(e)
	c.set(name, value)
	return c
}

// lines gives the environment as a process takes it, sorted.
func (e environment) lines() []string {
	lines := make([]string, 0, len(e))
	for _, name := range slices.Sorted(maps.Keys(e)) {
		lines = append(lines, name+"="+e[name])
	}
	return lines
}

// keepFile writes a file that only its owner may read, whole or not at all.
func keepFile(path string, content []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(file.Name()) // fails when it was renamed into place, as it should
	if _, err := file.Write(content); err != nil {
		file.Close()
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return fmt.Errorf("put %s into place: %w", path, err)
	}
	return nil
}
