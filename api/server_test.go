package api_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/api"
	"github.com/todoku/todoku/api/apitest"
	"github.com/todoku/todoku/devstack/devstacktest"
	"github.com/todoku/todoku/migrations"
)

func TestMain(m *testing.M) { apitest.Main(m) }

func TestAddressesAndMethodsThatDoNotExist(t *testing.T) {
	a := apitest.Start(t)
	for _, test := range []struct {
		method, path string
		status       int
		code, allow  string
	}{
		{"GET", "/nothing", 404, "route_not_found", ""},
		{"GET", "/api/v1/nothing", 404, "route_not_found", ""},
		{"GET", "/api/v1/templates/", 404, "route_not_found", ""},
		{"PUT", "/api/v1/templates", 405, "method_not_allowed", "GET, POST"},
		{"DELETE", "/api/v1/notifications", 405, "method_not_allowed", "GET, POST"},
		{"GET", "/api/twilio/webhook/sms-status", 405, "method_not_allowed", "POST"},
	} {
		answer := a.Do(test.method, test.path, "")
		allow := strings.Split(answer.Header.Get("Allow"), ", ")
		if answer.Status != test.status || answer.Code() != test.code || len(allow) != len(strings.Split(test.allow, ", ")) {
			t.Errorf("%s %s = %d %s, Allow %q", test.method, test.path, answer.Status, answer.Text, allow)
		}
		if got := answer.Header.Get("Content-Type"); got != "application/problem+json" {
			t.Errorf("%s %s: Content-Type = %q", test.method, test.path, got)
		}
	}
}

func TestAPanicIsAnsweredWithoutDetails(t *testing.T) {
	a := apitest.Start(t)
	id := accept(t, a)
	a.Workflows.Panic()
	answer := a.Do("GET", "/api/v1/notifications/"+id, "")
	if answer.Status != http.StatusInternalServerError || answer.Code() != "internal_error" || strings.Contains(answer.Text, "out of order") {
		t.Errorf("answer = %d %s", answer.Status, answer.Text)
	}
	if log := a.Log(); !strings.Contains(log, "out of order") || !strings.Contains(log, answer.Header.Get("X-Request-Id")) {
		t.Error("the log does not have the panic with its request's id")
	}
	if again := a.Do("GET", "/healthz", ""); again.Status != http.StatusOK {
		t.Errorf("afterwards: %d", again.Status)
	}
}

func accept(t *testing.T, a *apitest.API) (id string) {
	t.Helper()
	answer := a.Do("POST", "/api/v1/notifications", `{"channel": "SMS", "to": "090-1234-5678", "body": "secret words"}`)
	if answer.Status != http.StatusAccepted {
		t.Fatalf("answer = %d %s", answer.Status, answer.Text)
	}
	return answer.Body["id"].(string)
}

func TestReadinessNamesWhatIsDown(t *testing.T) {
	a := apitest.Start(t)
	check := func(what string, status int, want string) {
		t.Helper()
		for _, method := range []string{"GET", "HEAD"} {
			var answer apitest.Answer
			a.Eventually("/readyz looks again", func() bool { // an outcome is remembered for a moment
				answer = a.Do(method, "/readyz", "", "Authorization: ")
				return answer.Status == status && (method == "HEAD" || answer.Text == want)
			})
			if answer.Status != status || method == "GET" && answer.Text != want {
				t.Errorf("%s: %s /readyz = %d %s, want %d %s", what, method, answer.Status, answer.Text, status, want)
			}
		}
		if answer := a.Do("GET", "/healthz", "", "Authorization: "); answer.Status != http.StatusOK || answer.Text != `{"status":"ok"}` {
			t.Errorf("%s: /healthz = %d %s", what, answer.Status, answer.Text)
		}
	}
	check("all is up", 200, `{"status":"ok","database":"up","schema":"up","temporal":"up"}`)
	a.Workflows.Down()
	check("Temporal is down", 200, `{"status":"degraded","database":"up","schema":"up","temporal":"down"}`)
	a.Database.Cut()
	check("both are down", 503, `{"status":"down","database":"down","schema":"unknown","temporal":"down","database_error":"the database cannot be reached"}`)
}

