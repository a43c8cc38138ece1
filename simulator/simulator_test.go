package simulator_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twilio/twilio-go/client"
	"go.uber.org/goleak"

	"github.com/todoku/todoku/simulator"
)

func TestMain(m *testing.M) {
	if os.Getenv(servesBenchmark) != "" {
		serveBenchmark()
		return
	}
	goleak.VerifyTestMain(m, // but for what Close says goes on
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*Client).mCleaner"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"))
}

const (
	testAccount = "AC00000000000000000000000000000000"
	testToken   = "faketoken"
	testService = "MG00000000000000000000000000000000"
	goodSender  = "+15005550006"
	someone     = "+15550100001"
	soon        = time.Minute // far more than anything here takes, on a busy machine too
)

// rig is a simulator on a port of its own, with somebody who sends to it.
type rig struct {
	t      *testing.T
	sim    *simulator.Simulator
	url    string
	client *http.Client
}

func start(t *testing.T) *rig { return startWith(t, simulator.Options{}) }

func startWith(t *testing.T, options simulator.Options) *rig {
	t.Helper()
	sim := simulator.New(options)
	server := httptest.NewServer(sim)
	server.Config.ErrorLog = nil
	t.Cleanup(func() {
		server.Close()
		sim.Close()
	})
	client := server.Client()
	client.Transport = newSpecChecker(t, client.Transport)
	return &rig{t: t, sim: sim, url: server.URL, client: client}
}

// request is authenticated and carries the form, unless that is empty.
func (r *rig) request(method, path, form string) *http.Request {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, strings.NewReader(form))
	if err != nil {
		r.t.Fatal(err)
	}
	request.SetBasicAuth(testAccount, testToken)
	if form != "" {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return request
}

// do returns the status and the JSON of the answer, nil when it is empty.
func (r *rig) do(request *http.Request) (int, map[string]any) {
	r.t.Helper()
	response, err := r.client.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	var body map[string]any
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil && !errors.Is(err, io.EOF) {
		r.t.Fatalf("%s %s: %v", request.Method, request.URL.Path, err)
	}
	return response.StatusCode, body
}

// api calls one of Twilio's paths below the account.
func (r *rig) api(method, path string, form url.Values) (int, map[string]any) {
	r.t.Helper()
	return r.do(r.request(method, "/2010-04-01/Accounts/"+testAccount+path, form.Encode()))
}

// messageForm is a good message, changed by what is given; an empty value takes a field out.
func messageForm(changes map[string]string) url.Values {
	return changed(url.Values{"To": {someone}, "From": {goodSender}, "Body": {"hello"}}, changes)
}

func callForm(changes map[string]string) url.Values {
	return changed(url.Values{"To": {someone}, "From": {goodSender}, "Twiml": {"<Response/>"}}, changes)
}

func changed(form url.Values, changes map[string]string) url.Values {
	for name, value := range changes {
		if value == "" {
			form.Del(name)
		} else {
			form.Set(name, value)
		}
	}
	return form
}

func (r *rig) sendMessage(changes map[string]string) map[string]any {
	r.t.Helper()
	return r.mustCreate("/Messages.json", messageForm(changes))
}

func (r *rig) makeCall(changes map[string]string) map[string]any {
	r.t.Helper()
	return r.mustCreate("/Calls.json", callForm(changes))
}

func (r *rig) mustCreate(path string, form url.Values) map[string]any {
	r.t.Helper()
	status, body := r.api("POST", path, form)
	if status != http.StatusCreated {
		r.t.Fatalf("POST %s %v: %d %v", path, form, status, body)
	}
	return body
}

// message and call fetch one record by its SID.
func (r *rig) message(sid any) map[string]any { return r.fetch("/Messages/", sid) }
func (r *rig) call(sid any) map[string]any    { return r.fetch("/Calls/", sid) }

func (r *rig) fetch(collection string, sid any) map[string]any {
	r.t.Helper()
	status, body := r.api("GET", collection+sid.(string)+".json", nil)
	if status != http.StatusOK {
		r.t.Fatalf("GET %s%s: %d %v", collection, sid, status, body)
	}
	return body
}

