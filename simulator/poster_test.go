package simulator

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// ask has p make a callback, now.
func ask(t *testing.T, p *poster, method, address string) reply {
	t.Helper()
	return p.ask(callbackTo(method, address))
}

func callbackTo(method, address string) callback {
	d := newDelivery(address, method, "token", nil)
	return callback{hook: d.hook, params: params{{"A", "1 + 1"}, {"B", ""}}, token: "same", since: time.Now()}
}

func newTestPoster(t *testing.T) *poster {
	return newPoster(t.Context())
}

// idle is how many connections p keeps.
func idle(p *poster) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, client := range p.clients {
		n += client.IdleConnsCount()
	}
	return n
}

// serveConnections answers each connection by the function that is its turn's, which closes it when it returns.
func serveConnections(t *testing.T, turns ...func(net.Conn, *bufio.Reader)) (address string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { ln.Close(); <-done })
	go func() {
		defer close(done)
		for _, turn := range turns {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			turn(conn, bufio.NewReader(conn))
			conn.Close()
		}
	}()
	return "http://" + ln.Addr().String()
}

// answering answers one request with the text after the other, and then hears one more where it is told to.
func answering(t *testing.T, hears bool, answers ...string) func(net.Conn, *bufio.Reader) {
	return func(conn net.Conn, requests *bufio.Reader) {
		hear := func() {
			request, err := http.ReadRequest(requests)
			if err == nil {
				_, err = io.Copy(io.Discard, request.Body)
			}
			if err != nil {
				t.Errorf("a request cannot be read: %v", err)
			}
		}
		for _, answer := range answers {
			hear()
			if _, err := io.WriteString(conn, answer); err != nil {
				return // who asked has heard enough
			}
		}
		if hears {
			hear()
		}
	}
}

const noContent = "HTTP/1.1 204 No Content\r\n\r\n"

func TestAnswersToCallbacks(t *testing.T) {
	long := strings.Repeat("x", maxReplyBytes)
	for name, test := range map[string]struct {
		answer string
		want   reply
		kept   bool
	}{
		"nothing":       {noContent, reply{status: 204}, true},
		"an empty body": {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", reply{status: 200}, true},
		"a body": {"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 2\r\n\r\nok",
			reply{status: 200, contentType: "a/b", body: []byte("ok")}, true},
		"a body in chunks": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n",
			reply{status: 200, body: []byte("ok")}, true},
		"a body up to the end": {"HTTP/1.1 200 OK\r\n\r\nok", reply{status: 200, body: []byte("ok")}, false},
		"an early hint first":  {"HTTP/1.1 103 Early Hints\r\n\r\n" + noContent, reply{status: 204}, true},
		"HTTP/1.0": {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
			reply{status: 200, body: []byte("ok")}, false},
		"and goodbye":    {"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", reply{status: 204}, false},
		"client's error": {"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", reply{status: 404, trouble: "4xx"}, true},
		"server's error": {"HTTP/1.1 503 Away\r\nContent-Length: 0\r\n\r\n", reply{status: 503, trouble: "5xx"}, true},
		"less than was said": {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok",
			reply{trouble: "rt"}, false},
		"as long as may be": {"HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n" + long,
			reply{status: 200, body: []byte(long)}, true},
		"too long": {"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n" + long,
			reply{status: 200, trouble: "rt"}, false},
		"too long a client's error": {"HTTP/1.1 404 Not Found\r\nContent-Length: 2000000\r\n\r\n" + long,
			reply{status: 404, trouble: "4xx"}, false},
		"a long header":        {"HTTP/1.1 204 No Content\r\nA: " + long[:30_000] + "\r\n\r\n", reply{status: 204}, true},
		"a header without end": {"HTTP/1.1 200 OK\r\nA: " + long + long, reply{trouble: "rt"}, false},
		"no HTTP":              {"SSH-2.0-OpenSSH\r\n", reply{trouble: "rt"}, false},
		"silence":              {"", reply{trouble: "rt"}, false},
		"nowhere to go":        {"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", reply{status: 302}, true},
		"to something else": {"HTTP/1.1 302 Found\r\nLocation: ftp://a/\r\nContent-Length: 0\r\n\r\n",
			reply{trouble: "rt"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTestPoster(t)
			got := ask(t, p, "POST", serveConnections(t, answering(t, false, test.answer)))
			if got.status != test.want.status || got.contentType != test.want.contentType || got.trouble != test.want.trouble ||
				!bytes.Equal(got.body, test.want.body) {
				t.Errorf("got %.200q, want %.200q", fmt.Sprint(got), fmt.Sprint(test.want))
			}
			if kept := idle(p) == 1; kept != test.kept {
				t.Errorf("the connection is kept: %t, want %t", kept, test.kept)
			}
		})
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	address := serveConnections(t, answering(t, false, noContent, noContent, noContent))
	p := newTestPoster(t)
	for range 3 {
		if r := ask(t, p, "POST", address); r.status != http.StatusNoContent {
			t.Fatalf("answered %+v", r)
		}
	}
}

func TestConnectionThatIsOfNoUseAnyMoreIsReplaced(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		for name, answer := range map[string]string{
			"it was closed":           noContent,
			"something unasked came":  noContent + noContent,
			"there was something odd": noContent + "odd",
		} {
			closed := make(chan struct{})
			address := serveConnections(t,
				func(conn net.Conn, requests *bufio.Reader) {
					answering(t, false, answer)(conn, requests)
					conn.Close()
					close(closed)
				},
				answering(t, false, noContent))
			p := newTestPoster(t)
			ask(t, p, method, address)
			<-closed
			if r := ask(t, p, method, address); r.status != http.StatusNoContent {
				t.Errorf("%s where %s: %+v", method, name, r)
			}
		}
	}
}

