package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/todoku/todoku/devstack"
	"github.com/todoku/todoku/devstack/devstacktest"
)

// asProgram makes this test program behave as todoku itself, for tests of whole processes.
const asProgram = "TODOKU_CLI_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		devstack.GuardMain()
		os.Exit(Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	devstacktest.Main(m)
}

// program is a todoku process that is about to start, with nothing set but what env says.
func program(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), executable, args...)
	cmd.Env = append([]string{asProgram + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, env...)
	return cmd
}

// terminal is an empty folder and an environment in which nothing of ours is set. Commands run in it.
type terminal struct {
	t     *testing.T
	input string
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, line := range os.Environ() {
		name, _, _ := strings.Cut(line, "=")
		for _, ours := range []string{"TODOKU_", "DATABASE_", "TWILIO_", "TEMPORAL_", "DEFAULT_", "LC_", "LANG"} {
			if strings.HasPrefix(name, ours) {
				t.Setenv(name, "") // puts it back at the end
				os.Unsetenv(name)
			}
		}
	}
	return &terminal{t: t}
}

// run runs one command and returns its exit code and what it printed.
func (term *terminal) run(args ...string) (code int, out, errOut string) {
	term.t.Helper()
	var stdout, stderr bytes.Buffer
	code = Main(term.t.Context(), args, strings.NewReader(term.input), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// succeeds runs a command that must end with 0, and returns its output.
func (term *terminal) succeeds(args ...string) string {
	term.t.Helper()
	code, out, errOut := term.run(args...)
	if code != exitDone {
		term.t.Fatalf("todoku %s ended with %d:\n%s%s", strings.Join(args, " "), code, out, errOut)
	}
	return out
}

func (term *terminal) writeFile(name, content string) {
	term.t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		term.t.Fatal(err)
	}
}

// asked is a request that a standInAPI got.
type asked struct {
	Method, Path, Authorization, Language string
	Body                                  map[string]any

	key     string // its Idempotency-Key
	ifMatch string
	file    string // what was uploaded
}

// standInAPI answers each request with the next answer and then with the last one again, and points
// TODOKU_URL at itself.
func standInAPI(t *testing.T, answers ...answer) *[]asked {
	t.Helper()
	var mu sync.Mutex // a request that was hung up on may still be served while the next one is
	var requests []asked
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request := asked{Method: r.Method, Path: r.URL.RequestURI(), Authorization: r.Header.Get("Authorization"), Language: r.Header.Get("Accept-Language"),
			key: r.Header.Get("Idempotency-Key"), ifMatch: r.Header.Get("If-Match")}
		if text, _ := io.ReadAll(r.Body); r.Header.Get("Content-Type") == "text/csv" {
			request.file = string(text)
		} else if len(text) > 0 {
			if err := json.Unmarshal(text, &request.Body); err != nil {
				t.Errorf("%s %s has a body that is not JSON: %v", r.Method, r.URL.Path, err)
			}
		}
		mu.Lock()
		a := answers[min(len(requests), len(answers)-1)]
		requests = append(requests, request)
		mu.Unlock()
		if a.hangUp {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", a.contentType)
		if a.etag != "" {
			w.Header().Set("ETag", a.etag)
		}
		if a.retryAfter != "" {
			w.Header().Set("Retry-After", a.retryAfter)
		}
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
	}))
	t.Cleanup(server.Close)
	t.Setenv("TODOKU_URL", server.URL)
	t.Setenv("TODOKU_API_KEY", "tdk_test")
	return &requests
}

type answer struct {
	status      int
	contentType string
	body        string
	hangUp      bool // answer nothing
	retryAfter  string
	etag        string
}

func says(status int, body string) answer {
	return answer{status: status, contentType: "application/json", body: body}
}

func refuses(status int, body string) answer {
	return answer{status: status, contentType: "application/problem+json", body: body}
}
