package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ClockShift names the setting by which a program of [BuildShifted] shows another time than the machine's: by how many
// seconds it is ahead. Timers and time-outs are not changed: they follow the monotonic clock, as on a machine whose clock
// is wrong.
const ClockShift = "TODOKU_RIG_CLOCK_SHIFT"

const (
	unshifted = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	shifted   = unshifted + "\tsec += shift\n"
	shiftFile = `package time

import "syscall"

// shift is how many seconds Now is ahead of the machine's clock.
var shift = func() (seconds int64) {
	text, _ := syscall.Getenv("` + ClockShift + `")
	sign := int64(1)
	for _, c := range text {
		if c == '-' {
			sign = -1
		} else {
			seconds = seconds*10 + int64(c-'0')
		}
	}
	return sign * seconds
}()
`
)

var errTimeChanged = errors.New("build a program with another clock: " +
	"package time of this version of Go is not as expected")

// BuildShifted builds todoku into a folder, with a package time that ClockShift shifts, and returns the program. All of
// the program is compiled anew, the first time.
func BuildShifted(ctx context.Context, folder string) (program string, err error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("build a program with another clock: find the source of Go: %w", err)
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	text, err := os.ReadFile(filepath.Join(source, "time.go"))
	if err != nil {
		return "", fmt.Errorf("build a program with another clock: %w", err)
	}
	if strings.Count(string(text), unshifted) != 1 {
		return "", errTimeChanged
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for name, content := range map[string]string{
		"time.go":  strings.Replace(string(text), unshifted, shifted, 1),
		"shift.go": shiftFile,
	} {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			return "", fmt.Errorf("build a program with another clock: %w", err)
		}
		overlay.Replace[filepath.Join(source, name)] = file
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		return "", fmt.Errorf("build a program with another clock: %w", err)
	}
	overlayFile := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(overlayFile, list, 0o644); err != nil {
		return "", fmt.Errorf("build a program with another clock: %w", err)
	}
	program = filepath.Join(folder, "todoku")
	build := exec.CommandContext(ctx, "go", "build", "-overlay", overlayFile, "-o", program, "github.com/todoku/todoku")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build a program with another clock: %w: %s", err, out)
	}
	return program, nil
}
