package devstack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
)

// lockFolder makes sure that no other stack runs in dir. The lock ends with this process, whatever ends it.
func lockFolder(dir string) (*flock.Flock, error) {
	path := filepath.Join(dir, "lock")
	lock := flock.New(path, flock.SetPermissions(0o600))
	locked, err := lock.TryLock()
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%s belongs to another user: run as that user, or remove it", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if !locked {
		holder, _ := os.ReadFile(path) // only to say more
		return nil, fmt.Errorf("todoku dev runs in %s already (process %s): stop that one first", dir, strings.TrimSpace(string(holder)))
	}
	if err := os.WriteFile(path, fmt.Appendln(nil, os.Getpid()), 0o600); err != nil {
		lock.Close()
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return lock, nil
}
