package api_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/api"
	"github.com/todoku/todoku/api/apitest"
	"github.com/todoku/todoku/store"
)

// door is one port that several servers take connections from, as the processes of one service do.
type door struct {
	net.Listener
	conns chan net.Conn
}

func newDoor(t *testing.T) *door {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{listener, make(chan net.Conn)}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			d.conns <- conn
		}
	}()
	t.Cleanup(func() { listener.Close() })
	return d
}

// share is a listener that one server takes, and closes without closing the door.
func (d *door) share() net.Listener { return &share{d, make(chan struct{}), sync.Once{}} }

type share struct {
	*door
	closed chan struct{}
	once   sync.Once
}

func (s *share) Accept() (net.Conn, error) {
	select {
	case <-s.closed:
		return nil, net.ErrClosed
	case conn := <-s.conns:
		return conn, nil
	}
}

func (s *share) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// serve runs a server of the installation behind the door, and returns how to stop it.
func serve(t *testing.T, a *apitest.API, d *door) (stop func() error) {
	t.Helper()
	ledger, err := store.Open(t.Context(), a.Settings.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ledger.Close)
	server, err := api.New(api.Deps{Store: ledger, Starter: a.Workflows, Settings: a.Settings, Logger: slog.New(slog.DiscardHandler), DrainDelay: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, d.share()) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

// A client that keeps its connections and does what 503 with Retry-After tells it sees no error
// while every process is replaced, and each of its requests is done once.
func TestARollingRestartShowsNoErrorToAClientThatRetriesAsTold(t *testing.T) {
	a := apitest.Start(t)
	d := newDoor(t)
	stop := serve(t, a, d)
	load, end := context.WithCancel(t.Context())
	var mu sync.Mutex
	accepted := map[string]bool{}
	var clients sync.WaitGroup
	for range 8 {
		client := &http.Client{Transport: &http.Transport{}}
		clients.Go(func() {
			for load.Err() == nil {
				key := uuid.NewString()
				id, refused := post(t, client, d.Addr().String(), key)
				for refused > 0 {
					time.Sleep(refused / 20) // as told, but quicker
					id, refused = post(t, client, d.Addr().String(), key)
				}
				mu.Lock()
				accepted[id] = true
				mu.Unlock()
			}
		})
	}
	for range 3 {
		next := serve(t, a, d)
		if err := stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		stop = next
	}
	end()
	clients.Wait()
	all, _, err := a.Store.Notifications(t.Context(), store.Filter{}, nil, 1_000_000)
	if err != nil || len(all) != len(accepted) || len(all) == 0 {
		t.Errorf("%d notifications were answered and %d are in the ledger (%v)", len(accepted), len(all), err)
	}
}

// post returns the id of what was accepted, or how long to wait before the next try.
func post(t *testing.T, client *http.Client, address, key string) (id string, refused time.Duration) {
	request, err := http.NewRequest("POST", "http://"+address+"/api/v1/notifications", strings.NewReader(`{"channel": "SMS", "to": "090-1234-5678", "body": "x"}`))
	if err != nil {
		t.Error(err)
		return "", 0
	}
	request.Header.Set("Authorization", "Bearer "+apitest.Key)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", key)
	response, err := client.Do(request)
	if err != nil {
		t.Errorf("a client saw an error: %v", err)
		return "", 0
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Errorf("a client lost an answer: %v", err)
	}
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	switch {
	case response.StatusCode == http.StatusAccepted:
		return response.Header.Get("Location"), 0
	case response.StatusCode == http.StatusServiceUnavailable && seconds > 0:
		return "", time.Duration(seconds) * time.Second
	}
	t.Errorf("a client was answered %s", response.Status)
	return "", 0
}

// beginStop stops the server, and returns when it takes no new connection.
func beginStop(a *apitest.API) (stopped chan error) {
	stopped = make(chan error, 1)
	go func() { stopped <- a.Stop() }()
	a.Eventually("no new connection is taken", func() bool {
		_, err := (&http.Client{Transport: &http.Transport{}}).Get(a.URL + "/healthz")
		return err != nil
	})
	return stopped
}

func TestALateRequestIsRefusedCleanlyAndOneInFlightIsFinished(t *testing.T) {
	a := apitest.Start(t)
	id := accept(t, a)
	notification := uuid.MustParse(id)
	claims, err := a.Store.Claim(t.Context(), store.ClaimTerms{
		Owner: store.Owner{WorkflowID: "notification/" + id, Single: &notification}, Limit: 1, Lease: 15 * time.Second, Ahead: time.Second,
	})
	if err != nil || len(claims) != 1 {
		t.Fatal(claims, err)
	}

	// Two connections are open when the stop begins: on one a request is in flight, the other is quiet.
	canceled := make(chan apitest.Answer, 1)
	go func() { canceled <- a.Do("POST", "/api/v1/notifications/"+id+"/cancel", "") }()
	a.Eventually("the wish to cancel waits for the claim", func() bool {
		events, err := a.Store.Events(t.Context(), notification)
		return err == nil && slices.ContainsFunc(events, func(e store.Event) bool { return e.Kind == store.EventCancelAsked })
	})
	quiet, err := net.Dial("tcp", strings.TrimPrefix(a.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer quiet.Close()
	if _, err := io.WriteString(quiet, "POST /api/v1/notifications HTTP/1.1\r\nHost: x\r\n"); err != nil { // not all of it yet
		t.Fatal(err)
	}
	stopped := beginStop(a)
	if _, err := io.WriteString(quiet, "Content-Length: 0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	late, err := io.ReadAll(quiet)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"503 Service Unavailable", "Retry-After: 1", "Connection: close", `"code":"stopping"`} {
		if !strings.Contains(string(late), want) {
			t.Errorf("the late request was answered without %s: %s", want, late)
		}
	}
	if _, err := a.Store.Refuse(t.Context(), notification, claims[0].Token, store.Failure{Kind: store.EventRefused, ErrorCode: "21211"}); err != nil {
		t.Fatal(err)
	}
	if answer := <-canceled; answer.Status != http.StatusConflict {
		t.Errorf("the request in flight was answered %d %s", answer.Status, answer.Text)
	}
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
}

func TestAStopEndsTheStreamsOfWhoeverFollowsABatch(t *testing.T) {
	a := apitest.Start(t)
	accepted := a.Do("POST", "/api/v1/batches?channel=SMS&body=x", "to\n09012345678\n", "Content-Type: text/csv")
	if accepted.Status != http.StatusAccepted {
		t.Fatal(accepted.Text)
	}
	request, err := http.NewRequestWithContext(t.Context(), "GET", a.URL+accepted.Header.Get("Location")+"/progress", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+apitest.Key)
	stream, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	events := bufio.NewReader(stream.Body)
	if first, err := events.ReadString('\n'); err != nil || first != "event: progress\n" {
		t.Fatal(first, err)
	}
	if err := a.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if rest, err := io.ReadAll(events); err != nil || strings.Contains(string(rest), "event: finished") {
		t.Errorf("the stream ends with %v and says %s, want it to end in order, for its reader to ask again", err, rest)
	}
}

func TestAConnectionThatWasTakenGetsItsAnswerAlthoughItsRequestComesLate(t *testing.T) {
	a := apitest.Start(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET"); err != nil { // not all of it yet
		t.Fatal(err)
	}
	stopped := beginStop(a)
	if _, err := io.WriteString(conn, " /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.Contains(string(answer), "503 Service Unavailable") {
		t.Errorf("the request was answered %q (%v)", answer, err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
}
