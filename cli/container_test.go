package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/todoku/todoku/devstack/devstacktest"
)

// unprivileged is the user of the image.
const unprivileged = 65532

// TestStaticBinaryAcceptsABatchInAnEmptyRoot runs the binary as the image does: alone in a root that it cannot
// write, as a user without a name or a home.
func TestStaticBinaryAcceptsABatchInAnEmptyRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("skipped: only root may change the root of a process")
	}
	t.Parallel()
	root := emptyRoot(t)
	binary := filepath.Join(root, "todoku")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", binary, "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the binary: %v\n%s", err, said)
	}
	address := freeAddress(t)
	start := func(errOut io.Writer) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "/todoku", "api")
		cmd.Dir = "/"
		cmd.Env = append([]string{
			"DATABASE_URL=" + devstacktest.Ledger(t), testHashKey, "TODOKU_ADDR=" + address, "TODOKU_API_KEY=" + testKey,
		}, testTwilio...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.Stdout, cmd.Stderr = errOut, errOut
		return cmd
	}

	var said bytes.Buffer
	refusing := start(&said)
	if err := refusing.Start(); err != nil {
		t.Fatal(err)
	}
	stop := time.AfterFunc(time.Minute, func() { _ = refusing.Process.Kill() }) // a process that starts is the failure
	defer stop.Stop()
	if err := refusing.Wait(); err == nil || strings.Count(said.String(), "\n") != 1 || !strings.Contains(said.String(), "TMPDIR") {
		t.Errorf("without a temporary folder it ends with %v and says %q", err, said.String())
	}

	folder := filepath.Join(root, "tmp") // as the image has it
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	said.Reset()
	cmd := start(&said)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	awaitAnswer(t, "http://"+address+"/healthz", ended, &said)
	for _, upload := range []struct {
		path, mediaType, body string
		status                int
	}{
		{"/batches?channel=SMS&body=hello", "text/csv", "to\n090-1234-5678\n", http.StatusAccepted},
		{"/batches", "application/json", `{"channel":"SMS","body":"hello","recipients":[{"to":"090-1234-5678"}]}`, http.StatusAccepted},
		{"/lists", "application/json", `{"name":"patients","members":[{"to":"090-1234-5678"}]}`, http.StatusCreated},
		{"/lists/1/members", "text/csv", "to\n090-1234-5679\n", http.StatusOK},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/api/v1"+upload.path, strings.NewReader(upload.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+testKey)
		request.Header.Set("Content-Type", upload.mediaType)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		var answer json.RawMessage
		_ = json.NewDecoder(response.Body).Decode(&answer) // shown below
		response.Body.Close()
		if response.StatusCode != upload.status {
			t.Errorf("POST %s as %s answers %d, want %d: %s", upload.path, upload.mediaType, response.StatusCode, upload.status, answer)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("it stops with %v:\n%s", err, said.String())
	}
}

// emptyRoot is a folder that only root can write, and that an unprivileged user can reach once it is its root.
func emptyRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// awaitAnswer waits until an address answers 200, or fails with what the process said when that ends first.
func awaitAnswer(t *testing.T, url string, ended <-chan error, said fmt.Stringer) {
	t.Helper()
	for {
		response, err := http.Get(url)
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case err := <-ended:
			t.Fatalf("it ended with %v:\n%s", err, said)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