// What was written may have been heard, and nothing is told twice but by the terms of the hook.
func TestRequestThatMeetsACloseIsNotMadeAnew(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		p := newTestPoster(t)
		address := serveConnections(t, answering(t, true, noContent), answering(t, true), answering(t, false, noContent))
		ask(t, p, method, address)
		if r := ask(t, p, method, address); r.trouble != "rt" {
			t.Errorf("%s over a kept connection that closes: %+v", method, r)
		}
		if r := ask(t, p, method, address); r.trouble != "rt" {
			t.Errorf("%s over a new connection that closes: %+v", method, r)
		}
		if r := ask(t, p, method, address); r.status != http.StatusNoContent {
			t.Errorf("%s after that: %+v", method, r)
		}
	}
}

func TestRedirectsAreFollowed(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.URL.RequestURI()+" "+string(body))
		if status := map[string]int{"/301": 301, "/302": 302, "/303": 303, "/307": 307, "/308": 308}[r.URL.Path]; status != 0 {
			http.Redirect(w, r, "there?q=1", status)
		}
		if r.URL.Path == "/loop" {
			http.Redirect(w, r, "/loop", http.StatusFound)
		}
	}))
	t.Cleanup(server.Close)
	for path, want := range map[string]string{
		"/301": "GET /there?q=1 ", "/302": "GET /there?q=1 ", "/303": "GET /there?q=1 ",
		"/307": "POST /there?q=1 A=1+%2B+1&B=", "/308": "POST /there?q=1 A=1+%2B+1&B=",
	} {
		got = nil
		r := ask(t, newTestPoster(t), "POST", server.URL+path)
		if r.status != http.StatusOK || len(got) != 2 || got[1] != want {
			t.Errorf("%s: answered %d, asked for %q", path, r.status, got)
		}
	}
	got = nil
	if r := ask(t, newTestPoster(t), "POST", server.URL+"/loop"); r.trouble != "rt" || len(got) != 1+maxRedirects {
		t.Errorf("a loop is followed for %d times: %+v", len(got), r)
	}
}

func TestUserOfTheURLIsNotToldToWhereARedirectGoes(t *testing.T) {
	var got http.Header
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
	t.Cleanup(elsewhere.Close)
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL+"/there", http.StatusTemporaryRedirect))
	t.Cleanup(server.Close)
	address := strings.Replace(server.URL, "://", "://me:secret@", 1)
	if r := ask(t, newTestPoster(t), "POST", address); r.status != http.StatusOK || got.Get("Authorization") != "" {
		t.Errorf("answered %d, with the header %v", r.status, got)
	}
}