func TestAReadOnlyDatabaseIsAnOutageUntilItTakesWritesAgain(t *testing.T) {
	a := apitest.Start(t)
	accept(t, a)
	a.AddKey("partner", "read")
	devstacktest.SetReadOnly(t, a.Settings.DatabaseURL, true)
	const one = `{"channel": "SMS", "to": "090-1234-5678", "body": "x"}`
	for range 3 {
		for _, answer := range []apitest.Answer{
			a.Do("POST", "/api/v1/notifications", one),
			a.Do("POST", "/api/v1/notifications", one, "Idempotency-Key: k"),
			a.Do("POST", "/api/v1/lists", `{"name": "l", "members": [{"to": "090-1234-5678"}]}`),
			a.Do("POST", "/api/v1/templates", `{"name": "t", "channel": "SMS", "body": "x"}`),
			a.Do("GET", "/api/v1/templates", "", "Authorization: Bearer partner"), // to look up a key writes when it was used
		} {
			if answer.Status != http.StatusServiceUnavailable || answer.Code() != "database_unavailable" || answer.Header.Get("Retry-After") == "" {
				t.Errorf("answer = %d %s, Retry-After %q", answer.Status, answer.Text, answer.Header.Get("Retry-After"))
			}
		}
	}
	var ready apitest.Answer
	a.Eventually("/readyz looks again", func() bool {
		ready = a.Do("GET", "/readyz", "", "Authorization: ")
		return ready.Status == http.StatusServiceUnavailable
	})
	if ready.Body["database_error"] != "the database is read-only" {
		t.Errorf("/readyz = %d %s", ready.Status, ready.Text)
	}
	devstacktest.SetReadOnly(t, a.Settings.DatabaseURL, false)
	a.Eventually("writes are taken again", func() bool {
		return a.Do("POST", "/api/v1/notifications", one).Status == http.StatusAccepted
	})
	a.Eventually("/readyz says so", func() bool {
		return a.Do("GET", "/readyz", "", "Authorization: ").Status == http.StatusOK
	})
}

