package simulator

import (
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// delivery is how one record's callback URL is told about it, or one task's or worker's. The lock of its world guards it.
type delivery struct {
	hook     *hook
	events   []string // of a call: those that the URL wants to hear of; nil: all
	sequence int      // how many events were told so far
	held     []callback
	queue    []callback
	posting  bool
}

// hook is where callbacks go, and the terms on which they do. Nobody changes it.
type hook struct {
	url    string // without its fragment
	target string // the same as it is asked for; empty where it cannot be read
	method string
	token  string
	terms  terms
}

func newHook(callbackURL, method, token string) *hook {
	address, fragment, _ := strings.Cut(callbackURL, "#")
	h := &hook{url: address, method: method, token: token, terms: parseTerms(fragment)}
	// Most were checked when they were given; the others cannot be reached.
	if u, err := url.Parse(address); err == nil {
		h.target = u.String()
	}
	return h
}

// callback is one event that is told to a hook.
type callback struct {
	hook   *hook
	status string
	params params
	token  string // the same when it is told again
	tries  int
	since  time.Time // when it was first tried
}

// attempt is one callback that was made.
type attempt struct {
	status     string
	at         time.Time
	httpStatus int // 0: there was no answer
}

// newDelivery returns nil when there is no URL to tell.
func newDelivery(callbackURL, method, token string, events []string) *delivery {
	if callbackURL == "" {
		return nil
	}
	if method == "" {
		method = http.MethodPost
	}
	return &delivery{events: events, hook: newHook(callbackURL, method, token)}
}

// redirect sends what is told from now on to another URL.
func (d *delivery) redirect(callbackURL, method string) {
	if method == "" {
		method = d.hook.method
	}
	d.hook = newHook(callbackURL, method, d.hook.token)
}

// tell returns the callbacks that are due once the record has taken a step.
func (d *delivery) tell(r *record, s step, now time.Time) []callback {
	var due []callback
	if d.events == nil || slices.Contains(d.events, s.event) {
		told := r.kind.callbackParams(r, s, now)
		if d.events != nil {
			told = told.with("SequenceNumber", strconv.Itoa(d.sequence))
			d.sequence++
		}
		due = []callback{{hook: d.hook, status: s.status, params: told, token: randomHex()}}
	}
	return d.arrange(r.behaviour.Callbacks, due, len(r.steps) == 0)
}

// arrange puts what is due, and what was held back so far, into the order in which the mode has it told. last says
// that nothing follows any more.
func (d *delivery) arrange(mode CallbackMode, due []callback, last bool) []callback {
	switch mode {
	case Lost:
		return nil
	case Ordered, BeforeAnswer:
		return due
	}
	d.held = append(d.held, due...)
	switch {
	case mode == Repeated && last:
		return append(due, d.releaseHeld()...)
	case mode == Repeated:
		return due
	case !last:
		return nil
	}
	held := d.releaseHeld()
	if mode == Reversed {
		slices.Reverse(held)
	} else {
		rand.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
	}
	return held
}

func (d *delivery) releaseHeld() []callback {
	held := d.held
	d.held = nil
	return held
}

// send hands callbacks to the couriers, behind those of the record that still wait. The world is locked.
func (w *world) send(r *record, due []callback) {
	d := r.delivery
	r.forgetDelivery()
	w.pass(recordSubject{w, r}, d, due)
}

// subject is what callbacks tell of, and what notes the attempts to.
type subject interface {
	note(attempt)  // the world is locked
	label() string // for the log
}

type recordSubject struct {
	w *world
	r *record
}

func (s recordSubject) note(a attempt) {
	s.r.callbacks = append(s.r.callbacks, a)
	s.w.callbacks++
}

func (s recordSubject) label() string { return s.r.sid }

// pass hands callbacks of a subject to the couriers. The world is locked.
func (w *world) pass(of subject, d *delivery, due []callback) {
	if len(due) == 0 {
		return
	}
	d.queue = append(d.queue, due...)
	if !d.posting {
		d.posting = true
		w.couriers.do(func() { w.post(of, d) })
	}
}

// forgetDelivery frees what a record that says nothing more does not need.
func (r *record) forgetDelivery() {
	if r.complete() {
		r.delivery = nil
	}
}

// post makes a delivery's callbacks one after the other until none is left.
func (w *world) post(of subject, d *delivery) {
	for {
		w.mu.Lock()
		if len(d.queue) == 0 {
			d.posting = false
			w.mu.Unlock()
			return
		}
		c := d.queue[0]
		d.queue = d.queue[1:]
		w.mu.Unlock()
		w.attempt(of, c)
	}
}

// attempt makes a callback, notes what came of it, and sees to another try where it met trouble.
func (w *world) attempt(of subject, c callback) {
	w.mu.Lock()
	if w.closing {
		w.mu.Unlock()
		return
	}
	w.inFlight.Add(1)
	w.mu.Unlock()
	defer w.inFlight.Done()

	at := time.Now()
	if c.tries == 0 {
		c.since = at
	}
	c.tries++
	r := w.poster.ask(c)

	w.mu.Lock()
	of.note(attempt{status: c.status, at: at, httpStatus: r.status})
	w.mu.Unlock()
	if r.trouble != "" {
		w.tryAgain(of, c, r.status, r.trouble)
	}
}

// tryAgain has a callback that met trouble tried again later, where its terms say so.
func (w *world) tryAgain(of subject, c callback, httpStatus int, trouble trouble) {
	w.logger.Debug("callback failed", "of", of.label(), "status", c.status, "trouble", trouble,
		"http_status", httpStatus, "tries", c.tries)
	if pause := retryPause(c.tries); c.hook.terms.retry(trouble, c.tries) &&
		time.Since(c.since)+pause < c.hook.terms.totalTimeout {
		w.timetable.after(pause, func() { w.couriers.do(func() { w.attempt(of, c) }) })
	}
}

// retryPause is how long a callback waits after so many tries: 100, 200, 400, 800 and 1600 ms. Twilio does not
// say how long it waits; all five fit into its total time-out of 15 s.
func retryPause(tries int) time.Duration { return 50 * time.Millisecond << tries }
