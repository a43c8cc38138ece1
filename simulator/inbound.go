package simulator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Callers is the body of POST /_simulator/inbound: people who ring a number, one after the other, from now on.
type Callers struct {
	// To is the number that they ring; its voice webhook is asked what to do, see phone_number.go.
	To string `json:"to"`
	// VoiceURL is asked in place of the number's own webhook; empty: the number has one.
	VoiceURL string `json:"voice_url"`
	// AccountSID is whose number it is; empty: that of the account, if there is only one.
	AccountSID string `json:"account_sid"`
	// From is the first caller's number; each further one has the next number. +15550100000 by default.
	From string `json:"from"`
	// Calls is how many there are; 1 by default.
	Calls int `json:"calls"`
	// PerSecond is how many begin in a second, evenly spaced; 0, the default, begins all of them at once.
	PerSecond float64 `json:"per_second"`
	// PatienceMS is how many milliseconds a caller waits for an operator before hanging up: a number, or [least,
	// most] of which each caller has one at random. Null, the default: for ever.
	PatienceMS *Span `json:"patience_ms"`
	// Press is what some callers press when a document gathers digits; null: nobody presses anything.
	Press *Press `json:"press"`
}

// Press is a key that a share of callers, from 0 to 1, press whenever they may.
type Press struct {
	Digits string  `json:"digits"`
	Share  float64 `json:"share"`
}

// maxCallers is how many calls one request may ask for.
const maxCallers = 100_000

func (c *Callers) validate() error {
	switch {
	case !isNumber(c.To):
		return errors.New("to must be a number in E.164, such as +15005550006")
	case !isNumber(c.From):
		return errors.New("from must be a number in E.164, such as +15550100000")
	case c.VoiceURL != "" && !isWebURL(c.VoiceURL):
		return errors.New("voice_url must be an absolute http or https URL")
	case c.AccountSID != "" && !isSID(c.AccountSID, "AC"):
		return errors.New("account_sid must be AC and 32 hexadecimal digits")
	case c.Calls < 1 || c.Calls > maxCallers:
		return fmt.Errorf("calls must be from 1 to %d", maxCallers)
	case c.PerSecond < 0:
		return errors.New("per_second must not be negative; 0 begins all calls at once")
	case c.Press != nil && (c.Press.Share < 0 || c.Press.Share > 1 || c.Press.Digits == ""):
		return errors.New("press must have digits, and a share from 0 to 1")
	}
	return nil
}

// postInbound lets people ring in, and answers before the first one does.
func (w *world) postInbound(rw http.ResponseWriter, r *http.Request) answer {
	callers := Callers{From: "+15550100000", Calls: 1}
	err := strictly(http.MaxBytesReader(rw, r.Body, maxFormBytes), &callers)
	if err == nil {
		err = callers.validate()
	}
	if err != nil {
		return jsonAnswer(http.StatusBadRequest, controlError{"inbound: " + err.Error()})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	number, err := w.rung(callers)
	if err != nil {
		return jsonAnswer(http.StatusConflict, controlError{"inbound: " + err.Error()})
	}
	begun := time.Now()
	for i := range callers.Calls {
		after := time.Duration(0)
		if callers.PerSecond > 0 {
			after = time.Duration(float64(i) / callers.PerSecond * float64(time.Second))
		}
		from := nextNumber(callers.From, i)
		w.timetable.after(after-time.Since(begun), func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.beginInbound(number, callers, from)
		})
	}
	w.expected += callers.Calls
	return jsonAnswer(http.StatusAccepted, map[string]int{"calls": callers.Calls})
}

