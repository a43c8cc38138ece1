package simulator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// inboundCall is somebody who rings a number. It follows the TwiML that the number's webhook answers, until it ends
// or the caller hangs up. The lock of its world guards what is written behind mu.
type inboundCall struct {
	w           *world
	account     string
	token       string
	sid         string
	from, to    string
	voiceURL    string
	voiceMethod string
	fallbackURL string
	statusURL   string
	callers     Callers // how this caller behaves
	record      *record // in the list of calls
	hangUp      context.CancelCauseFunc

	// mu
	status    string
	startedAt time.Time
	endedAt   time.Time
	outcome   string
	problem   string // why the outcome is failed
	taskSID   string
	operator  string // the worker who answered
	digits    string
	stay      *stay
	requests  []webhookRequest
}

// webhookRequest is one request that a call made for instructions.
type webhookRequest struct {
	path       string
	took       time.Duration
	httpStatus int
}

// The ways in which an inbound call can end.
const (
	outcomeAnswered  = "answered"  // an operator took it
	outcomeAbandoned = "abandoned" // the caller hung up before
	outcomeLeft      = "left"      // it left the queue without an operator: by Leave, or because its task was canceled
	outcomeEnded     = "ended"     // the document ended, or hung up
	outcomeFailed    = "failed"    // a webhook failed, or answered what is not TwiML
)

var (
	errHungUp   = errors.New("the caller hung up")
	errFinished = errors.New("the document hung up")
	errDone     = errors.New("the document that took the place of another is over")
)

// live goes through the whole call.
func (c *inboundCall) live(ctx context.Context) {
	defer c.hangUp(nil)
	if patience := c.callers.PatienceMS; patience != nil {
		timer := time.AfterFunc(patience.pick(), func() { c.giveUp() })
		defer timer.Stop()
	}
	c.finish(c.ring(ctx))
}

// giveUp hangs up for a caller who has waited for too long; one who talks to an operator does not wait.
func (c *inboundCall) giveUp() {
	c.w.mu.Lock()
	talking := c.stay != nil && c.stay.operator != ""
	c.w.mu.Unlock()
	if !talking {
		c.hangUp(errHungUp)
	}
}

// ring follows the document of the number's webhook. Where that, or any document after it, cannot be fetched or makes
// no sense, the number's fallback is asked for one. https://www.twilio.com/docs/usage/security/availability-reliability
func (c *inboundCall) ring(ctx context.Context) error {
	err := c.begin(ctx, c.voiceURL, c.voiceMethod, nil)
	if !broken(err) || c.fallbackURL == "" || ctx.Err() != nil {
		return err
	}
	failure := url.Values{"ErrorUrl": {c.voiceURL}, "ErrorCode": {"12100"}}
	if failed, ok := errors.AsType[*webhookError](err); ok {
		failure = url.Values{"ErrorUrl": {failed.url}, "ErrorCode": {failed.code}}
	}
	return c.begin(ctx, c.fallbackURL, http.MethodPost, failure)
}

// broken reports whether a call ended by an error, and not as documents and callers end calls.
func broken(err error) bool {
	return err != nil && !errors.Is(err, errHungUp) && !errors.Is(err, errFinished) && !errors.Is(err, errDone)
}

// begin follows a document from its beginning.
func (c *inboundCall) begin(ctx context.Context, address, method string, more url.Values) error {
	verbs, err := c.fetch(ctx, address, method, more, knownVerbs)
	if err != nil {
		return err
	}
	c.w.mu.Lock()
	c.status = "in-progress"
	c.w.mu.Unlock()
	return c.follow(ctx, address, verbs)
}

// webhookError is a document that could not be fetched, or that makes no sense.
type webhookError struct {
	url    string
	code   string // of Twilio's
	reason string
}

func (e *webhookError) Error() string { return e.reason }

