// Package apitest runs the API as it is, on a real Postgres, for the tests of its packages. Only
// Temporal is away: a recorder takes its place and can be as slow or as dead as Temporal can.
package apitest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/todoku/todoku/api"
	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/devstack/devstacktest"
	"github.com/todoku/todoku/devstack/wire"
	"github.com/todoku/todoku/settings"
	"github.com/todoku/todoku/store"
)

const (
	// Key is the value of TODOKU_API_KEY: send, read, manage.
	Key = "apitestkey-of-no-installation-at-all"
	// AuthToken is what callbacks are signed with.
	AuthToken = "apitesttoken"
	// PublicURL is where Twilio is told to call; the tests' server is behind it.
	PublicURL = "https://todoku.example.com"
	// Number is what notifications are sent from.
	Number = "+15005550006"
)

// API is a running API.
type API struct {
	URL       string
	Store     *store.Store // for the test's own use; it is not cut off
	Settings  *settings.Settings
	Workflows *Workflows
	Database  *wire.Wire // between the API and its database

	t    testing.TB
	log  *logged
	stop func() error
}

// Main is the whole of a TestMain.
func Main(m *testing.M) { devstacktest.Main(m) }

// Start runs an API until the test ends. The settings are those of a small installation in Japan;
// environ changes them.
func Start(t testing.TB, environ ...string) *API {
	t.Helper()
	return start(t, 0, environ)
}

// StartDraining is Start with a time in which a stopping API still takes requests.
func StartDraining(t testing.TB, delay time.Duration) *API {
	t.Helper()
	return start(t, delay, nil)
}

func start(t testing.TB, drainDelay time.Duration, environ []string) *API {
	t.Helper()
	database := devstacktest.Ledger(t)
	toDatabase, through := devstacktest.Wire(t, database)
	a := &API{t: t, Workflows: newWorkflows(), Database: toDatabase, log: &logged{}}
	a.Settings = load(t, through, environ)
	a.Store = open(t, database)

	server, err := api.New(api.Deps{
		Store: open(t, a.Settings.DatabaseURL), Starter: a.Workflows, Settings: a.Settings,
		Logger:     slog.New(slog.NewTextHandler(a.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		DrainDelay: drainDelay,
	})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a.URL = "http://" + listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, listener) }()
	a.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		a.Workflows.Release()
		if err := a.stop(); err != nil {
			t.Errorf("stop the API: %v", err)
		}
	})
	return a
}

// Stop stops the API as a signal would and waits for it.
func (a *API) Stop() error { return a.stop() }

// Log is what was logged so far.
func (a *API) Log() string { return a.log.String() }

func load(t testing.TB, databaseURL string, environ []string) *settings.Settings {
	t.Helper()
	values := map[string]string{
		"DATABASE_URL": databaseURL, "TODOKU_API_KEY": Key, "TODOKU_PUBLIC_URL": PublicURL,
		"TWILIO_AUTH_TOKEN": AuthToken, "TWILIO_PHONE_NUMBER": Number, "PHONE_HASH_KEY": strings.Repeat("k", 32),
		"ALLOWED_COUNTRIES": "JP,US",
	}
	for _, setting := range environ {
		name, value, _ := strings.Cut(setting, "=")
		values[name] = value
	}
	s, err := settings.LoadFrom(values, settings.Database|settings.Phones)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func open(t testing.TB, databaseURL string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// AddKey makes a key with the scopes and returns it.
func (a *API) AddKey(key string, scopes ...string) store.Key {
	a.t.Helper()
	hash := sha256.Sum256([]byte(key))
	added, err := a.Store.AddKey(a.t.Context(), key, hash[:], key[:4], scopes, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	return added
}

// Answer is an answer whose body was read as JSON.
type Answer struct {
	Status int
	Header http.Header
	Text   string
	Body   map[string]any
}

// Code is the code of a problem, or empty.
func (a Answer) Code() string {
	code, _ := a.Body["code"].(string)
	return code
}

// Do asks with TODOKU_API_KEY. A header is "Name: value", and replaces what would be sent otherwise.
func (a *API) Do(method, path, body string, headers ...string) Answer {
	a.t.Helper()
	request, err := http.NewRequestWithContext(a.t.Context(), method, a.URL+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+Key)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		request.Header.Set(name, value)
		if value == "" {
			request.Header.Del(name)
		}
	}
	return a.Send(request)
}

// Callback posts a form to a path as Twilio does, signed for PublicURL.
func (a *API) Callback(path string, form url.Values) Answer {
	a.t.Helper()
	return a.Do(http.MethodPost, path, form.Encode(), "Authorization: ", "Content-Type: application/x-www-form-urlencoded",
		carrier.SignatureHeader+": "+carrier.Sign(AuthToken, PublicURL+path, form))
}

// Send sends a request.
func (a *API) Send(request *http.Request) Answer {
	a.t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		a.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	answer := Answer{Status: response.StatusCode, Header: response.Header, Text: string(text)}
	_ = json.Unmarshal(text, &answer.Body) // not every answer is an object
	return answer
}

// Eventually waits for what happens beside a request.
func (a *API) Eventually(what string, happened func() bool) {
	a.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if happened() {
			return
		}
	}
	a.t.Fatalf("it did not happen within 10 s: %s", what)
}

// logged is a log that can be read while it is written.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
