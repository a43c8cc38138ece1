package carrier

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/todoku/todoku/notify"
)

// listen starts a server below HTTP: it hands each connection to serve, with its number.
func listen(t *testing.T, serve func(n int, conn net.Conn)) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for n := 0; ; n++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
				serve(n, conn)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		running.Wait()
	})
	return "http://" + listener.Addr().String()
}

// readPost reads one request from the connection, to its last byte.
func readPost(r *bufio.Reader) error {
	req, err := http.ReadRequest(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, req.Body)
	return err
}

// leaksNothing fails when the error, or one that it wraps, is net/http's or repeats the request.
func leaksNothing(t *testing.T, err error, req Create) {
	t.Helper()
	if _, ok := errors.AsType[*url.Error](err); ok {
		t.Errorf("a *url.Error leaves the package: %v", err)
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		for _, private := range []string{testAccount, testToken, req.To, strings.TrimPrefix(req.To, "+"), req.From, req.Body, "Accounts", "To="} {
			if strings.Contains(e.Error(), private) {
				t.Errorf("%q repeats %q", e, private)
			}
		}
	}
}

const twilioRefusal = `{"code":21211,"message":"The 'To' number +15555550123 is not a valid phone number.","more_info":"https://www.twilio.com/docs/errors/21211","status":400}`

