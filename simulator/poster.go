package simulator

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	// maxReplyBytes is how much of an answer to a callback is read.
	maxReplyBytes = maxFormBytes
	// maxReplyHeaderBytes is how long the header of an answer may be.
	maxReplyHeaderBytes = 32 << 10
	// maxRedirects is how many redirects of one callback are followed.
	maxRedirects = 10
	// idleTimeout is how long a connection is kept that nobody needs.
	idleTimeout = 90 * time.Second
)

// poster makes the HTTP requests of callbacks, over connections that are kept until its context is done.
type poster struct {
	ctx     context.Context
	tls     *tls.Config // of connections to https; nil: Go's own
	mu      sync.Mutex
	clients map[limits]*fasthttp.Client
	desks   sync.Pool // of *desk
}

// limits are the terms that a client has for all its requests.
type limits struct{ connect, read time.Duration }

// desk is where a request is made ready: memory that is used again.
type desk struct {
	signer signer
	form   []byte
}

func newPoster(ctx context.Context) *poster {
	return &poster{
		ctx:     ctx,
		clients: make(map[limits]*fasthttp.Client),
		desks:   sync.Pool{New: func() any { return new(desk) }},
	}
}

// client returns the client for such terms.
func (p *poster) client(t terms) *fasthttp.Client {
	l := limits{connect: min(t.connectTimeout, t.totalTimeout), read: t.readTimeout}
	p.mu.Lock()
	defer p.mu.Unlock()
	client := p.clients[l]
	if client == nil {
		client = &fasthttp.Client{
			DialTimeout: func(address string, left time.Duration) (net.Conn, error) {
				return dial(p.ctx, address, min(l.connect, left))
			},
			TLSConfig:                 p.tls,
			WriteTimeout:              l.connect, // which is, from the dialing on, that of TLS's handshake as well
			ReadTimeout:               l.read,
			ReadBufferSize:            maxReplyHeaderBytes,
			MaxResponseBodySize:       maxReplyBytes,
			MaxConnsPerHost:           math.MaxInt, // there are as many as couriers, and callers who ask
			MaxIdleConnDuration:       idleTimeout,
			ConnPoolStrategy:          fasthttp.LIFO,
			DisablePathNormalizing:    true,
			MaxIdemponentCallAttempts: math.MaxInt,
			// Without this a GET is made five times, and a POST fails on a connection that was closed while it was kept.
			RetryIfErr: func(_ *fasthttp.Request, _ int, err error) (resetTimeout, retry bool) {
				return false, errors.Is(err, errStale)
			},
		}
		p.clients[l] = client
	}
	return client
}

// reply is what a callback was answered.
type reply struct {
	status      int // 0: there was no answer
	contentType string
	body        []byte
	trouble     trouble
}

// ask makes one callback and returns what it was answered.
func (p *poster) ask(c callback) reply {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	response.Header.SetNoDefaultContentType(true)
	p.write(request, c)
	client, total := p.client(c.hook.terms), c.since.Add(c.hook.terms.totalTimeout)
	for range 1 + maxRedirects {
		err := client.DoDeadline(request, response, total)
		switch {
		case err != nil && response.RemoteAddr() == nil:
			return reply{trouble: "ct"} // there was no connection
		case err != nil && !errors.Is(err, fasthttp.ErrBodyTooLarge):
			return reply{trouble: "rt"}
		case redirect(request, response):
			continue
		}
		r := reply{
			status:      response.StatusCode(),
			contentType: string(response.Header.ContentType()),
			body:        bytes.Clone(response.Body()),
		}
		switch class := r.status / 100; {
		case class == 4 || class == 5:
			r.trouble = trouble(fmt.Sprintf("%dxx", class))
		case err != nil:
			r.trouble = "rt"
		}
		return r
	}
	return reply{trouble: "rt"} // it was sent from one place to the next
}

// write makes the request of a callback: a form, or for GET a query behind the URL's own, signed.
func (p *poster) write(request *fasthttp.Request, c callback) {
	d := p.desks.Get().(*desk)
	defer p.desks.Put(d)
	d.form = c.params.appendForm(d.form[:0])
	target, signed, params := c.hook.target, c.hook.url, c.params
	if c.hook.method == http.MethodGet {
		separator := "?"
		if strings.Contains(signed, "?") {
			separator = "&"
		}
		query := separator + string(d.form)
		target, signed, params = target+query, signed+query, nil
	} else {
		request.SetBody(d.form)
		request.Header.SetContentType("application/x-www-form-urlencoded; charset=UTF-8")
	}
	request.SetRequestURI(target)
	request.Header.SetMethod(c.hook.method)
	request.Header.SetUserAgent("TwilioProxy/1.1")
	request.Header.Set("Accept", "*/*")
	request.Header.Set("X-Twilio-Signature", d.signer.sign(c.hook.token, signed, params))
	request.Header.Set("I-Twilio-Idempotency-Token", c.token)
}

// redirect sends the request on as its answer says, and reports whether it does. It is none of fasthttp's own, which would
// send the form with a GET, and the URL's user along. What is redirected by 301, 302 or 303
// is asked for by GET, without the form.
func redirect(request *fasthttp.Request, response *fasthttp.Response) bool {
	status, location := response.StatusCode(), response.Header.Peek("Location")
	if !fasthttp.StatusCodeIsRedirect(status) || len(location) == 0 {
		return false
	}
	if status <= http.StatusSeeOther {
		request.Header.SetMethod(http.MethodGet)
		request.ResetBody()
		request.Header.Del("Content-Type")
		request.Header.Del("Content-Length")
	}
	request.Header.Del("Authorization") // it is made of the URL's user
	return request.URI().UpdateBytesErr(location) == nil
}
