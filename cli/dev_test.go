package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/todoku/todoku/devstack"
)

// TestFirstSends is what a newcomer does: start everything, send an SMS and a call, and look at what
// became of them; then stop it.
func TestFirstSends(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts the whole product")
	}
	temporal, err := devstack.FindTemporalCLI()
	if err != nil {
		t.Skip(err)
	}
	term := newTerminal(t)
	readyFile := filepath.Join(t.TempDir(), "ready.json")
	dev := program(t, nil, "dev", "--ephemeral", "--ready-file", readyFile)
	dev.Env = append(dev.Env, "PATH="+filepath.Dir(temporal)+string(filepath.ListSeparator)+os.Getenv("PATH"))
	dev.Cancel = func() error { return dev.Process.Signal(syscall.SIGTERM) }
	var output bytes.Buffer
	dev.Stdout, dev.Stderr = &output, &output
	if err := dev.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- dev.Wait() }()
	ready := awaitReady(t, readyFile, ended, &output)

	t.Setenv("TODOKU_URL", ready.API)
	t.Setenv("TODOKU_API_KEY", ready.APIKey)
	for _, channel := range []string{"sms", "call"} {
		var sent struct{ ID, Status string }
		out := term.succeeds("send", channel, "--to", "090-1234-5678", "--body", "ご予約は明日10時です。", "--wait", "--json")
		if err := json.Unmarshal([]byte(out), &sent); err != nil || sent.Status != "SUCCESS" {
			t.Errorf("send %s ends as %+v, %v", channel, sent, err)
		}
		shown := term.succeeds("notification", "show", sent.ID, "--events")
		for _, part := range []string{"SUCCESS (Twilio: ", "*********5678", ready.TemporalUI, "(create)", "(webhook)"} {
			if !strings.Contains(shown, part) {
				t.Errorf("want %q in\n%s", part, shown)
			}
		}
	}
	if out := term.succeeds("sender", "list"); strings.Count(out, "running") != 2 {
		t.Errorf("the senders are\n%s", out)
	}

	if err := dev.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("after Ctrl-C it ends with %v:\n%s", err, output.String())
	}
	for _, pid := range append(ready.PIDs.Workers, ready.PIDs.API, ready.PIDs.Simulator, ready.PIDs.Temporal, ready.PIDs.Postgres) {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d is still there", pid)
		}
	}
}

// awaitReady waits for the ready file, or fails with what `todoku dev` printed when that ends first.
func awaitReady(t *testing.T, path string, ended <-chan error, output *bytes.Buffer) (ready devstack.Ready) {
	t.Helper()
	for {
		text, err := os.ReadFile(path)
		if err == nil {
			if err := json.Unmarshal(text, &ready); err != nil {
				t.Fatal(err)
			}
			return ready
		}
		select {
		case err := <-ended:
			t.Fatalf("todoku dev ended: %v:\n%s", err, output.String())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
