// Package carriertest gives tests a carrier: the client that the product uses, and the simulator in Twilio's place.
package carriertest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/simulator"
)

// Twilio is a simulator that is reached over HTTP, as Twilio is. Its server and the client end with the test.
type Twilio struct {
	*httptest.Server
	Client *carrier.Client
	t      testing.TB
}

// Start starts a simulator that knows nobody yet. Each request is shown to the functions before it is answered.
func Start(t testing.TB, seen ...func(*http.Request)) *Twilio {
	t.Helper()
	sim := simulator.New(simulator.Options{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, see := range seen {
			see(r)
		}
		sim.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { server.Close(); sim.Close() })
	client, err := carrier.New(carrier.Options{AccountSID: "AC" + strings.Repeat("0", 32), AuthToken: "token", APIURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &Twilio{server, client, t}
}

// Behave sets how the simulator behaves, in its own words: JSON of /_simulator/behaviour.
func (w *Twilio) Behave(behaviour string) {
	w.t.Helper()
	w.steer(http.MethodPut, "behaviour", behaviour)
}

// Stats are numbers of /_simulator/stats.
type Stats struct {
	Creates int // messages and calls that it accepted
	Writes  int // how often something was changed at TaskRouter, or at a number
}

// Stats reads what the simulator has counted.
func (w *Twilio) Stats() (s Stats) {
	w.t.Helper()
	if err := json.Unmarshal(w.steer(http.MethodGet, "stats", ""), &s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// Caller is somebody who rang, as /_simulator/inbound shows it.
type Caller struct {
	SID      string
	EndedAt  *time.Time              `json:"ended_at"`
	Requests []struct{ Path string } // for documents, and the status callback
}

// Ring lets people call, in the simulator's own words, and waits until everybody who ever called has hung up.
func (w *Twilio) Ring(callers string) []Caller {
	w.t.Helper()
	w.steer(http.MethodPost, "inbound", callers)
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var seen struct{ Items []Caller }
		if err := json.Unmarshal(w.steer(http.MethodGet, "inbound", ""), &seen); err != nil {
			w.t.Fatal(err)
		}
		if len(seen.Items) > 0 && !slices.ContainsFunc(seen.Items, func(c Caller) bool { return c.EndedAt == nil }) {
			return seen.Items
		}
		if time.Now().After(end) {
			w.t.Fatalf("not all of %d calls are over", len(seen.Items))
		}
	}
}

func (w *Twilio) steer(method, name, body string) []byte {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), method, w.URL+"/_simulator/"+name, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	response, err := w.Server.Client().Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		w.t.Fatalf("the simulator answered %s: %s (%v)", response.Status, answer, err)
	}
	return answer
}
