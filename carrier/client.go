// Package carrier is Twilio, seen from our code: it creates messages and calls, fetches and lists
// them, tells what an error means for the next try, and checks that a callback is Twilio's own.
//
// It speaks through twilio-go, and mends in a twilio-go client of its own what twilio-go's leaves
// open: contexts, time-outs, the base URL, HTTP status and headers of errors, and bodies that are
// never closed. Every error that leaves the package is free of account SIDs, numbers, URLs and bodies.
package carrier

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	twilio "github.com/twilio/twilio-go/client"
	openapi "github.com/twilio/twilio-go/rest/api/v2010"

	"github.com/todoku/todoku/clock"
)

// Options says how to reach Twilio. Only the credentials are required.
type Options struct {
	AccountSID string // AC…
	AuthToken  string // the account's auth token; only letters and digits, as all of Twilio's are

	// APIKeySID and APIKeySecret take the auth token's place in requests, where both are set.
	APIKeySID, APIKeySecret string

	// APIURL is where Twilio is found, with or without a path prefix: "http://127.0.0.1:4010".
	// Empty means Twilio's own address, where TWILIO_EDGE and TWILIO_REGION are respected.
	APIURL string

	Timeout        time.Duration // of one request, from the wait for a connection to the last byte; 0 means 10 s
	MaxConnections int           // open at the same time; more requests wait for one; 0 means 64
	UserAgent      string        // added to twilio-go's own, for instance "todoku/1.2"
}

const (
	defaultTimeout        = 10 * time.Second
	defaultMaxConnections = 64

	// Connections are dropped sooner than load balancers drop theirs (60 s is usual), so that a
	// request rarely meets a connection that is being closed, which would make it ambiguous.
	idleConnectionTimeout = 30 * time.Second

	// The longest request is a call with 4,000 characters of TwiML, percent-encoded. Kept in one
	// buffer it is written at once, after the last look at the deadline.
	writeBufferSize = 64 << 10
)

// Client sends through one Twilio account. It is safe for concurrent use.
type Client struct {
	accountSID string
	authToken  string
	basicAuth  string   // the header's value
	userAgent  string   // the header's value
	base       *url.URL // nil: Twilio's own address
	edge       string
	region     string
	timeout    time.Duration
	transport  *http.Transport
	clock      clock.Offset         // of Twilio
	knownKind  atomic.Pointer[Kind] // of what is at base, once it has said so
}

var (
	accountSIDPattern = regexp.MustCompile(`^AC[0-9a-zA-Z]+$`)
	authTokenPattern  = regexp.MustCompile(`^[0-9a-zA-Z]+$`)
)

// New checks the options and returns a client. It does not connect.
func New(o Options) (*Client, error) {
	// twilio-go refuses other characters too, but with error codes that mean something else.
	if !accountSIDPattern.MatchString(o.AccountSID) {
		return nil, errors.New("carrier: the account SID must be AC followed by letters and digits; copy it from the Twilio Console")
	}
	if !authTokenPattern.MatchString(o.AuthToken) {
		return nil, errors.New("carrier: the auth token must consist of letters and digits; copy it from the Twilio Console")
	}
	user, password := o.AccountSID, o.AuthToken
	if o.APIKeySID != "" {
		user, password = o.APIKeySID, o.APIKeySecret
	}
	if o.Timeout < 0 {
		return nil, fmt.Errorf("carrier: the time-out %s is negative", o.Timeout)
	}
	if o.MaxConnections < 0 {
		return nil, fmt.Errorf("carrier: the number of connections %d is negative", o.MaxConnections)
	}
	var base *url.URL
	if o.APIURL != "" {
		var err error
		if base, err = parseBaseURL(o.APIURL); err != nil {
			return nil, fmt.Errorf("carrier: the API URL %w", err)
		}
	}
	maxConnections := cmp.Or(o.MaxConnections, defaultMaxConnections)
	environment := twilio.NewRequestHandler(nil)
	return &Client{
		accountSID: o.AccountSID,
		authToken:  o.AuthToken,
		basicAuth:  "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password)),
		userAgent:  userAgent(o.UserAgent),
		base:       base,
		edge:       environment.Edge,
		region:     environment.Region,
		timeout:    cmp.Or(o.Timeout, defaultTimeout),
		transport:  newTransport(maxConnections),
		clock:      clock.Offset{Of: clock.Twilio},
	}, nil
}

// userAgent names twilio-go, as its own client does, and the program.
func userAgent(program string) string {
	twilioGo := fmt.Sprintf("twilio-go/%s (%s %s) go/%s", twilio.LibraryVersion, runtime.GOOS, runtime.GOARCH, runtime.Version())
	return strings.TrimSpace(twilioGo + " " + program)
}

// Here translates a moment of Twilio's clock into one of this process's.
func (c *Client) Here(moment time.Time) time.Time { return c.clock.Here(moment) }

// Close closes the connections that are not in use.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// newTransport speaks HTTP/1.1 only: one exchange per connection is what makes it possible to say
// whether a request was written. HTTP/2 would write a POST a second time after a GOAWAY.
func newTransport(maxConnections int) *http.Transport {
	var http1 http.Protocols
	http1.SetHTTP1(true)
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialWire(&net.Dialer{Timeout: 5 * time.Second}),
		TLSHandshakeTimeout: 5 * time.Second,
		Protocols:           &http1,
		MaxConnsPerHost:     maxConnections,
		MaxIdleConns:        maxConnections,
		MaxIdleConnsPerHost: maxConnections,
		IdleConnTimeout:     idleConnectionTimeout,
		WriteBufferSize:     writeBufferSize,
	}
}

// parseBaseURL reads an http or https URL to which paths are appended. Its errors complete the
// sentence "the … URL", and do not repeat the value.
func parseBaseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, errors.New("cannot be parsed")
	case u.Scheme != "https" && u.Scheme != "http", u.Hostname() == "":
		return nil, errors.New("must begin with https:// or http:// and a host")
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, errors.New("must not have credentials, a query or a fragment")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = strings.TrimRight(u.RawPath, "/")
	return u, nil
}

// begin prepares one exchange with Twilio, and twilio-go's service that carries it out.
func (c *Client) begin(ctx context.Context, op string) (*exchange, *openapi.ApiService) {
	e := &exchange{client: c, ctx: ctx, op: op, limit: singleAnswerLimit}
	return e, openapi.NewApiService(e.handler())
}

// handler is what twilio-go's services carry the exchange out with.
func (e *exchange) handler() *twilio.RequestHandler {
	return &twilio.RequestHandler{Client: e, Edge: e.client.edge, Region: e.client.region}
}
