package simulator

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// poster makes the HTTP requests of callbacks, over connections that are kept. It costs half of net/http's client,
// which has two goroutines for each connection, and a timer, a trace and some channels for each request.
type poster struct {
	mu     sync.Mutex
	idle   map[string][]*connection // by host, the one that was used last at the end
	sweep  *time.Timer              // closes those that nobody needs; nil while none is kept
	closed bool
	desks  sync.Pool   // of *desk
	tls    *tls.Config // of connections to https; nil: Go's own
}

// desk is where a request is made ready: memory that is used again.
type desk struct {
	request request
	signer  signer
	form    []byte
	message []byte
}

func newPoster() *poster {
	return &poster{
		idle:  make(map[string][]*connection),
		desks: sync.Pool{New: func() any { return new(desk) }},
	}
}

// close closes the connections that are kept, and keeps none from now on.
func (p *poster) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.closeIdleSince(time.Now())
}

// maxRedirects is how many redirects of one callback are followed.
const maxRedirects = 10

// reply is what a callback was answered.
type reply struct {
	status      int // 0: there was no answer
	contentType string
	location    string
	body        []byte
	trouble     trouble
}

// post makes one callback and returns the status it was answered with, 0 for none, and what trouble it met.
func (p *poster) post(ctx context.Context, c callback) (int, trouble) {
	r := p.ask(ctx, c)
	return r.status, r.trouble
}

// ask makes one callback and returns what it was answered.
func (p *poster) ask(ctx context.Context, c callback) reply {
	desk := p.desks.Get().(*desk)
	defer p.desks.Put(desk)
	q, err := c.request(desk)
	if err != nil {
		return reply{trouble: "ct"} // the URL was checked when it was given; it cannot be reached for some other reason
	}
	total := c.since.Add(c.hook.terms.totalTimeout)
	for range maxRedirects + 1 {
		q.write(desk)
		r, err := p.exchange(ctx, q, c.hook.terms, total)
		switch class := r.status / 100; {
		case errors.Is(err, errNotConnected):
			return reply{trouble: "ct"}
		case err != nil && r.status == 0:
			return reply{trouble: "rt"}
		case class == 4 || class == 5:
			r.trouble = trouble(fmt.Sprintf("%dxx", class))
		case err != nil:
			r.trouble = "rt"
		case q.redirect(r.status, r.location):
			continue
		}
		return r
	}
	return reply{trouble: "rt"} // it was sent from one place to the next
}

// exchange makes a request over a kept connection, or over a new one where there is none or it turns out to be closed.
func (p *poster) exchange(ctx context.Context, q *request, t terms, total time.Time) (reply, error) {
	for {
		conn, err := p.connect(ctx, q, earlier(time.Now().Add(t.connectTimeout), total))
		if err != nil {
			return reply{}, errors.Join(errNotConnected, err)
		}
		r, kept, err := conn.exchange(ctx, q, earlier(time.Now().Add(t.readTimeout), total))
		if kept {
			p.keep(conn)
		}
		if !errors.Is(err, errUnheard) {
			return r, err
		}
	}
}

// errNotConnected says that there was no connection in time.
var errNotConnected = errors.New("no connection")

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// connect takes the connection to the host that was used last, or makes one.
func (p *poster) connect(ctx context.Context, q *request, deadline time.Time) (*connection, error) {
	for conn := p.take(q.host); conn != nil; conn = p.take(q.host) {
		if conn.quiet() {
			return conn, nil
		}
		_ = conn.Close()
	}
	dialer := net.Dialer{Deadline: deadline}
	dial := dialer.DialContext
	if q.address.Scheme == "https" {
		dial = (&tls.Dialer{NetDialer: &dialer, Config: p.tls}).DialContext
	}
	port := q.address.Port()
	if port == "" {
		port = q.address.Scheme
	}
	conn, err := dial(ctx, "tcp", net.JoinHostPort(q.address.Hostname(), port))
	if err != nil {
		return nil, err
	}
	return newConnection(conn, q.host)
}

func (p *poster) take(host string) *connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	idle := p.idle[host]
	if len(idle) == 0 {
		return nil
	}
	last := len(idle) - 1
	conn := idle[last]
	idle[last] = nil
	p.idle[host] = idle[:last]
	return conn
}

