package chaos

import (
	"bytes"
	"context"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/todoku/todoku/bench/rig"
)

var (
	kills   = flag.Int("kills", 6, "how many processes each random run kills")
	singles = flag.Int("singles", 300, "how many notifications the random run of singles sends")
	batch   = flag.Int("batch", 500, "how many recipients the batch of the other random run has")
	seed    = flag.Uint64("seed", 0, "choose the random run's kills by this number; 0: by the clock")
	long    = flag.Bool("long", false, "let outages last as long as they do in earnest")
)

func TestMain(m *testing.M) { rig.TestMain(m) }

// impatient settings make the product's waits short, and its paces no hindrance.
var impatient = map[string]string{
	"SMS_SEND_INTERVAL":  "0s",
	"CALL_SEND_INTERVAL": "100ms",
	"AMBIGUITY_WINDOW":   "3s",
	"STATUS_CHECK_DELAY": "5s",

	"INBOUND_FOLLOW_UPS_PER_HOUR": "0",
}

// start runs the product with two workers until the test ends. The settings given take the place of
// the impatient ones.
func start(t *testing.T, settings map[string]string) *rig.Rig {
	t.Helper()
	return startWith(t, rig.Options{Settings: settings})
}

// startWith is start with more options.
func startWith(t *testing.T, options rig.Options) *rig.Rig {
	t.Helper()
	all := maps.Clone(impatient)
	maps.Copy(all, options.Settings)
	races := filepath.Join(t.TempDir(), "race")
	all["GORACE"] = "log_path=" + races // heeded by processes that were built with the race detector
	out := &lines{t: t}
	options.Workers, options.Settings, options.Out = 2, all, out
	r, err := rig.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	out.started.Store(true)
	t.Cleanup(func() {
		r.Stop()
		found, _ := filepath.Glob(races + ".*") // the pattern is well formed
		for _, file := range found {
			text, _ := os.ReadFile(file)
			t.Errorf("a data race in a process of the rig:\n%s", text)
		}
	})
	return r
}

// lines logs what the rig says while the test runs: which process ended and which took its place. One
// that ended by itself may have missed the database; one that panicked fails the test.
type lines struct {
	t       *testing.T
	started atomic.Bool
}

func (l *lines) Write(text []byte) (int, error) {
	if l.started.Load() && l.t.Context().Err() == nil {
		l.t.Logf("%s", bytes.TrimSpace(text))
		if bytes.Contains(text, []byte("exit status 2;")) {
			l.t.Error("a process panicked")
		}
	}
	return len(text), nil
}

// accept sends requests one after the other and fails the test when one is not accepted.
func accept(t *testing.T, r *rig.Rig, requests ...rig.Request) []rig.Accepted {
	t.Helper()
	var all []rig.Accepted
	for _, request := range requests {
		accepted, err := r.API.Send(t.Context(), request)
		if err != nil {
			t.Fatalf("send to %d: %v", len(all), err)
		}
		all = append(all, accepted)
	}
	return all
}

// await waits until a condition holds, and fails the test when it does not within the limit. The
// error of a condition only matters at the end: what is asked may be down.
func await(t *testing.T, limit time.Duration, what string, holds func(context.Context) (bool, error)) {
	t.Helper()
	var err error
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		var held bool
		if held, err = holds(t.Context()); held {
			return
		}
	}
	t.Fatalf("waited %v in vain until %s (last error: %v)", limit, what, err)
}