func TestEachFaultHasItsClass(t *testing.T) {
	page := "<html><body><h1>503 Service Temporarily Unavailable</h1></body></html>"
	write := func(status int, contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.Header().Set("Twilio-Request-Id", "RQ00000000000000000000000000000001")
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	hijack := func(raw string, reset bool) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			_, _ = io.WriteString(conn, raw)
			if reset {
				_ = conn.(*net.TCPConn).SetLinger(0)
			}
			conn.Close()
		}
	}
	for _, tc := range []struct {
		fault   string
		handler http.HandlerFunc
		class   Class
		status  int
		code    int
	}{
		{"Twilio's refusal", write(400, "application/json", twilioRefusal), Recipient, 400, 21211},
		{"wrong credentials", write(401, "application/json", `{"code":20003,"message":"Authenticate","status":401}`), AllSenders, 401, 20003},
		{"too many requests", write(429, "application/json", `{"code":20429,"message":"Too Many Requests","status":429}`), SafeToRetry, 429, 20429},
		{"too many requests in HTML", write(429, "text/html", page), Ambiguous, 429, 0},
		{"queue full", write(400, "application/json", `{"code":21611,"message":"Queue full","status":400}`), SafeToRetry, 400, 21611},
		{"an error code that is not known", write(400, "application/json", `{"code":21999,"message":"News","status":400}`), Request, 400, 21999},
		{"500", write(500, "application/json", `{"code":20500,"message":"Internal","status":500}`), Ambiguous, 500, 20500},
		{"500 with a code that would be final", write(500, "application/json", `{"code":21211,"message":"no","status":500}`), Ambiguous, 500, 21211},
		{"503 in HTML", write(503, "text/html", page), Ambiguous, 503, 0},
		{"503 without a body", write(503, "text/plain", ""), Ambiguous, 503, 0},
		{"503 with {}", write(503, "application/json", "{}"), Ambiguous, 503, 0},
		{"503 with null", write(503, "application/json", "null"), Ambiguous, 503, 0},
		{"503 with a huge body", write(503, "text/html", strings.Repeat("x", 2*errorAnswerLimit)), Ambiguous, 503, 0},
		{"403 in HTML", write(403, "text/html", page), Ambiguous, 403, 0},
		{"400 with {}", write(400, "application/json", "{}"), Ambiguous, 400, 0},
		{"401 with a gateway's JSON", write(401, "application/json", `{"message":"Unauthorized"}`), Ambiguous, 401, 0},
		{"401 with a gateway's code", write(401, "application/json", `{"code":401,"message":"Unauthorized","status":401}`), Ambiguous, 401, 0},
		{"404 with null", write(404, "application/json", "null"), Ambiguous, 404, 0},
		{"405 in HTML", write(405, "text/html", page), Ambiguous, 405, 0},
		{"407 of a proxy", write(407, "text/html", page), Ambiguous, 407, 0},
		{"409 without a body", write(409, "text/plain", ""), Ambiguous, 409, 0},
		{"413 in HTML", write(413, "text/html", page), Ambiguous, 413, 0},
		{"421 with {}", write(421, "application/json", "{}"), Ambiguous, 421, 0},
		{"422 with a list", write(422, "application/json", "[]"), Ambiguous, 422, 0},
		{"431 in HTML", write(431, "text/html", page), Ambiguous, 431, 0},
		{"451 in HTML", write(451, "text/html", page), Ambiguous, 451, 0},
		{"499 with Twilio's refusal of another status", write(499, "application/json", twilioRefusal), Ambiguous, 499, 0},
		{"200 with Twilio's refusal", write(200, "application/json", twilioRefusal), Ambiguous, 200, 0},
		{"201 of another account", write(201, "application/json", `{"account_sid":"AC00000000000000000000000000000099","sid":"`+testMessage+`","status":"queued"}`), Ambiguous, 201, 0},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, Ambiguous, 307, 0},
		{"201 in HTML", write(201, "text/html", page), Ambiguous, 201, 0},
		{"201 without a body", write(201, "application/json", ""), Ambiguous, 201, 0},
		{"201 with {}", write(201, "application/json", "{}"), Ambiguous, 201, 0},
		{"201 with null", write(201, "application/json", "null"), Ambiguous, 201, 0},
		{"201 with a call's SID", write(201, "application/json", `{"sid":"`+testCall+`","status":"queued"}`), Ambiguous, 201, 0},
		{"201 with a SID of another type", write(201, "application/json", `{"sid":["`+testMessage+`"],"status":"queued"}`), Ambiguous, 201, 0},
		{"201 with a status of another type", write(201, "application/json", `{"sid":"`+testMessage+`","status":1}`), Ambiguous, 201, 0},
		{"201 with a huge body", write(201, "application/json", `{"sid":"`+testMessage+`","status":"queued","body":"`+strings.Repeat("x", singleAnswerLimit)+`"}`), Ambiguous, 201, 0},
		{"201 truncated", hijack("HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"sid\":\"SM", false), Ambiguous, 201, 0},
		{"400 truncated", hijack("HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"code\":212", true), Ambiguous, 400, 0},
		{"closed after the request", hijack("", false), Ambiguous, 0, 0},
		{"reset after the request", hijack("", true), Ambiguous, 0, 0},
		{"half of the answer's head", hijack("HTTP/1.1 201 Crea", false), Ambiguous, 0, 0},
		{"not HTTP", hijack("220 mail.example.com ESMTP\r\n\r\n", false), Ambiguous, 0, 0},
	} {
		t.Run(tc.fault, func(t *testing.T) {
			var posts atomic.Int32
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				posts.Add(1)
				tc.handler(w, r)
			})
			_, err := c.Create(t.Context(), sms())
			failed, ok := err.(*Error)
			if !ok {
				t.Fatalf("got %T %v, want an *Error", err, err)
			}
			if failed.Class != tc.class || failed.HTTPStatus != tc.status || failed.Code != tc.code {
				t.Errorf("class %s, status %d, code %d; want %s, %d, %d (%v)",
					failed.Class, failed.HTTPStatus, failed.Code, tc.class, tc.status, tc.code, err)
			}
			if tc.status >= 400 && !strings.HasSuffix(tc.fault, "truncated") {
				if failed.RetryAfter != 7*time.Second || failed.RequestID == "" {
					t.Errorf("Retry-After %s and request id %q are not those of the headers", failed.RetryAfter, failed.RequestID)
				}
			}
			if n := posts.Load(); n != 1 {
				t.Errorf("the request was sent %d times", n)
			}
			leaksNothing(t, err, sms())
		})
	}
}

func TestAnAnswerThatIsNotTwiliosNamesWhoGaveIt(t *testing.T) {
	for name, tc := range map[string]struct {
		status       int
		header, body string
		want         string
	}{
		"a refusal":         {403, "nginx/1.25 (Ubuntu)", "<html>", "HTTP 403, Server: nginx/1.25 (Ubuntu), Via: 1.1 proxy.example.com"},
		"an empty success":  {200, "", "{}", "HTTP 200, Via: 1.1 proxy.example.com"},
		"more than a name":  {400, strings.Repeat("x", 200) + testTo, "null", "HTTP 400, Server: " + strings.Repeat("x", 60) + ", Via: 1.1 proxy.example.com"},
		"Twilio's refusal":  {400, "envoy", twilioRefusal, ""},
		"a number, a quote": {400, "\"" + testTo + "\"", "", "HTTP 400, Server: [number], Via: 1.1 proxy.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Server", tc.header)
				w.Header().Set("Via", "1.1 proxy.example.com")
				answer(w, tc.status, tc.body)
			})
			_, err := c.Create(t.Context(), sms())
			failed, ok := errors.AsType[*Error](err)
			if !ok || failed.Gateway != tc.want {
				t.Errorf("the gateway of %v is %q, want %q", err, failed.Gateway, tc.want)
			}
		})
	}
}