// finish notes how the call ended, and tells the number's status callback.
func (c *inboundCall) finish(err error) {
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	c.endedAt, c.status = time.Now(), "completed"
	switch {
	case c.operator != "":
		c.outcome = outcomeAnswered
	case c.outcome != "":
	case errors.Is(err, errHungUp):
		c.outcome = outcomeAbandoned
	case broken(err):
		c.outcome, c.problem = outcomeFailed, err.Error()
		w.logger.Warn("inbound call failed", "sid", c.sid, "error", err)
	default:
		c.outcome = outcomeEnded
	}
	if c.statusURL == "" {
		return
	}
	params := c.params()
	seconds := int((c.endedAt.Sub(c.startedAt) + time.Second - 1) / time.Second)
	params.Set("CallDuration", strconv.Itoa(seconds))
	params.Set("Duration", strconv.Itoa((seconds+59)/60))
	params.Set("Timestamp", *twilioDate(c.endedAt))
	params.Set("SequenceNumber", "0")
	params.Set("CallbackSource", "call-progress-events")
	d := newDelivery(c.statusURL, http.MethodPost, c.token, nil)
	w.pass(c, d, d.arrange(w.behaviour.Callbacks, []callback{{
		hook: d.hook, status: c.status, params: sorted(params), token: randomHex(),
	}}, true))
}

func (c *inboundCall) note(a attempt) {
	c.requests = append(c.requests, webhookRequest{path: "status callback", took: time.Since(a.at), httpStatus: a.httpStatus})
}

func (c *inboundCall) label() string { return c.sid }

// params are those of every voice webhook. https://www.twilio.com/docs/voice/twiml#request-parameters
func (c *inboundCall) params() url.Values {
	params := url.Values{
		"AccountSid": {c.account}, "ApiVersion": {apiVersion}, "CallSid": {c.sid}, "CallStatus": {c.status},
		"Direction": {"inbound"}, "From": {c.from}, "To": {c.to}, "Caller": {c.from}, "Called": {c.to},
	}
	for _, end := range []string{"To", "Called", "From", "Caller"} {
		for _, part := range []string{"City", "State", "Zip", "Country"} {
			params.Set(end+part, "")
		}
	}
	return params
}

// fetch asks a webhook what to do next.
func (c *inboundCall) fetch(ctx context.Context, address, method string, more url.Values, allowed []string) ([]verb, error) {
	path := address
	if u, err := url.Parse(address); err == nil {
		path = u.Path
	}
	if definition, ok := c.studioFlow(address); ok {
		c.w.mu.Lock()
		c.requests = append(c.requests, webhookRequest{path: path, httpStatus: http.StatusOK})
		c.w.mu.Unlock()
		return definition.verbs()
	}
	c.w.mu.Lock()
	params := c.params()
	c.w.mu.Unlock()
	maps.Copy(params, more)
	d := newDelivery(address, method, c.token, nil)
	asked := time.Now()
	r := c.w.ask(ctx, callback{hook: d.hook, status: "voice", params: sorted(params), token: randomHex()})
	c.w.mu.Lock()
	c.requests = append(c.requests, webhookRequest{path: path, took: time.Since(asked), httpStatus: r.status})
	c.w.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case r.trouble != "":
		reason := fmt.Sprintf("POST %s was answered %d (%s)", path, r.status, r.trouble)
		return nil, &webhookError{address, "11200", reason}
	case r.status == http.StatusNoContent || len(r.body) == 0:
		return nil, nil
	}
	verbs, err := parseDocument(r.body, allowed)
	if err != nil {
		return nil, &webhookError{address, "12100", fmt.Sprintf("POST %s: %v", path, err)}
	}
	return verbs, nil
}

// ask makes a request, again where its terms say so. It does not wait for the answer once the context is done.
func (w *world) ask(ctx context.Context, c callback) reply {
	c.since = time.Now()
	for {
		c.tries++
		answered := make(chan reply, 1)
		w.inFlight.Go(func() { answered <- w.poster.ask(c) })
		var r reply
		select {
		case r = <-answered:
		case <-ctx.Done():
			return reply{trouble: "rt"}
		}
		pause := retryPause(c.tries)
		if r.trouble == "" || !c.hook.terms.retry(r.trouble, c.tries) ||
			time.Since(c.since)+pause >= c.hook.terms.totalTimeout || wait(ctx, pause) != nil {
			return r
		}
	}
}

// wait lets time pass, unless the context is done before.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// hear lets seconds of the call pass.
func (c *inboundCall) hear(ctx context.Context, seconds int) error {
	return wait(ctx, time.Duration(seconds)*milliseconds(c.w.behave().SecondMS))
}

