package devstack

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// unprivilegedUser is whom to run Postgres as when we are root, because Postgres refuses to run as root.
type unprivilegedUser struct {
	name     string
	uid, gid uint32
}

// findUnprivilegedUser gives nil when we are not root, for then we can run Postgres ourselves.
func findUnprivilegedUser() (*unprivilegedUser, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(found.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(found.Gid, 10, 32)
		if uidErr == nil && gidErr == nil && uid != 0 {
			return &unprivilegedUser{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("Postgres does not run as root, and there is no user postgres or nobody to run it as: add one, or run this as another user")
}

func (u *unprivilegedUser) credential() *syscall.Credential {
	return &syscall.Credential{Uid: u.uid, Gid: u.gid}
}

// can asks test(1), as the user, about a path: 'x' for a folder or program that it can enter or run, 'w' for one that
// it can write. Only the kernel knows for sure: parents, access lists and read-only mounts all have a say.
func (u *unprivilegedUser) can(what byte, path string) bool {
	cmd := exec.Command("/bin/sh", "-c", `test -`+string(what)+` "$0"`, path)
	cmd.Dir = "/"
	if u != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: u.credential()}
	}
	return cmd.Run() == nil
}

// own makes path the user's, and nobody else's.
func (u *unprivilegedUser) own(path string, mode os.FileMode) error {
	if u != nil {
		if err := os.Lchown(path, int(u.uid), int(u.gid)); err != nil {
			return fmt.Errorf("give %s to user %s: %w", path, u.name, err)
		}
	}
	if err := os.Chmod(path, mode); err != nil {
		return fmt.Errorf("protect %s: %w", path, err)
	}
	return nil
}