func TestNothingWrittenIsSafeToRetry(t *testing.T) {
	t.Run("connection refused", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listener.Close()
		_, err = newClient(t, "http://"+listener.Addr().String()).Create(t.Context(), sms())
		expect(t, err, SafeToRetry, nil)
		if !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("%q does not say why", err)
		}
		leaksNothing(t, err, sms())
	})
	t.Run("certificate not trusted", func(t *testing.T) {
		var requests atomic.Int32
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.StartTLS()
		defer server.Close()
		_, err := newClient(t, server.URL).Create(t.Context(), sms())
		expect(t, err, SafeToRetry, nil)
		if requests.Load() != 0 {
			t.Error("the request was sent")
		}
		leaksNothing(t, err, sms())
	})
	t.Run("the other side does not speak TLS", func(t *testing.T) {
		address := listen(t, func(_ int, conn net.Conn) { _, _ = io.WriteString(conn, "220 hello\r\n") })
		_, err := newClient(t, strings.Replace(address, "http:", "https:", 1)).Create(t.Context(), sms())
		expect(t, err, SafeToRetry, nil)
		leaksNothing(t, err, sms())
	})
	t.Run("canceled before", func(t *testing.T) {
		address := listen(t, func(_ int, conn net.Conn) { t.Error("a connection was made") })
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := newClient(t, address).Create(ctx, sms())
		expect(t, err, SafeToRetry, context.Canceled)
	})
	t.Run("canceled while waiting for a connection", func(t *testing.T) {
		arrived, release := make(chan struct{}), make(chan struct{})
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			close(arrived) // a second request would panic
			<-release
			answer(w, http.StatusCreated, `{"sid":"`+testMessage+`","status":"queued"}`)
		}, func(o *Options) { o.MaxConnections = 1 })
		first := make(chan error, 1)
		go func() {
			_, err := c.Create(t.Context(), sms())
			first <- err
		}()
		<-arrived
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		_, err := c.Create(ctx, sms())
		expect(t, err, SafeToRetry, context.DeadlineExceeded)
		close(release)
		if err := <-first; err != nil {
			t.Error(err)
		}
	})
}

func TestGivingUpAfterWritingIsAmbiguous(t *testing.T) {
	const soon = 2 * time.Second // long enough for a busy machine to write the request
	arrived := make(chan struct{}, 1)
	address := listen(t, func(_ int, conn net.Conn) {
		r := bufio.NewReader(conn)
		if readPost(r) == nil {
			arrived <- struct{}{}
			_, _ = r.ReadByte() // until the client hangs up
		}
	})
	t.Run("canceled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-arrived
			cancel()
		}()
		_, err := newClient(t, address).Create(ctx, sms())
		expect(t, err, Ambiguous, context.Canceled)
		leaksNothing(t, err, sms())
	})
	t.Run("our time-out", func(t *testing.T) {
		c := newClient(t, address, func(o *Options) { o.Timeout = soon })
		_, err := c.Create(t.Context(), sms())
		expect(t, err, Ambiguous, context.DeadlineExceeded)
		<-arrived
	})
	t.Run("the deadline comes near", func(t *testing.T) {
		req := sms()
		req.Deadline = time.Now().Add(soon)
		_, err := newClient(t, address).Create(t.Context(), req)
		expect(t, err, Ambiguous, context.DeadlineExceeded)
		if !time.Now().Before(req.Deadline.Add(20 * time.Second)) {
			t.Error("the answer was awaited long after the deadline")
		}
		<-arrived
	})
	t.Run("while the answer's body is read", func(t *testing.T) {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusCreated)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, func(o *Options) { o.Timeout = soon })
		_, err := c.Create(t.Context(), sms())
		expect(t, err, Ambiguous, context.DeadlineExceeded)
	})
}