// follow does what a document says, and what follows from it.
func (c *inboundCall) follow(ctx context.Context, at string, verbs []verb) error {
	for _, v := range verbs {
		if err := c.do(ctx, at, v, knownVerbs); err != nil {
			return err
		}
	}
	return nil
}

func (c *inboundCall) do(ctx context.Context, at string, v verb, allowed []string) error {
	switch v.name {
	case "Say":
		return c.hear(ctx, saySeconds)
	case "Play":
		return c.hear(ctx, playSeconds)
	case "Record": // of a flow: the caller speaks
		return c.hear(ctx, recordSeconds)
	case "Pause":
		return c.hear(ctx, v.seconds("length", 1))
	case "Gather":
		return c.gather(ctx, at, v, allowed)
	case "Redirect":
		return c.goOn(ctx, resolve(at, v.text), v.attribute("method", http.MethodPost), nil, allowed)
	case "Enqueue":
		return c.enqueue(ctx, at, v)
	case "Leave":
		return errLeft
	default: // Hangup, Reject
		return errFinished
	}
}

// goOn follows the document at another address in place of the present one.
func (c *inboundCall) goOn(ctx context.Context, address, method string, more url.Values, allowed []string) error {
	verbs, err := c.fetch(ctx, address, method, more, allowed)
	if err != nil {
		return err
	}
	for _, v := range verbs {
		if err := c.do(ctx, address, v, allowed); err != nil {
			return err
		}
	}
	return errDone
}

// gather hears what is said, and perhaps presses a key: then the action's document takes the present one's place.
func (c *inboundCall) gather(ctx context.Context, at string, v verb, allowed []string) error {
	for _, inner := range v.inner {
		if err := c.do(ctx, at, inner, allowed); err != nil {
			return err
		}
	}
	press := c.callers.Press
	if press == nil || rand.Float64() >= press.Share {
		return c.hear(ctx, v.seconds("timeout", 5))
	}
	c.w.mu.Lock()
	c.digits = press.Digits
	c.w.mu.Unlock()
	return c.goOn(ctx, resolve(at, v.attribute("action", at)), v.attribute("method", http.MethodPost),
		url.Values{"Digits": {press.Digits}, "msg": {"Gather End"}, "FinishedOnKey": {""}}, allowed)
}

// enqueue waits for an operator, and goes on with the document of the action, or behind the verb.
func (c *inboundCall) enqueue(ctx context.Context, at string, v verb) error {
	result, err := c.queue(ctx, at, v)
	more := url.Values{"QueueResult": {result.word}, "QueueSid": {result.queueSID},
		"QueueTime": {strconv.Itoa(result.seconds)}}
	action := v.attribute("action", "")
	if err != nil {
		if action != "" && result.word != "" {
			// Nobody hears the answer any more, but Twilio tells the action all the same.
			told, stop := context.WithTimeout(c.w.living, defaultTotalTimeout)
			defer stop()
			_, _ = c.fetch(told, resolve(at, action), v.attribute("method", http.MethodPost), more, knownVerbs)
		}
		return err
	}
	if action == "" {
		return nil
	}
	return c.goOn(ctx, resolve(at, action), v.attribute("method", http.MethodPost), more, knownVerbs)
}

// taskAttributes are those of the document, and what Enqueue adds to them.
func (c *inboundCall) taskAttributes(text string) (string, map[string]any, error) {
	known := map[string]any{}
	if text != "" {
		if err := json.Unmarshal([]byte(text), &known); err != nil || known == nil {
			return "", nil, errors.New("the attributes in <Task> are not a JSON object (Twilio's error 14221)")
		}
	}
	for name, value := range map[string]string{
		"call_sid": c.sid, "account_sid": c.account, "from": c.from, "to": c.to, "caller": c.from, "called": c.to,
		"direction": "inbound", "call_status": c.status, "api_version": apiVersion,
	} {
		known[name] = value
	}
	encoded, err := json.Marshal(known)
	if err != nil {
		return "", nil, fmt.Errorf("task attributes: %w", err)
	}
	return string(encoded), known, nil
}