// rung finds the number that is rung, and whose it is.
func (w *world) rung(callers Callers) (*phoneNumber, error) {
	sid := callers.AccountSID
	if sid == "" {
		if len(w.accounts) != 1 {
			return nil, fmt.Errorf("account_sid is needed: %d accounts have used TaskRouter or their numbers so far",
				len(w.accounts))
		}
		for only := range w.accounts {
			sid = only
		}
	}
	a, ok := w.accounts[sid]
	if !ok {
		return nil, fmt.Errorf("the account %s has not used TaskRouter or its numbers yet, so that nothing can sign for it",
			sid)
	}
	number, ok := a.number(callers.To)
	if !ok {
		return nil, fmt.Errorf("the account has no number %s", callers.To)
	}
	if callers.VoiceURL == "" && number.voiceURL == "" {
		return nil, fmt.Errorf("the number %s has no VoiceUrl, and there is no voice_url", callers.To)
	}
	rung := *number
	rung.token = a.token
	if callers.VoiceURL != "" {
		rung.voiceURL = callers.VoiceURL
	}
	return &rung, nil
}

// beginInbound begins one call. The world is locked.
func (w *world) beginInbound(number *phoneNumber, callers Callers, from string) {
	ctx, hangUp := context.WithCancelCause(w.living)
	c := &inboundCall{
		w: w, account: number.account, token: number.token, sid: newSID("CA"), from: from, to: number.name,
		voiceURL: number.voiceURL, voiceMethod: number.voiceMethod, fallbackURL: number.voiceFallbackURL,
		statusURL: number.statusCallback, callers: callers, hangUp: hangUp,
		status: "ringing", startedAt: time.Now(),
	}
	c.record = &record{sid: c.sid, account: c.account, to: c.to, from: c.from, createdAt: c.startedAt, kind: rung{c}}
	w.inbound = append(w.inbound, c)
	w.inboundCall[c.sid] = c
	w.background(func() { c.live(ctx) })
}

// nextNumber is the number so many behind the first.
func nextNumber(first string, n int) string {
	digits := []byte(first)
	for i := len(digits) - 1; i > 0 && n > 0; i-- {
		n += int(digits[i] - '0')
		digits[i] = byte('0' + n%10)
		n /= 10
	}
	return string(digits)
}

// inboundStats are in the answer to GET /_simulator/stats.
type inboundStats struct {
	Expected   int `json:"expected"`    // asked for
	Calls      int `json:"calls"`       // begun
	InProgress int `json:"in_progress"` // not over
	InQueue    int `json:"in_queue"`    // waiting for an operator
	Answered   int `json:"answered"`    // by an operator
	Abandoned  int `json:"abandoned"`   // hung up before
	Left       int `json:"left"`        // the queue, by Leave or because their task was canceled
	Ended      int `json:"ended"`       // by their document
	Failed     int `json:"failed"`      // by a webhook
}

// inboundStats counts the calls by outcome. The world is locked.
func (w *world) inboundStats() inboundStats {
	s := inboundStats{Expected: w.expected, Calls: len(w.inbound)}
	for _, c := range w.inbound {
		if c.endedAt.IsZero() {
			s.InProgress++
			if c.stay != nil && c.stay.operator == "" && !c.stay.ended {
				s.InQueue++
			}
			continue
		}
		switch c.outcome {
		case outcomeAnswered:
			s.Answered++
		case outcomeAbandoned:
			s.Abandoned++
		case outcomeLeft:
			s.Left++
		case outcomeEnded:
			s.Ended++
		case outcomeFailed:
			s.Failed++
		}
	}
	return s
}

// inboundItem is one call in the answer to GET /_simulator/inbound.
type inboundItem struct {
	SID       string         `json:"sid"`
	From      string         `json:"from"`
	To        string         `json:"to"`
	Status    string         `json:"status"`
	Outcome   string         `json:"outcome"` // empty while it goes on
	Problem   string         `json:"problem,omitempty"`
	TaskSID   string         `json:"task_sid,omitempty"`
	Operator  string         `json:"operator,omitempty"`
	Digits    string         `json:"digits,omitempty"`
	CreatedAt instant        `json:"created_at"`
	EndedAt   *instant       `json:"ended_at"`
	Requests  []inboundAsked `json:"requests"`
}