func expect(t *testing.T, err error, class Class, cause error) {
	t.Helper()
	if got := ClassOf(err); got != class {
		t.Fatalf("class %q of %v, want %s", got, err, class)
	}
	if cause != nil && !errors.Is(err, cause) {
		t.Errorf("%v does not wrap %v", err, cause)
	}
}

func TestAPassedDeadlineWritesNothing(t *testing.T) {
	var connections, bytes atomic.Int64
	var hungUp sync.WaitGroup
	hungUp.Add(1)
	address := listen(t, func(_ int, conn net.Conn) {
		defer hungUp.Done()
		connections.Add(1)
		n, _ := io.Copy(io.Discard, conn)
		bytes.Add(n)
	})
	t.Run("before a connection is made", func(t *testing.T) {
		req := call()
		req.Deadline = time.Now().Add(-time.Millisecond)
		_, err := newClient(t, address).Create(t.Context(), req)
		expect(t, err, SafeToRetry, ErrDeadline)
		if !strings.Contains(err.Error(), ErrDeadline.Error()) {
			t.Errorf("%q does not name the deadline", err)
		}
		if connections.Load() != 0 {
			t.Error("a connection was made")
		}
	})
	// A worker that sleeps after the first look, while it connects, is stopped by the second.
	t.Run("at the wire", func(t *testing.T) {
		c := newClient(t, address)
		g := &gate{ctx: t.Context(), deadline: time.Now().Add(-time.Millisecond)}
		ctx := httptrace.WithClientTrace(t.Context(), g.trace())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader("To=x"))
		if err != nil {
			t.Fatal(err)
		}
		// net/http tells this, or that the connection was closed for it.
		if _, err = c.transport.RoundTrip(req); err == nil || !errors.Is(g.refusal(), ErrDeadline) {
			t.Fatalf("got %v, and the gate says %v, want ErrDeadline", err, g.refusal())
		}
		if !g.seal() {
			t.Error("the gate opened")
		}
		hungUp.Wait()
		if connections.Load() != 1 || bytes.Load() != 0 {
			t.Errorf("%d connections, %d bytes; want 1 and none", connections.Load(), bytes.Load())
		}
	})
}

func TestTheGateHoldsUnderTLSAndBehindAProxy(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 {
			t.Errorf("spoken to by %s", r.Proto)
		}
		answer(w, http.StatusCreated, `{"sid":"`+testMessage+`","status":"queued"}`)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	// A proxy that knows CONNECT only, and passes bytes on until either side hangs up.
	proxy := listen(t, func(_ int, conn net.Conn) {
		r := bufio.NewReader(conn)
		req, err := http.ReadRequest(r)
		if err != nil || req.Method != http.MethodConnect {
			t.Errorf("the proxy was asked for %v, %v", req, err)
			return
		}
		upstream, err := net.Dial("tcp", req.Host)
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		var back sync.WaitGroup
		back.Go(func() { _, _ = io.Copy(conn, upstream) })
		_, _ = io.Copy(upstream, r)
		upstream.Close()
		back.Wait()
	})
	for name, through := range map[string]string{"TLS": "", "TLS behind a proxy": proxy} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, server.URL)
			c.transport.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
			if through != "" {
				proxyURL, err := url.Parse(through)
				if err != nil {
					t.Fatal(err)
				}
				c.transport.Proxy = http.ProxyURL(proxyURL)
			}
			for range 2 { // on a new connection, and on a kept one
				before := time.Now()
				receipt, err := c.Create(t.Context(), sms())
				if err != nil {
					t.Fatal(err)
				}
				if receipt.SentAt.Before(before) {
					t.Error("the moment of writing was not seen")
				}
				late := &gate{ctx: t.Context(), deadline: time.Now().Add(-time.Second)}
				ctx := httptrace.WithClientTrace(t.Context(), late.trace())
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader("To=x"))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := c.transport.RoundTrip(req); err == nil || !errors.Is(late.refusal(), ErrDeadline) {
					t.Errorf("after the deadline: %v, and the gate says %v", err, late.refusal())
				}
			}
		})
	}
}

