package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// measurePackages runs the benchmarks that stand beside the packages' tests.
func (s sizes) measurePackages(ctx context.Context, report *Report) error {
	if !s.packages {
		return nil
	}
	packages, err := packagesWithBenchmarks(".")
	if err != nil || len(packages) == 0 {
		return err
	}
	say("running the benchmarks of %s", strings.Join(packages, ", "))
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-run", "^$", "-bench", ".", "-benchmem"}, packages...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("run the packages' benchmarks: %w\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "Benchmark") || strings.HasPrefix(line, "pkg:") {
			report.packages += line
		}
	}
	return nil
}

// packagesWithBenchmarks finds them by their sources, so that no other test program is built.
func packagesWithBenchmarks(root string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), ".") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(path)
		if bytes.Contains(source, []byte("\nfunc Benchmark")) {
			found = append(found, "./"+filepath.ToSlash(filepath.Dir(path)))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for benchmarks: %w", err)
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}