// behave puts a behaviour whose delays are short.
func (r *rig) behave(behaviour string) {
	r.t.Helper()
	if status, body := r.control("PUT", "behaviour", behaviour); status != http.StatusOK {
		r.t.Fatalf("PUT behaviour %s: %d %v", behaviour, status, body)
	}
}

func (r *rig) control(method, name, body string) (int, map[string]any) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), method, r.url+"/_simulator/"+name, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	return r.do(request)
}

type item struct {
	SID, To, From, Body, Status string
	CreatedAt                   string `json:"created_at"`
	Callbacks                   []struct {
		Status     string
		At         string
		HTTPStatus *int `json:"http_status"`
	}
}

// items are what /_simulator/messages or /_simulator/calls show.
func (r *rig) items(name string) []item {
	r.t.Helper()
	request, _ := http.NewRequestWithContext(r.t.Context(), "GET", r.url+"/_simulator/"+name, nil)
	response, err := r.client.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	var body struct{ Items []item }
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
		r.t.Fatal(err)
	}
	return body.Items
}

// eventually waits until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(soon); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %s still not so: %s", soon, what)
		}
	}
}

// hook is a callback URL. It checks every signature with Twilio's own Go library.
type hook struct {
	t      *testing.T
	url    string
	told   chan told
	mu     sync.Mutex
	answer func(told) int
}

// told is one callback that has arrived.
type told struct {
	method string
	header http.Header
	params url.Values
}

func (c told) status() string { return c.params.Get("MessageStatus") + c.params.Get("CallStatus") }

func newHook(t *testing.T) *hook {
	h := &hook{t: t, told: make(chan told, 100), answer: func(told) int { return http.StatusNoContent }}
	validator := client.NewRequestValidator(testToken)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Errorf("callback: %v", err)
		}
		params := make(map[string]string)
		for name := range r.PostForm {
			params[name] = r.PostForm.Get(name)
		}
		if !validator.Validate("http://"+r.Host+r.URL.RequestURI(), params, r.Header.Get("X-Twilio-Signature")) {
			t.Errorf("callback to %s has a wrong signature", r.URL)
		}
		c := told{method: r.Method, header: r.Header, params: r.Form}
		h.told <- c
		h.mu.Lock()
		answer := h.answer
		h.mu.Unlock()
		w.WriteHeader(answer(c))
	}))
	t.Cleanup(server.Close)
	h.url = server.URL + "/status?notification=n-1"
	return h
}

func (h *hook) answerWith(answer func(told) int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = answer
}

func (h *hook) next() told {
	h.t.Helper()
	select {
	case c := <-h.told:
		return c
	case <-time.After(soon):
		h.t.Fatalf("no callback within %s", soon)
		return told{}
	}
}

// statuses are those of the next n callbacks.
func (h *hook) statuses(n int) string {
	h.t.Helper()
	statuses := make([]string, n)
	for i := range statuses {
		statuses[i] = h.next().status()
	}
	return strings.Join(statuses, " ")
}

// nothing fails if a callback has come that was not looked at.
func (h *hook) nothing() {
	h.t.Helper()
	select {
	case c := <-h.told:
		h.t.Errorf("an unexpected callback: %v", c.params)
	default:
	}
}

func TestCredentials(t *testing.T) {
	rig := start(t)
	other := strings.Repeat("1", 32)
	for _, test := range []struct {
		name, user, account string
		status, code        int
	}{
		{"the account itself", testAccount, testAccount, 200, 0},
		{"an API key", "SK" + other, testAccount, 200, 0},
		{"anybody", "nobody", testAccount, 200, 0},
		{"none", "", testAccount, 401, 20003},
		{"another account", "AC" + other, testAccount, 401, 20003},
		{"no account's path", testAccount, "ACshort", 404, 20404},
	} {
		t.Run(test.name, func(t *testing.T) {
			request := rig.request("GET", "/2010-04-01/Accounts/"+test.account+"/Messages.json", "")
			request.Header.Del("Authorization")
			if test.user != "" {
				request.SetBasicAuth(test.user, testToken)
			}
			status, body := rig.do(request)
			if status != test.status {
				t.Errorf("answered %d %v, want %d", status, body, test.status)
			}
			if test.code != 0 {
				checkFailure(t, status, body, test.status, test.code)
			}
		})
	}
}