func TestAFloodOfReadinessChecksOpensFewConnections(t *testing.T) {
	a := apitest.Start(t)
	db, err := pgx.Connect(t.Context(), a.Settings.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.Background())
	// A newer version has migrated: a rolling update.
	if _, err := db.Exec(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99999, true)`); err != nil {
		t.Fatal(err)
	}
	before := a.Database.Made()
	var asked sync.WaitGroup
	for range 8 {
		asked.Go(func() {
			for range 25 {
				response, err := http.Get(a.URL + "/readyz")
				if err != nil {
					t.Error(err)
					return
				}
				response.Body.Close()
				if response.StatusCode != http.StatusOK {
					t.Errorf("/readyz = %d", response.StatusCode)
				}
			}
		})
	}
	asked.Wait()
	if made := a.Database.Made() - before; made > 20 {
		t.Errorf("200 questions opened %d connections", made)
	}
}

func TestReadinessNamesASchemaThatIsBehind(t *testing.T) {
	a := apitest.Start(t)
	for {
		undone, err := migrations.Down(t.Context(), a.Settings.DatabaseURL)
		if err != nil {
			t.Fatal(err)
		}
		if len(undone) == 0 {
			break
		}
	}
	answer := a.Do("GET", "/readyz", "")
	if want := `{"status":"down","database":"up","schema":"behind","temporal":"up"}`; answer.Status != 503 || answer.Text != want {
		t.Errorf("/readyz = %d %s, want 503 %s", answer.Status, answer.Text, want)
	}
}

func TestStoppingFinishesWhatRequestsSetOff(t *testing.T) {
	a := apitest.Start(t)
	a.Workflows.Hold()
	accept(t, a)
	a.Eventually("the start is in flight", func() bool { return a.Workflows.Waiting() == 1 })
	stopped := make(chan error, 1)
	go func() { stopped <- a.Stop() }()
	a.Eventually("no new connection is taken", func() bool {
		_, err := (&http.Client{Transport: &http.Transport{}}).Get(a.URL + "/healthz")
		return err != nil
	})
	select {
	case err := <-stopped:
		t.Fatalf("stopped (%v) while a start was in flight", err)
	default:
	}
	a.Workflows.Release()
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	if got := len(a.Workflows.Started()); got != 1 {
		t.Errorf("%d workflows were started, want 1", got)
	}
}

func TestWhileDrainingReadinessIsGoneAndRequestsAreTaken(t *testing.T) {
	a := apitest.StartDraining(t, time.Second)
	stopped := make(chan error, 1)
	go func() { stopped <- a.Stop() }()
	a.Eventually("/readyz says 503", func() bool {
		answer := a.Do("GET", "/readyz", "")
		return answer.Status == http.StatusServiceUnavailable && answer.Body["status"] == "stopping"
	})
	accept(t, a)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
}

func TestTheLogNamesRoutesAndNothingOfTheRequest(t *testing.T) {
	a := apitest.Start(t)
	id := accept(t, a)
	a.Do("GET", "/api/v1/notifications/"+id+"?phone=09012345678", "", "X-Request-Id: trace-1")
	a.Do("GET", "/09012345678", "")
	log := a.Log()
	for _, secret := range []string{"12345678", "1234-5678", "secret words", "phone=", apitest.Key, id} {
		if strings.Contains(log, secret) {
			t.Errorf("the log has %q", secret)
		}
	}
	for _, want := range []string{"route=/api/v1/notifications/:id", "request_id=trace-1", "route=unmatched", "method=POST", "status=202"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q", want)
		}
	}
}

func TestEachRequestHasAName(t *testing.T) {
	a := apitest.Start(t)
	for sent, kept := range map[string]bool{"trace-1": true, "": false, "two words": false, strings.Repeat("x", 65): false} {
		got := a.Do("GET", "/healthz", "", "X-Request-Id: "+sent).Header.Get("X-Request-Id")
		if (got == sent) != kept || got == "" {
			t.Errorf("X-Request-Id %q became %q", sent, got)
		}
	}
}

func TestMetricsCountByRouteAndNotByPath(t *testing.T) {
	a := apitest.Start(t)
	a.Do("GET", "/api/v1/notifications/"+accept(t, a), "")
	a.Do("BREW", "/somewhere", "")
	metrics := a.Do("GET", "/metrics", "", "Authorization: ").Text
	for _, want := range []string{
		`todoku_http_requests_total{method="GET",route="/api/v1/notifications/:id",status="200"}`,
		`todoku_http_requests_total{method="other",route="unmatched",status="404"}`,
		`todoku_http_request_duration_seconds_count{method="POST",route="/api/v1/notifications"}`,
		`todoku_notifications_accepted_total{channel="SMS"}`,
		`todoku_webhook_rejected_total{reason="forged"}`,
		`todoku_second_sids_total`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}

func TestTheDescriptionIsOpenAPI(t *testing.T) {
	a := apitest.Start(t)
	loader := openapi3.NewLoader()
	for path, contentType := range map[string]string{"/openapi.json": "application/openapi+json", "/openapi.yaml": "application/openapi+yaml"} {
		answer := a.Do("GET", path, "", "Authorization: ")
		if answer.Status != http.StatusOK || answer.Header.Get("Content-Type") != contentType {
			t.Fatalf("%s = %d %s", path, answer.Status, answer.Header.Get("Content-Type"))
		}
		description, err := loader.LoadFromData([]byte(answer.Text))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if description.OpenAPI != "3.1.0" || description.Paths.Find("/api/v1/notifications") == nil {
			t.Errorf("%s: OpenAPI %s with %d paths", path, description.OpenAPI, description.Paths.Len())
		}
		if err := description.Validate(context.Background()); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestThePageOfTheAPINeedsNothingFromElsewhere(t *testing.T) {
	a := apitest.Start(t)
	page := a.Do("GET", "/docs", "", "Authorization: ")
	if page.Status != http.StatusOK || page.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("/docs = %d %s", page.Status, page.Header.Get("Content-Type"))
	}
	if found := regexp.MustCompile(`(?i)<script|<link|<img|@import|url\(|https?://`).FindString(page.Text); found != "" {
		t.Errorf("the page has %q", found)
	}
	for _, want := range []string{"POST</span> /api/v1/notifications", "GET</span> /api/v1/notifications/{id}/events", `id="phone_number_too_short"`, "needs the scope <code>manage</code>"} {
		if !strings.Contains(page.Text, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

// A client that says nothing, or says it very slowly, is cut off by the server's time-outs; a header
// without end is refused.
func TestALongHeaderIsRefused(t *testing.T) {
	a := apitest.Start(t)
	request := httptest.NewRequest("GET", a.URL+"/healthz", nil)
	request.RequestURI = ""
	request.Header.Set("X-Long", strings.Repeat("x", 64<<10))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return // the connection was closed before the client had written it all
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status = %d, want 431", response.StatusCode)
	}
}

// Go's server answers what it cannot read by itself, and offers no way to write another answer there. It
// must repeat nothing of what it read.
func TestWhatIsNoHTTPIsRefusedInPlainText(t *testing.T) {
	a := apitest.Start(t)
	for name, test := range map[string]struct {
		request string
		status  int
	}{
		"another protocol":     {"EHLO 09012345678\r\n\r\n", 400},
		"a path with a space":  {"GET /09012345678 x HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		"no host":              {"GET /09012345678 HTTP/1.1\r\n\r\n", 400},
		"a header of no name":  {"GET / HTTP/1.1\r\nHost: x\r\n09012345678\r\n\r\n", 400},
		"two lengths":          {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
		"headers without end":  {"GET / HTTP/1.1\r\nHost: x\r\nX-Phone: " + strings.Repeat("09012345678", 3000) + "\r\n\r\n", 431},
		"a URL without an end": {"GET /" + strings.Repeat("09012345678", 3000) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", strings.TrimPrefix(a.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			go func() { _, _ = io.WriteString(conn, test.request) }() // it may be refused before it is written
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			text, _ := io.ReadAll(response.Body)
			if response.StatusCode != test.status || !strings.HasPrefix(response.Header.Get("Content-Type"), "text/plain") || !response.Close {
				t.Errorf("answer = %d %v %s", response.StatusCode, response.Header, text)
			}
			if strings.Contains(string(text), "12345678") {
				t.Errorf("it repeats a number: %s", text)
			}
		})
	}
	if answer := a.Do("GET", "/healthz", ""); answer.Status != http.StatusOK {
		t.Errorf("afterwards = %d %s", answer.Status, answer.Text)
	}
	if strings.Contains(a.Log(), "12345678") {
		t.Error("the log repeats a number")
	}
}

func TestOperationsHaveAListenerOfTheirOwn(t *testing.T) {
	a := apitest.Start(t)
	public, operations := listen(t), listen(t)
	server, err := api.New(api.Deps{
		Store: a.Store, Starter: a.Workflows, Settings: a.Settings, Logger: slog.New(slog.DiscardHandler), Ops: operations,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, public) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	for path, want := range map[string]struct{ public, operations int }{
		"/metrics": {http.StatusNotFound, http.StatusOK},
		"/docs":    {http.StatusNotFound, http.StatusOK},
		"/readyz":  {http.StatusOK, http.StatusOK},
		"/healthz": {http.StatusOK, http.StatusOK},

		"/api/v1/senders": {http.StatusUnauthorized, http.StatusNotFound},
	} {
		for listener, want := range map[net.Listener]int{public: want.public, operations: want.operations} {
			answer, err := http.Get("http://" + listener.Addr().String() + path)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != want {
				t.Errorf("%s answers %d on the listener for operations (%t), want %d", path, answer.StatusCode, listener == operations, want)
			}
		}
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}
