package simulator

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"
)

// poster makes the HTTP requests of callbacks, over connections that are kept.
type poster struct {
	client *http.Client
}

func newPoster() *poster {
	return &poster{client: &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: callbackConnections,
		IdleConnTimeout:     90 * time.Second,
	}}}
}

func (p *poster) close() { p.client.CloseIdleConnections() }

// reply is what a callback was answered.
type reply struct {
	status      int // 0: there was no answer
	contentType string
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
	ctx, cancel := context.WithDeadline(ctx, c.since.Add(c.hook.terms.totalTimeout))
	defer cancel()
	// One clock measures both stages: the connection's time-out, then, once there is one, the answer's.
	timeout := time.AfterFunc(c.hook.terms.connectTimeout, cancel)
	defer timeout.Stop()
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		connected.Store(true)
		timeout.Reset(c.hook.terms.readTimeout)
	}})

	request, err := c.request(ctx)
	if err != nil {
		return reply{trouble: "ct"} // the URL was checked when it was given; it cannot be reached for some other reason
	}
	response, err := p.client.Do(request)
	switch {
	case err != nil && connected.Load():
		return reply{trouble: "rt"}
	case err != nil:
		return reply{trouble: "ct"}
	}
	defer func() { _ = response.Body.Close() }()
	// The body is read in any case, so that the connection is kept.
	body, err := io.ReadAll(io.LimitReader(response.Body, maxFormBytes))
	r := reply{status: response.StatusCode, contentType: response.Header.Get("Content-Type"), body: body}
	switch class := response.StatusCode / 100; {
	case class == 4 || class == 5:
		r.trouble = trouble(fmt.Sprintf("%dxx", class))
	case err != nil:
		r.trouble = "rt"
	}
	return r
}

// request builds the callback's request: a form, or for GET a query behind the URL's own, signed.
func (c callback) request(ctx context.Context) (*http.Request, error) {
	address, signed, body := c.hook.url, c.params, c.params.Encode()
	if c.hook.method == http.MethodGet {
		separator := "?"
		if strings.Contains(address, "?") {
			separator = "&"
		}
		address, signed, body = address+separator+body, nil, ""
	}
	request, err := http.NewRequestWithContext(ctx, c.hook.method, address, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=UTF-8")
	}
	request.Header.Set("Accept", "*/*")
	request.Header.Set("User-Agent", "TwilioProxy/1.1")
	request.Header.Set("X-Twilio-Signature", sign(c.hook.token, address, signed))
	request.Header.Set("I-Twilio-Idempotency-Token", c.token)
	return request, nil
}