// checkFailure holds an error's body against the form that Twilio gives it.
func checkFailure(t *testing.T, status int, body map[string]any, wantStatus, wantCode int) {
	t.Helper()
	if status != wantStatus || body["code"] != float64(wantCode) || body["status"] != float64(wantStatus) {
		t.Errorf("answered %d %v, want %d with code %d", status, body, wantStatus, wantCode)
	}
	if body["message"] == "" || body["more_info"] == nil || len(body) != 4 {
		t.Errorf("the error is not as Twilio writes it: %v", body)
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	rig := start(t)
	account := "/2010-04-01/Accounts/" + testAccount
	for _, test := range []struct {
		method, path string
		status, code int
	}{
		{"GET", "/", 404, 20404},
		{"GET", "/2010-04-01/Accounts.json", 404, 20404},
		{"GET", account + "/Messages", 404, 20404},
		{"GET", account + "/Messages/.json", 404, 20404},
		{"GET", account + "/Messages/SM1/Media.json", 404, 20404},
		{"GET", account + "/Recordings.json", 404, 20404},
		{"GET", account + "/Messages/SM00000000000000000000000000000000.json", 404, 20404},
		{"POST", account + "/Calls/CA00000000000000000000000000000000.json", 404, 20404},
		{"DELETE", account + "/Messages/SM00000000000000000000000000000000.json", 404, 20404},
		{"DELETE", account + "/Messages.json", 405, 20004},
		{"PUT", account + "/Calls/CA00000000000000000000000000000000.json", 405, 20004},
	} {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			status, body := rig.do(rig.request(test.method, test.path, ""))
			checkFailure(t, status, body, test.status, test.code)
		})
	}
}

func TestAccountsDoNotSeeEachOther(t *testing.T) {
	rig := start(t)
	sid := rig.sendMessage(nil)["sid"].(string)
	stranger := "AC" + strings.Repeat("1", 32)
	for _, path := range []string{"/Messages/" + sid + ".json", "/Messages.json"} {
		request := rig.request("GET", "/2010-04-01/Accounts/"+stranger+path, "")
		request.SetBasicAuth(stranger, testToken)
		status, body := rig.do(request)
		if messages, ok := body["messages"].([]any); status != http.StatusNotFound && (!ok || len(messages) > 0) {
			t.Errorf("a stranger is answered %d %v", status, body)
		}
	}
}

func TestRunStopsInTheMiddleOfEverything(t *testing.T) {
	hook := newHook(t)
	sim := simulator.New(simulator.Options{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- sim.Run(ctx, ln) }()

	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	rig := &rig{t: t, sim: sim, url: "http://" + ln.Addr().String(), client: &http.Client{Transport: transport}}
	rig.behave(`{"latency_ms": 3600000, "callback_delay_ms": 3600000}`)
	answered := make(chan int, 1)
	go func() {
		status, _ := rig.api("POST", "/Messages.json", messageForm(map[string]string{"StatusCallback": hook.url}))
		answered <- status
	}()
	eventually(t, "the create has arrived", func() bool { return len(rig.items("messages")) == 1 })
	stop()
	if status := <-answered; status != http.StatusCreated {
		t.Errorf("the create in flight was answered %d", status)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Run: %v", err)
	}
	hook.nothing()
}

func TestRunSaysWhereItCannotListen(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	addr := ln.Addr().String()
	err = simulator.New(simulator.Options{Addr: addr}).Run(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "listen on "+addr) {
		t.Errorf("Run: %v, want it to name %s", err, addr)
	}
}