// net/http repeats requests on a connection that turned out to be dead, if it thinks that it may.
func TestAPostIsNeverWrittenTwice(t *testing.T) {
	created := `{"sid":"` + testMessage + `","status":"queued"}`
	for name, afterFirst := range map[string]func(r *bufio.Reader, conn net.Conn, posts *atomic.Int32){
		"closed when the second request was read": func(r *bufio.Reader, conn net.Conn, posts *atomic.Int32) {
			if readPost(r) == nil {
				posts.Add(1)
			}
		},
		"reset when the second request arrives": func(r *bufio.Reader, conn net.Conn, posts *atomic.Int32) {
			if _, err := r.Peek(1); err == nil {
				posts.Add(1)
			}
			_ = conn.(*net.TCPConn).SetLinger(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var posts atomic.Int32
			address := listen(t, func(n int, conn net.Conn) {
				r := bufio.NewReader(conn)
				if readPost(r) != nil {
					return
				}
				posts.Add(1)
				fmt.Fprintf(conn, "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(created), created)
				afterFirst(r, conn, &posts)
			})
			c := newClient(t, address)
			if _, err := c.Create(t.Context(), sms()); err != nil {
				t.Fatal(err)
			}
			_, err := c.Create(t.Context(), sms())
			expect(t, err, Ambiguous, nil)
			if n := posts.Load(); n != 2 {
				t.Errorf("two creates were posted %d times", n)
			}
		})
	}
}

func TestAnExchangeIsUsedOnce(t *testing.T) {
	var requests atomic.Int32
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		answer(w, http.StatusOK, `{}`)
	})
	e, _ := c.begin(t.Context(), "try twice")
	for n := range 2 {
		if _, err := e.SendRequest(http.MethodPost, "https://api.twilio.com/x", url.Values{"a": {"b"}}, nil); (err == nil) != (n == 0) {
			t.Errorf("request %d: %v", n+1, err)
		}
	}
	if requests.Load() != 1 {
		t.Errorf("%d requests were sent", requests.Load())
	}
}

// twilio-go never closes the body of an error answer: 100 of them left 300 goroutines.
func TestErrorAnswersLeakNoConnections(t *testing.T) {
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, strings.Repeat("<p>unavailable</p>", 500))
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	c := newClient(t, server.URL)

	before := runtime.NumGoroutine()
	for range 100 {
		_, err := c.Create(t.Context(), sms())
		expect(t, err, Ambiguous, nil)
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("100 requests, one after the other, took %d connections", n)
	}
	if after := runtime.NumGoroutine(); after > before+10 {
		t.Errorf("%d goroutines became %d", before, after)
	}
}

func TestConcurrentCreatesShareTheConnections(t *testing.T) {
	var opened, asking, most atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for now := asking.Add(1); ; {
			if before := most.Load(); now <= before || most.CompareAndSwap(before, now) {
				break
			}
		}
		defer asking.Add(-1)
		to := r.PostFormValue("To")
		answer(w, http.StatusCreated, `{"sid":"SM`+fmt.Sprintf("%032s", to[len(to)-4:])+`","status":"queued","num_segments":"1"}`)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	c := newClient(t, server.URL, func(o *Options) { o.MaxConnections = 4 })

	var creates sync.WaitGroup
	for n := range 200 {
		creates.Go(func() {
			req := sms()
			req.To = fmt.Sprintf("+1555555%04d", n)
			req.Deadline = time.Now().Add(time.Minute)
			receipt, err := c.Create(t.Context(), req)
			if want := fmt.Sprintf("SM%032d", n); err != nil || receipt.SID != want {
				t.Errorf("SID %s, %v; want %s", receipt.SID, err, want)
			}
		})
	}
	creates.Wait()
	if n := most.Load(); n > 4 {
		t.Errorf("%d creates at the same time, want at most 4", n)
	}
	// One that is opened while another becomes free may be closed again.
	if n := opened.Load(); n > 20 {
		t.Errorf("200 creates took %d connections", n)
	}
}

func TestReadsAreNeverAmbiguous(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) { answer(w, http.StatusBadGateway, "<html>") })
	_, err := c.Fetch(t.Context(), notify.SMS, testMessage)
	expect(t, err, SafeToRetry, nil)
	leaksNothing(t, err, sms())
	if strings.Contains(err.Error(), testMessage) {
		t.Errorf("%q repeats the SID", err)
	}
}
