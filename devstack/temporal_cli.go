package devstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/gofrs/flock"
)

// temporalCLI is the newest version that `go install` can build: later ones have a replace directive in go.mod. It
// holds Temporal server 1.29.1 and Web UI 2.42.1.
const temporalCLI = "github.com/temporalio/cli/cmd/temporal@v1.5.1"

// ErrNoTemporalCLI is returned when there is no Temporal CLI to run a dev server with.
var ErrNoTemporalCLI = errors.New("the Temporal CLI is neither on PATH nor in .bin: run `make .bin/temporal`, or set TEMPORAL_ADDRESS to a server that runs")

// FindTemporalCLI gives the path of the Temporal CLI: `temporal` on PATH, else .bin/temporal in the present folder or
// the nearest one above that has it, up to the root of the Go module.
func FindTemporalCLI() (string, error) {
	if path, err := exec.LookPath("temporal"); err == nil {
		return filepath.Abs(path)
	}
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the Temporal CLI: %w", err)
	}
	for {
		path, err := exec.LookPath(filepath.Join(folder, ".bin", "temporal"))
		if err == nil {
			return path, nil
		}
		_, err = os.Stat(filepath.Join(folder, "go.mod"))
		if above := filepath.Dir(folder); err != nil && above != folder {
			folder = above
			continue
		}
		return "", ErrNoTemporalCLI
	}
}

// BuildTemporalCLI builds the Temporal CLI into dir, unless it is there already, and gives its path. It needs the Go
// command and takes minutes the first time, which a line to out says.
func BuildTemporalCLI(ctx context.Context, dir string, out io.Writer) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the folder for the Temporal CLI: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the folder for the Temporal CLI: %w", err)
	}
	lock := flock.New(filepath.Join(dir, ".temporal.lock"))
	if err := lock.Lock(); err != nil {
		return "", fmt.Errorf("wait for another build of the Temporal CLI: %w", err)
	}
	defer lock.Close()
	path := filepath.Join(dir, "temporal")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	goCommand, err := exec.LookPath("go")
	if err != nil {
		return "", ErrNoTemporalCLI
	}
	printer(out)("building the Temporal CLI into %s with go install (4 to 10 minutes on 2 cores, once)", dir)
	cmd := exec.CommandContext(ctx, goCommand, "install", temporalCLI)
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=")
	if output, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the Temporal CLI (go install %s): %w:\n%s", temporalCLI, err, output)
	}
	return path, nil
}
