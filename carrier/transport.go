package carrier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	twilio "github.com/twilio/twilio-go/client"
)

// The most that is read of an answer. A page of 1,000 messages with 1,600 characters each, all of
// them written as \uXXXX, is 11 MB long.
const (
	singleAnswerLimit = 1 << 20
	listAnswerLimit   = 16 << 20
	errorAnswerLimit  = 64 << 10

	// clockAge is how often Twilio's clock is learnt from an answer: it shows whole seconds, so one answer is not enough.
	clockAge = 100 * time.Millisecond
)

// ErrDeadline says that the deadline of a create passed before anything was written to the wire.
var ErrDeadline = errors.New("the deadline passed before the request was written")

// ErrHeld says that a create was held back before anything was written to the wire.
var ErrHeld = errors.New("the sender was stopped before the request was written")

// exchange is one request to Twilio and its answer. It is the twilio.BaseClient of a twilio-go
// service that lives as long as the exchange, and gives it what twilio-go's own client has no place
// for.
type exchange struct {
	client   *Client
	ctx      context.Context
	op       string
	limit    int64     // of the answer's body, in bytes
	deadline time.Time // nothing is written after it; zero: none
	held     func() bool
	page     *url.URL // when set, its path and query take the place of twilio-go's
	private  []string // values of the request that no error may repeat
	answer   any      // when set, the answer is read into it, and twilio-go is handed an empty one

	started   bool
	reads     bool   // the request changes nothing at Twilio
	status    int    // of the answer; 0: none was read
	path      string // of the request, without the base URL's prefix
	query     string
	requestID string
	header    http.Header // of the answer: it names who wrote it, should that turn out not to be Twilio
	writtenAt time.Time
}

var _ twilio.BaseClient = (*exchange)(nil)

// AccountSid is the account whose resources twilio-go's services ask for.
func (e *exchange) AccountSid() string { return e.client.accountSID }

// SetTimeout does nothing: the client's options set the time-out.
func (e *exchange) SetTimeout(time.Duration) {}

// SetOauth does nothing: the account's token is what we have.
func (e *exchange) SetOauth(twilio.OAuth) {}

// OAuth is none.
func (e *exchange) OAuth() twilio.OAuth { return nil }