type inboundAsked struct {
	Path       string  `json:"path"`
	HTTPStatus int     `json:"http_status"`
	TookMS     float64 `json:"took_ms"`
}

// inboundItems are all inbound calls, oldest first.
func (w *world) inboundItems() answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	items := make([]inboundItem, len(w.inbound))
	for i, c := range w.inbound {
		items[i] = inboundItem{
			SID: c.sid, From: c.from, To: c.to, Status: c.status, Outcome: c.outcome, Problem: c.problem,
			TaskSID: c.taskSID, Operator: c.operator, Digits: c.digits, CreatedAt: instant(c.startedAt),
			Requests: make([]inboundAsked, len(c.requests)),
		}
		if !c.endedAt.IsZero() {
			items[i].EndedAt = new(instant(c.endedAt))
		}
		for j, asked := range c.requests {
			items[i].Requests[j] = inboundAsked{
				Path: asked.path, HTTPStatus: asked.httpStatus, TookMS: float64(asked.took.Microseconds()) / 1000,
			}
		}
	}
	return jsonAnswer(http.StatusOK, map[string]any{"items": items, "dialed": append([]string{}, w.dialed...)})
}

// postOperators has every worker move to an activity, by its name, as people do who begin or end their day.
func (w *world) postOperators(rw http.ResponseWriter, r *http.Request) answer {
	var shift struct {
		Activity string `json:"activity"`
	}
	if err := strictly(http.MaxBytesReader(rw, r.Body, maxFormBytes), &shift); err != nil {
		return jsonAnswer(http.StatusBadRequest, controlError{"operators: " + err.Error()})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	moved := 0
	for _, a := range w.accounts {
		for _, ws := range a.workspaces.order {
			for _, next := range ws.activities.order {
				if next.name != shift.Activity {
					continue
				}
				for _, k := range ws.workers.order {
					k.moveTo(w, next)
					moved++
				}
			}
			w.route(ws)
		}
	}
	if moved == 0 {
		return jsonAnswer(http.StatusConflict, controlError{
			"operators: no worker could move to an activity named " + shift.Activity})
	}
	return jsonAnswer(http.StatusOK, map[string]int{"moved": moved})
}

// rung is what a call that came in is in the list of calls. It has no steps, and tells its number's status callback
// itself.
type rung struct{ *inboundCall }

func (rung) enter(*record, step, time.Time) {}

func (rung) callbackParams(*record, step, time.Time) params { return nil }

func (c rung) resource(*record) any { return c.inboundCall.resource() }

// resource is the call as the Calls API shows it. The world is locked.
func (c *inboundCall) resource() callResource {
	at := target{account: c.account, channel: call, sid: c.sid}
	resource := callResource{
		AccountSID: c.account, APIVersion: apiVersion, SID: c.sid, Status: c.status, Direction: "inbound",
		DateCreated: twilioDate(c.startedAt), DateUpdated: twilioDate(c.startedAt), StartTime: twilioDate(c.startedAt),
		EndTime: twilioDate(c.endedAt), From: c.from, FromFormatted: formatted(c.from), To: c.to,
		ToFormatted: formatted(c.to), PhoneNumberSID: phoneNumberSID(c.to), PriceUnit: "USD", QueueTime: "0",
		URI:             at.uri(),
		SubresourceURIs: at.subresources(callSubresources...),
	}
	if !c.endedAt.IsZero() {
		resource.Duration = new(fmt.Sprint(int(c.endedAt.Sub(c.startedAt) / time.Second)))
	}
	return resource
}

// update hangs the call up: Status=completed is all that can be done with it here.
func (c *inboundCall) update(f *form) {
	f.check(callUpdateFields)
	switch {
	case !c.endedAt.IsZero():
		f.refuse(21220, "Call is not in-progress. Cannot redirect.")
	case f.text("Status") != callCompleted.status:
		f.refuse(20001, "Bad request: the simulator can only complete an inbound call.")
	}
	if f.failed == nil {
		c.hangUp(errFinished)
	}
}