func (p *poster) keep(conn *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	idle := p.idle[conn.host]
	if p.closed || len(idle) == callbackConnections {
		_ = conn.Close()
		return
	}
	conn.idle = time.Now()
	p.idle[conn.host] = append(idle, conn)
	if p.sweep == nil {
		p.sweep = time.AfterFunc(idleTimeout, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.closeIdleSince(time.Now().Add(-idleTimeout))
		})
	}
}

// closeIdleSince closes what has been kept since then or longer, and looks again later at the rest. The poster is
// locked.
func (p *poster) closeIdleSince(then time.Time) {
	for host, idle := range p.idle {
		for len(idle) > 0 && !idle[0].idle.After(then) {
			_ = idle[0].Close()
			idle = idle[1:]
		}
		if p.idle[host] = idle; len(idle) == 0 {
			delete(p.idle, host)
		}
	}
	if p.sweep == nil {
		return
	}
	if p.sweep.Stop(); len(p.idle) > 0 {
		p.sweep.Reset(idleTimeout)
	} else {
		p.sweep = nil
	}
}

// request is the HTTP request of a callback.
type request struct {
	method    string
	address   *url.URL
	host      string // scheme and host: what a connection is for
	form      []byte
	signature string
	token     string
	message   []byte // how it is written
}

// request is the callback as a form, or for GET as a query behind the URL's own, signed.
func (c callback) request(d *desk) (*request, error) {
	if c.hook.address == nil {
		return nil, errors.New("the URL cannot be read")
	}
	d.form = c.params.appendForm(d.form[:0])
	q := &d.request
	*q = request{method: c.hook.method, token: c.token}
	if q.method != http.MethodGet {
		q.form, q.signature = d.form, d.signer.sign(c.hook.token, c.hook.url, c.params)
		return q, q.aim(c.hook.address)
	}
	address := *c.hook.address
	separator := "?"
	if address.RawQuery != "" || address.ForceQuery {
		separator = "&"
	}
	query := separator + string(d.form)
	address.ForceQuery, address.RawQuery = false, strings.TrimPrefix(address.RawQuery+query, "?")
	q.signature = d.signer.sign(c.hook.token, c.hook.url+query, nil)
	return q, q.aim(&address)
}

// aim sends the request to an address.
func (q *request) aim(address *url.URL) error {
	if address.Scheme != "http" && address.Scheme != "https" {
		return errors.New("it is neither http nor https")
	}
	q.address, q.host = address, address.Scheme+"://"+address.Host
	return nil
}

// redirect sends the request on as its answer says, and reports whether it does. What is redirected by 301, 302 or 303
// is asked for by GET, without the form.
func (q *request) redirect(status int, location string) bool {
	if location == "" {
		return false
	}
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		q.method, q.form = http.MethodGet, nil
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return false
	}
	to, err := q.address.Parse(location)
	return err == nil && q.aim(to) == nil
}

// write lays the request on the desk as HTTP/1.1.
func (q *request) write(d *desk) {
	m := append(d.message[:0], q.method...)
	m = append(m, ' ')
	m = append(m, q.address.RequestURI()...)
	m = append(m, " HTTP/1.1\r\nHost: "...)
	m = append(m, q.address.Host...)
	if user := q.address.User; user != nil {
		password, _ := user.Password()
		m = append(m, "\r\nAuthorization: Basic "...)
		m = base64.StdEncoding.AppendEncode(m, []byte(user.Username()+":"+password))
	}
	m = append(m, "\r\nUser-Agent: TwilioProxy/1.1\r\nAccept: */*\r\nX-Twilio-Signature: "...)
	m = append(m, q.signature...)
	m = append(m, "\r\nI-Twilio-Idempotency-Token: "...)
	m = append(m, q.token...)
	if q.method != http.MethodGet {
		m = append(m, "\r\nContent-Type: application/x-www-form-urlencoded; charset=UTF-8\r\nContent-Length: "...)
		m = strconv.AppendInt(m, int64(len(q.form)), 10)
	}
	m = append(m, "\r\n\r\n"...)
	m = append(m, q.form...)
	d.message, q.message = m, m
}