func TestHowACallbackIsWritten(t *testing.T) {
	var method, uri, body string
	var header http.Header
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		form, _ := io.ReadAll(r.Body)
		method, uri, body, header = r.Method, r.URL.RequestURI(), string(form), r.Header
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	p := newTestPoster(t)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	p.tls = &tls.Config{RootCAs: roots}
	secret, _ := url.Parse(server.URL)
	secret.User = url.UserPassword("me", "pass word")
	for _, test := range []struct{ method, address, want, body string }{
		{"POST", secret.String() + "/a%2Fb?c=d#rc=1", "POST /a%2Fb?c=d", "A=1+%2B+1&B="},
		{"POST", secret.String(), "POST /", "A=1+%2B+1&B="},
		{"POST", secret.String() + "/a b//../ü", "POST /a%20b//../%C3%BC", "A=1+%2B+1&B="},
		{"GET", secret.String(), "GET /?A=1+%2B+1&B=", ""},
		{"GET", secret.String() + "/a", "GET /a?A=1+%2B+1&B=", ""},
		{"GET", secret.String() + "/a?c=d", "GET /a?c=d&A=1+%2B+1&B=", ""},
	} {
		if r := ask(t, p, test.method, test.address); r.status != http.StatusOK {
			t.Fatalf("%s: %+v", test.want, r)
		}
		if got := method + " " + uri; got != test.want || body != test.body {
			t.Errorf("asked for %s with %q, want %s with %q", got, body, test.want, test.body)
		}
		if got := header.Get("Authorization"); got != "Basic bWU6cGFzcyB3b3Jk" {
			t.Errorf("%s: Authorization is %q", test.want, got)
		}
		if got := header.Get("I-Twilio-Idempotency-Token") + " " + header.Get("User-Agent"); got != "same TwilioProxy/1.1" {
			t.Errorf("%s: token and agent are %q", test.want, got)
		}
	}
	if n := idle(p); n != 1 {
		t.Errorf("%d connections were made, want 1 that is used again", n)
	}
	if r := ask(t, newTestPoster(t), "POST", server.URL); r.trouble != "ct" {
		t.Errorf("a certificate that nobody knows: %+v", r)
	}
}

func TestCallbackIsBrokenOffWhenItsWorldEnds(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	address := serveConnections(t, func(conn net.Conn, requests *bufio.Reader) {
		answering(t, true)(conn, requests)
		end()
		_, _ = requests.ReadByte() // until it is closed
	})
	p := newPoster(ctx)
	if r := ask(t, p, "POST", address); r.trouble != "rt" {
		t.Errorf("answered %+v", r)
	}
	if r := ask(t, p, "POST", address); r.trouble != "ct" {
		t.Errorf("answered %+v after the end", r)
	}
}

func TestKeptConnectionsAreClosedWhenTheirWorldEnds(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	closed := make(chan struct{})
	ask(t, newPoster(ctx), "POST", serveConnections(t, func(conn net.Conn, requests *bufio.Reader) {
		answering(t, false, noContent)(conn, requests)
		_, _ = requests.ReadByte()
		close(closed)
	}))
	end()
	<-closed
}

func TestTimeOutsOfACallback(t *testing.T) {
	silent := func(conn net.Conn, requests *bufio.Reader) { _, _ = io.Copy(io.Discard, requests) }
	for _, test := range []struct {
		name, scheme, terms string
		want                trouble
	}{
		{"no answer", "http", "#rt=100", "rt"},
		{"no answer, in all", "http", "#tt=100", "rt"},
		{"no handshake", "https", "#ct=100", "ct"},
		{"no handshake, in all", "https", "#ct=10000&tt=100", "ct"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, host, _ := strings.Cut(serveConnections(t, silent), "://")
			if r := ask(t, newTestPoster(t), "POST", test.scheme+"://"+host+"/"+test.terms); r.trouble != test.want {
				t.Errorf("got %+v, want the trouble %s", r, test.want)
			}
		})
	}
}

func TestConnectionIsKeptForLongerThanAnAnswerMayTake(t *testing.T) {
	address := serveConnections(t, func(_ net.Conn, requests *bufio.Reader) { _, _ = requests.ReadByte() })
	conn, err := dial(t.Context(), strings.TrimPrefix(address, "http://"), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	long := time.Now().Add(-time.Minute)
	for range 2 {
		err = errors.Join(err, conn.SetWriteDeadline(long), conn.SetReadDeadline(long))
	}
	if err != nil {
		t.Error(err)
	}
}