// SendRequest sends the request once and reads the whole answer. It returns an answer only when
// Twilio accepted the request; everything else becomes an *Error.
func (e *exchange) SendRequest(method, address string, data url.Values, headers map[string]any, content ...byte) (*http.Response, error) {
	if e.started {
		return nil, e.fail(Ambiguous, "twilio-go tried to send the request a second time", nil)
	}
	e.started = true
	e.reads = method == http.MethodGet

	remaining := e.remaining()
	if remaining <= 0 {
		return nil, e.fail(SafeToRetry, "nothing was sent", ErrDeadline)
	}
	ctx, cancel := context.WithTimeout(e.ctx, remaining)
	defer cancel()

	wire := &gate{ctx: ctx, deadline: e.deadline, held: e.held}
	out, err := e.request(httptrace.WithClientTrace(ctx, wire.trace()), method, address, data, headers, content)
	if err != nil {
		return nil, e.fail(Request, "twilio-go made an address that cannot be parsed", nil)
	}
	asked := time.Now()
	resp, err := e.client.transport.RoundTrip(out)
	written := !wire.seal()
	if written {
		e.writtenAt = wire.openedAt
	}
	if err != nil {
		if refusal := wire.refusal(); refusal != nil {
			err = refusal
		}
		return nil, e.unanswered(written, err)
	}
	defer resp.Body.Close()
	e.requestID = resp.Header.Get("Twilio-Request-Id")
	e.status = resp.StatusCode
	e.header = resp.Header

	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		body, err := io.ReadAll(io.LimitReader(resp.Body, errorAnswerLimit))
		return nil, e.refused(resp, body, err)
	}
	if !e.client.clock.Fresh(clockAge) {
		if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil { // an error's may be that of a gateway
			e.client.clock.Learn(asked, date, time.Second, time.Now())
		}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, e.limit+1))
	switch {
	case err != nil:
		return nil, e.fail(Ambiguous, "the answer broke off: "+describe(err), err)
	case int64(len(body)) > e.limit:
		return nil, e.fail(Ambiguous, fmt.Sprintf("the answer is longer than %d MiB", e.limit>>20), nil)
	}
	if e.answer != nil {
		if err := json.Unmarshal(body, e.answer, asItIs); err != nil {
			return nil, e.undecodable(misread(err))
		}
		body = []byte("{}")
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// asItIs reads an answer whatever is odd about the rest of it: what it says of the request has happened.
var asItIs = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// misread says what is wrong with an answer, without a value of it.
func misread(err error) string {
	if wrong, ok := errors.AsType[*json.SemanticError](err); ok {
		return fmt.Sprintf("its field %q is not of the type that Twilio documents", wrong.JSONPointer)
	}
	return "it is not JSON"
}

// remaining is how long the exchange may take: the client's time-out, or nine tenths of the time
// until the deadline where that is less, so that the answer is known before the deadline.
func (e *exchange) remaining() time.Duration {
	if e.deadline.IsZero() {
		return e.client.timeout
	}
	until := left(e.deadline)
	return min(e.client.timeout, until-until/10)
}

// request is what twilio-go asks for: of a POST the data is a form, of everything else, and beside
// a body in JSON, it is the query.
func (e *exchange) request(ctx context.Context, method, address string, data url.Values, headers map[string]any, body []byte) (*http.Request, error) {
	form := method == http.MethodPost && len(body) == 0
	if form {
		body = []byte(data.Encode())
	}
	out, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	out.GetBody = nil // without it net/http cannot write a POST a second time
	if !form {
		out.URL.RawQuery = data.Encode()
	}
	for name, value := range headers {
		out.Header.Set(name, fmt.Sprint(value))
	}
	out.Header.Set("Authorization", e.client.basicAuth)
	out.Header.Set("User-Agent", e.client.userAgent)
	e.aim(out)
	return out, nil
}

// aim points the request at the configured address, of which twilio-go knows nothing.
func (e *exchange) aim(out *http.Request) {
	if e.page != nil {
		out.URL.Path, out.URL.RawPath, out.URL.RawQuery = e.page.Path, e.page.RawPath, e.page.RawQuery
	}
	e.path, e.query = out.URL.Path, out.URL.RawQuery
	base := e.client.base
	if base == nil {
		return
	}
	out.URL = &url.URL{
		Scheme:   base.Scheme,
		Host:     base.Host,
		Path:     base.Path + out.URL.Path,
		RawPath:  base.EscapedPath() + out.URL.EscapedPath(),
		RawQuery: out.URL.RawQuery,
	}
	out.Host = ""
}

// fail makes the exchange's error. What changes nothing at Twilio is never ambiguous.
func (e *exchange) fail(class Class, message string, cause error) *Error {
	if e.reads && class == Ambiguous {
		class = SafeToRetry
	}
	return &Error{
		Op:         e.op,
		Class:      class,
		HTTPStatus: e.status,
		Message:    scrub(message, e.private),
		RequestID:  e.requestID,
		cause:      cause,
	}
}

// unanswered is the error of an exchange that ended before the answer's first line.
func (e *exchange) unanswered(written bool, err error) *Error {
	switch {
	case written:
		return e.fail(Ambiguous, "no answer was read: "+describe(err), err)
	case errors.Is(err, ErrDeadline):
		return e.fail(SafeToRetry, "nothing was sent", ErrDeadline)
	case errors.Is(err, ErrHeld):
		return e.fail(SafeToRetry, "nothing was sent", ErrHeld)
	default:
		return e.fail(SafeToRetry, "nothing was sent: "+describe(err), err)
	}
}

// refused is the error of an answer that is not 2xx. readErr says that its body broke off.
func (e *exchange) refused(resp *http.Response, body []byte, readErr error) *Error {
	code, message := parseErrorBody(body, resp.StatusCode)
	if code == 0 {
		switch {
		case resp.StatusCode >= 300 && resp.StatusCode < 400:
			message = "the answer is a redirect, which is not followed; check the address of the API"
		case readErr != nil:
			message = "the answer broke off: " + describe(readErr)
		default:
			message = "the answer does not carry Twilio's error code: something in between gave it"
		}
	}
	failed := e.fail(Classify(code, resp.StatusCode), message, nil)
	failed.Code = code
	if code == 0 {
		failed.Gateway = scrub(gateway(e.status, e.header), e.private)
	}
	failed.RetryAfter = parseRetryAfter(resp.Header.Get("Retry-After"), time.Now())
	return failed
}

// failure turns what twilio-go returned into an error of ours. It is nil when err is.
func (e *exchange) failure(err error) error {
	if err == nil {
		return nil
	}
	if failed, ok := errors.AsType[*Error](err); ok {
		return failed
	}
	if e.status == 0 {
		return e.fail(Request, "twilio-go refused the request", nil)
	}
	return e.undecodable(strings.TrimPrefix(err.Error(), "json: "))
}

// undecodable is the error of a 2xx answer that does not say what it should.
func (e *exchange) undecodable(reason string) *Error {
	failed := e.fail(Ambiguous, "the answer cannot be decoded: "+reason, nil)
	failed.Gateway = scrub(gateway(e.status, e.header), e.private)
	return failed
}
