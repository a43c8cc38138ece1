package devstack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// testEnv is our environment without settings of the product that the machine may have, and with those given.
func testEnv(settings ...string) []string {
	env := slices.DeleteFunc(os.Environ(), func(line string) bool {
		return strings.HasPrefix(line, "TODOKU_") || strings.HasPrefix(line, "TWILIO_") || strings.HasPrefix(line, "TEMPORAL_") ||
			strings.HasPrefix(line, "DATABASE_URL") || strings.HasPrefix(line, "PHONE_HASH_KEY")
	})
	// Under the race detector a program that ends sleeps for a second first, unless told not to.
	return append(append(env, roleVariable+"=1", "GORACE=atexit_sleep_ms=0"), settings...)
}

// devProcess is `todoku dev` in a process of its own.
type devProcess struct {
	cmd       *exec.Cmd
	readyFile string
	logFile   string
	ended     chan struct{} // closed when it has ended
	result    error         // set before ended is closed
}

// startDev runs one in dir, with its ready file there; an empty dir makes it ephemeral.
func startDev(t *testing.T, dir string) *devProcess {
	t.Helper()
	own := t.TempDir()
	d := &devProcess{readyFile: filepath.Join(dir, "ready.json"), logFile: filepath.Join(own, "output"), ended: make(chan struct{})}
	if dir == "" {
		d.readyFile = filepath.Join(own, "ready.json")
	}
	log, err := os.Create(d.logFile)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	d.cmd = inRole(t, "dev", dir, d.readyFile)
	d.cmd.Env = testEnv()
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		d.result = d.cmd.Wait()
		close(d.ended)
	}()
	t.Cleanup(func() {
		_ = d.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		<-d.ended
	})
	return d
}

// output is what it has printed so far.
func (d *devProcess) output(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(d.logFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// ready waits for the ready file to be what is looked for.
func (d *devProcess) ready(t *testing.T, holds func(Ready) bool) Ready {
	t.Helper()
	var r Ready
	eventually(t, "the ready file", func() bool {
		select {
		case <-d.ended:
			t.Fatalf("ended: %v\n%s", d.result, d.output(t))
		default:
		}
		text, err := os.ReadFile(d.readyFile)
		return err == nil && json.Unmarshal(text, &r) == nil && holds(r)
	})
	return r
}

func isReady(r Ready) bool { return r.API != "" }

func (p PIDs) all() []int {
	return append([]int{p.Postgres, p.Temporal, p.Simulator, p.API}, p.Workers...)
}

// settingsOf asks one of the stand-ins for the settings that it runs with.
func settingsOf(t *testing.T, url string) environment {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var e environment
	if err := json.NewDecoder(response.Body).Decode(&e); err != nil {
		t.Fatal(err)
	}
	return e
}

func (d *devProcess) stop(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := d.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	select {
	case <-d.ended:
		if sig == syscall.SIGINT && d.result != nil {
			t.Errorf("todoku dev: %v\n%s", d.result, d.output(t))
		}
	case <-time.After(time.Minute):
		t.Fatalf("todoku dev does not end after %v", sig)
	}
}

func allGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		eventually(t, fmt.Sprintf("end of process %d (%s)", pid, commandLine(pid)), func() bool { return !alive(pid) })
	}
}

func TestStackLivesThroughKillsAndRestarts(t *testing.T) {
	dir := openTempDir(t)
	first := startDev(t, dir)
	r := first.ready(t, isReady)

	settings := settingsOf(t, r.API)
	for name, want := range map[string]string{
		"DATABASE_URL":           r.DatabaseURL,
		"TEMPORAL_ADDRESS":       r.Temporal,
		"TEMPORAL_NAMESPACE":     "default",
		"TODOKU_TEMPORAL_UI_URL": r.TemporalUI,
		"TWILIO_API_URL":         r.Simulator,
		"TWILIO_ACCOUNT_SID":     "AC00000000000000000000000000000000",
		"TWILIO_PHONE_NUMBER":    "+15005550006",
		"TODOKU_PUBLIC_URL":      r.API,
		"TODOKU_API_KEY":         r.APIKey,
	} {
		if settings[name] != want {
			t.Errorf("the API has %s=%q, want %q", name, settings[name], want)
		}
	}
	if len(settings["PHONE_HASH_KEY"]) < 32 {
		t.Errorf("PHONE_HASH_KEY has %d characters", len(settings["PHONE_HASH_KEY"]))
	}
	if len(r.PIDs.Workers) != 2 || slices.Contains(r.PIDs.all(), 0) {
		t.Errorf("pids: %+v", r.PIDs)
	}
	if got := query(t, r.DatabaseURL, `SELECT count(*) FROM starts`); got != "1" {
		t.Errorf("migrations ran %s times", got)
	}
	for _, secret := range []string{r.APIKey, settings["PHONE_HASH_KEY"], strings.Split(strings.Split(r.DatabaseURL, "@")[0], ":")[2]} {
		if strings.Contains(first.output(t), secret) {
			t.Errorf("a secret was printed:\n%s", first.output(t))
		}
	}

	second := startDev(t, dir)
	if <-second.ended; second.result == nil || !strings.Contains(second.output(t), "runs in "+dir+" already (process "+strconv.Itoa(first.cmd.Process.Pid)) {
		t.Errorf("a second one in the same folder: %v, %s", second.result, second.output(t))
	}
	if again := first.ready(t, isReady); again.API != r.API {
		t.Errorf("the ready file after that: %+v", again)
	}

	for _, victim := range r.PIDs.all() {
		if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		next := first.ready(t, func(next Ready) bool { return !slices.Contains(next.PIDs.all(), victim) })
		next.PIDs = r.PIDs
		if fmt.Sprint(next) != fmt.Sprint(r) {
			t.Errorf("after a replacement: %+v, before: %+v", next, r)
		}
	}
	r = first.ready(t, isReady)
	first.stop(t, syscall.SIGKILL)
	third := startDev(t, dir) // at once: it waits for the guard of the killed one
	allGone(t, r.PIDs.all())  // and with them the ready file, which went first

	again := third.ready(t, isReady)
	if again.APIKey != r.APIKey || credentials(t, again.DatabaseURL) != credentials(t, r.DatabaseURL) {
		t.Errorf("after a kill: %+v, before: %+v", again, r)
	}
	// Where the usual ports are taken, by a `todoku dev` of the developer for example, each start finds others.
	if r.API == "http://"+preferredAPI && again.API != r.API {
		t.Errorf("after a kill the API is at %s, before at %s", again.API, r.API)
	}
	if got := query(t, again.DatabaseURL, `SELECT count(*) FROM starts`); got != "2" {
		t.Errorf("migrations ran %s times in both lives", got)
	}
	third.stop(t, syscall.SIGINT)
	for _, pid := range again.PIDs.all() {
		if alive(pid) {
			t.Errorf("process %d (%s) outlived Ctrl-C", pid, commandLine(pid))
		}
	}
	if _, err := os.Stat(third.readyFile); !errors.Is(err, os.ErrNotExist) {
		t.Error("the ready file outlived the stack")
	}
}

func TestEphemeralStacksRunSideBySideAndLeaveNothing(t *testing.T) {
	t.Setenv("TMPDIR", openTempDir(t))
	one, two := startDev(t, ""), startDev(t, "")
	a, b := one.ready(t, isReady), two.ready(t, isReady)
	if a.API == b.API || a.Temporal == b.Temporal || a.Simulator == b.Simulator || a.DatabaseURL == b.DatabaseURL {
		t.Errorf("they share: %+v, %+v", a, b)
	}
	one.stop(t, syscall.SIGINT)
	two.stop(t, syscall.SIGKILL)
	allGone(t, append(a.PIDs.all(), b.PIDs.all()...))
	eventually(t, "no folder left", func() bool {
		left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "todoku-*"))
		return err == nil && len(left) == 0
	})
}

func TestStackUsesWhatItIsGiven(t *testing.T) {
	server := startTestTemporal(t, TemporalOptions{})
	database := startTestPostgres(t, PostgresOptions{})
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("key-of-the-user-with-32-characters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	taken := takenPort(t)
	var said strings.Builder
	s, err := Start(t.Context(), Options{
		Dir:        t.TempDir(),
		Executable: thisProgram(t),
		Out:        io.MultiWriter(&said, testWriter{t}),
		Env: testEnv(
			"DATABASE_URL="+database.URL,
			"TEMPORAL_ADDRESS="+server.Address,
			"TWILIO_ACCOUNT_SID=AC11111111111111111111111111111111",
			"TWILIO_AUTH_TOKEN=token",
			"TODOKU_API_KEY_FILE="+key,
			"TODOKU_ADDR=127.0.0.1:"+strconv.Itoa(taken),
			"TODOKU_PUBLIC_URL=https://tunnel.example.com",
		),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	r := s.Ready()
	if want := "Twilio calls back at https://tunnel.example.com (TODOKU_PUBLIC_URL): let that lead to " + r.API; !strings.Contains(said.String(), want) {
		t.Errorf("the port of the API was taken, and it does not say that %s", want)
	}
	if r.DatabaseURL != database.URL || r.Temporal != server.Address || r.Simulator != "" || r.APIKey != "key-of-the-user-with-32-characters" {
		t.Errorf("ready: %+v", r)
	}
	if r.PIDs.Postgres != 0 || r.PIDs.Temporal != 0 || r.PIDs.Simulator != 0 || len(r.PIDs.Workers) != 0 {
		t.Errorf("pids: %+v", r.PIDs)
	}
	settings := settingsOf(t, r.API)
	if settings["TWILIO_ACCOUNT_SID"] != "AC11111111111111111111111111111111" || settings["TWILIO_API_URL"] != "" || settings["TODOKU_PUBLIC_URL"] != "https://tunnel.example.com" {
		t.Errorf("Twilio's settings changed: %v", settings)
	}
	s.Stop()
	if !strings.Contains(said.String(), `"to":"YOUR NUMBER"`) || !strings.Contains(said.String(), "Twilio: the real one") {
		t.Errorf("beside the real Twilio it proposes to send to somebody:\n%s", said.String())
	}
}

func TestStackThatCannotStartLeavesNothing(t *testing.T) {
	database := startTestPostgres(t, PostgresOptions{})
	s, err := Start(t.Context(), Options{
		Dir:        t.TempDir(),
		Executable: thisProgram(t),
		Out:        testWriter{t},
		Env:        testEnv("DATABASE_URL="+database.URL, "TEMPORAL_ADDRESS=127.0.0.1:1"),
	})
	if err == nil {
		s.Stop()
		t.Fatal("it started without Temporal")
	}
	if !strings.Contains(err.Error(), "TEMPORAL_ADDRESS is 127.0.0.1:1") {
		t.Error(err)
	}
}

// credentials are the user and the password of a database's URL.
func credentials(t *testing.T, databaseURL string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	return u.User.String()
}
