package webhook

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"github.com/twilio/twilio-go/twiml"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
	"github.com/todoku/todoku/store/group"
)

// Calls answers what Twilio asks about calls that come in. Every answer is made from the ledger alone;
// the workflow of the call hears of it by the relay. All of them may be asked again, and are answered
// the same.
type Calls struct {
	Store       *store.Store
	Validator   *carrier.SignatureValidator // nil: callbacks are not set up, and all are refused
	Logger      *slog.Logger
	PublicURL   string              // of TODOKU_PUBLIC_URL, without a slash at its end
	Region      string              // of callers of whom nothing else tells the language
	Countries   []string            // that may be called
	NumberKinds []notify.PhoneKind  // that may be called though they charge the caller
	HashKey     []byte              // of the keyed hash by which numbers are found
	Limits      store.InboundLimits // how many are taken at the same time, and in a second

	urls     addresses
	policies *policies
	arrivals *group.Writer[store.InboundArrival, store.Admission]
	events   *group.Writer[notify.InboundEvent, store.InboundChange]
}

// Register adds the addresses.
func (c *Calls) Register(to gin.IRoutes) {
	c.urls = addresses{c.PublicURL}
	c.policies = &policies{store: c.Store, logger: c.Logger}
	c.arrivals = group.NewWriter(group.Prompt, c.Store.AdmitInbound, store.IsOutage)
	c.events = group.NewWriter(group.Patient, c.record, store.IsOutage)
	to.POST(VoicePath, c.voice)
	to.POST(VoiceStatusPath, c.ended)
	to.POST(waitPath, c.wait)
	to.POST(waitKeyPath, c.waitKey)
	to.POST(turnedAwayKeyPath, c.turnedAwayKey)
	to.POST(queueResultPath, c.queueResult)
	to.POST(AssignmentPath, c.assign)
	to.POST(TaskEventPath, c.taskEvent)
	to.POST(callBackPath, c.callBack)
}

// record writes a group of events, and answers for each with what became of its call.
func (c *Calls) record(ctx context.Context, events ...notify.InboundEvent) ([]store.InboundChange, error) {
	for i := range events {
		events[i].FromHash = c.hash(events[i].From)
	}
	changes, err := c.Store.RecordInbound(ctx, events...)
	if err != nil {
		return nil, err
	}
	byCall := make(map[uuid.UUID]store.InboundChange, len(changes))
	for _, change := range changes {
		byCall[change.ID] = change
	}
	each := make([]store.InboundChange, len(events))
	for i, e := range events {
		change, known := byCall[e.CallID]
		if each[i] = change; !known {
			unexplainedTotal.WithLabelValues(withoutCall).Inc()
			c.Logger.WarnContext(ctx, "callback not understood", "kind", withoutCall, "event", e.Kind, "task_sid", e.TaskSID)
		}
		inboundEventsTotal.WithLabelValues(string(e.Word)).Inc()
	}
	return each, nil
}

// hash is that of a caller's number, or nil where the caller showed none.
func (c *Calls) hash(from string) []byte {
	number, err := notify.ParseCaller(from)
	if err != nil {
		return nil
	}
	return number.Hash(c.HashKey)
}

// read reads a form that Twilio signed, or answers why it is refused.
func read[T any](c *Calls, ctx *gin.Context, parse func(carrier.Form, time.Time) (T, error)) (told T, ok bool) {
	form, reason, refusal := verify(c.Validator, ctx.Request)
	if refusal == nil {
		var err error
		if told, err = parse(form, time.Now()); err == nil {
			return told, true
		}
		reason, refusal = reasonMalformed, problem.New(problem.MalformedCallback, err.Error())
	}
	rejectedTotal.WithLabelValues(reason).Inc()
	c.Logger.WarnContext(ctx.Request.Context(), "callback rejected", "route", ctx.FullPath(), "reason", reason)
	problem.Write(ctx.Writer, refusal)
	return told, false
}

// voice takes a call that comes in: it hears the greeting and enters the queue, or hears why not. While
// the database is away the caller is asked to wait a moment, and the call is taken a little later.
func (c *Calls) voice(ctx *gin.Context) {
	call, ok := read(c, ctx, carrier.ParseInboundCall)
	if !ok {
		return
	}
	policy, admission, err := c.admit(ctx.Request.Context(), call)
	if err != nil {
		c.takeLater(ctx, policy, err)
		return
	}
	inboundCallsTotal.WithLabelValues(outcome(admission.TurnedAway)).Inc()
	if admission.TurnedAway != "" {
		c.write(ctx, c.sorry(policy, call.From, admission.TurnedAway)...)
		return
	}
	enqueue, err := c.enqueue(policy, call.CallID)
	if err != nil {
		c.takeLater(ctx, policy, err)
		return
	}
	c.write(ctx, append(prompt(policy.Greeting, ""), enqueue)...)
}

// admit decides about a call and records it.
func (c *Calls) admit(ctx context.Context, call notify.InboundEvent) (notify.InboundPolicy, store.Admission, error) {
	policy, err := c.policies.now(ctx)
	if err != nil {
		return policy, store.Admission{}, err
	}
	call.FromHash = c.hash(call.From)
	arrival := store.InboundArrival{Event: call, Limits: c.Limits}
	arrival.Limits.Waiting = policy.MaxWaiting
	open, err := policy.Open(call.At)
	switch {
	case !policy.SetUp():
		arrival.Refused = notify.TurnedAwayNotSetUp
	case err != nil: // apply has checked the hours, so this is our fault and not the caller's
		c.Logger.ErrorContext(ctx, "the opening hours cannot be read: calls are taken", "error", err)
	case !open:
		arrival.Refused = notify.TurnedAwayClosed
	}
	admission, err := c.arrivals.Do(ctx, arrival)
	return policy, admission, err
}

// While the database is away, a caller is asked to hold the line for so many seconds, so many times.
const (
	retryPause = 5
	voiceTries = 6
)

// takeLater keeps a caller on the line who cannot be written down just now.
func (c *Calls) takeLater(ctx *gin.Context, policy notify.InboundPolicy, err error) {
	c.Logger.WarnContext(ctx.Request.Context(), "call not taken yet", "error", err)
	s := speaking(policy, c.Region)
	try, _ := strconv.Atoi(ctx.Query("try")) // the first has none
	if try++; try >= voiceTries {
		inboundCallsTotal.WithLabelValues("lost").Inc()
		c.write(ctx, say(s.busy), say(s.goodbye), &twiml.VoiceHangup{})
		return
	}
	c.write(ctx, say(s.moment), &twiml.VoicePause{Length: strconv.Itoa(retryPause)},
		&twiml.VoiceRedirect{Url: c.urls.again(strconv.Itoa(try)), Method: http.MethodPost})
}

// wait is what a caller in the queue hears, again and again: the place, the wait, and the offer to be
// called back. Without the database it is only the music.
func (c *Calls) wait(ctx *gin.Context) {
	call, ok := read(c, ctx, carrier.ParseHold)
	if !ok {
		return
	}
	policy, _ := c.policies.now(ctx.Request.Context()) // the zero policy has a pause, too
	s := speaking(policy, c.Region)
	place, err := c.Store.InboundPlace(ctx.Request.Context(), call.CallID)
	var hears []twiml.Element
	switch {
	case err == nil && !place.Open:
		c.write(ctx, &twiml.VoiceLeave{}) // the call asked for something else, or was given up
		return
	case err == nil:
		hears = append(hears, say(s.whereabouts(place.Place, place.Estimate)))
	case !errors.Is(err, store.ErrNotFound):
		c.Logger.WarnContext(ctx.Request.Context(), "a caller does not hear the place in the queue", "error", err)
	}
	if place.Unheard || errors.Is(err, store.ErrNotFound) {
		if _, err := c.events.Do(ctx.Request.Context(), call); err != nil {
			c.Logger.WarnContext(ctx.Request.Context(), "not recorded that a caller waits: TaskRouter tells it too", "error", err)
		}
	}
	var music twiml.Element = &twiml.VoicePause{Length: strconv.Itoa(holdPause)}
	if policy.Hold.Play != "" {
		music = &twiml.VoicePlay{Url: policy.Hold.Play}
	}
	if policy.Hold.Say != "" {
		hears = append(hears, say(policy.Hold.Say))
	}
	key := c.callbackKey(policy, call.From)
	if key == "" {
		c.write(ctx, append(hears, music)...)
		return
	}
	hears = append(hears, say(s.offer(key)))
	if policy.Hold.Play != "" {
		c.write(ctx, keyed(c.urls.of(waitKeyPath), keyPatience, append(hears, music)))
		return
	}
	c.write(ctx, keyed(c.urls.of(waitKeyPath), holdPause, hears))
}

// pressed is a key that a caller pressed.
type pressed struct {
	event notify.InboundEvent
	key   string
}

func parsePressed(form carrier.Form, now time.Time) (p pressed, err error) {
	p.event, p.key, err = carrier.ParseKeyPressed(form, now)
	return p, err
}

// wish records that a caller asked to be called back, and reports whether that was so. A wish that
// could not be written down is not confirmed.
func (c *Calls) wish(ctx *gin.Context) (s sentences, wished, ok bool) {
	p, ok := read(c, ctx, parsePressed)
	if !ok {
		return s, false, false
	}
	policy, err := c.policies.now(ctx.Request.Context())
	s = speaking(policy, c.Region)
	if err != nil || p.key == "" || p.key != c.callbackKey(policy, p.event.From) {
		return s, false, true
	}
	if _, err := c.events.Do(ctx.Request.Context(), p.event); err != nil {
		c.Logger.WarnContext(ctx.Request.Context(), "a caller's wish to be called back was not recorded", "error", err)
		return s, false, true
	}
	return s, true, true
}

func (c *Calls) waitKey(ctx *gin.Context) {
	s, wished, ok := c.wish(ctx)
	switch {
	case wished:
		c.write(ctx, say(s.promised), &twiml.VoiceLeave{})
	case ok:
		c.write(ctx, &twiml.VoiceRedirect{Url: c.urls.of(waitPath), Method: http.MethodPost})
	}
}

func (c *Calls) turnedAwayKey(ctx *gin.Context) {
	s, wished, ok := c.wish(ctx)
	switch {
	case wished:
		c.write(ctx, say(s.promised), &twiml.VoiceHangup{})
	case ok:
		c.write(ctx, say(s.goodbye), &twiml.VoiceHangup{})
	}
}

// queueResult is told why a call has left the queue. One that nobody took hears why, and may still ask
// to be called back.
func (c *Calls) queueResult(ctx *gin.Context) {
	e, ok := read(c, ctx, carrier.ParseQueueResult)
	if !ok {
		return
	}
	change, err := c.events.Do(ctx.Request.Context(), e)
	if err != nil {
		problem.Write(ctx.Writer, notRecorded(ctx.Request.Context(), c.Logger, err))
		return
	}
	policy, _ := c.policies.now(ctx.Request.Context()) // the zero policy has sentences, too
	switch change.State {
	case notify.InboundTimedOut:
		c.write(ctx, c.apologise(policy, e.From, notify.Prompt{}, speaking(policy, c.Region).unanswered)...)
	case notify.InboundTurnedAway:
		c.write(ctx, c.sorry(policy, e.From, change.Reason)...)
	default:
		c.write(ctx, &twiml.VoiceHangup{})
	}
}

// ended is told that a call is over.
func (c *Calls) ended(ctx *gin.Context) {
	if e, ok := read(c, ctx, carrier.ParseInboundStatus); ok {
		c.note(ctx, e)
	}
}

// told is an event of TaskRouter.
type told struct {
	event     notify.InboundEvent
	aboutTask bool
}

func parseTold(form carrier.Form, now time.Time) (t told, err error) {
	t.event, t.aboutTask, err = carrier.ParseTaskEvent(form, now)
	return t, err
}

// taskEvent is told what happens to tasks.
func (c *Calls) taskEvent(ctx *gin.Context) {
	t, ok := read(c, ctx, parseTold)
	switch {
	case !ok:
	case !t.aboutTask:
		ctx.Status(http.StatusNoContent)
	default:
		c.note(ctx, t.event)
	}
}

// note answers once the ledger has the event.
func (c *Calls) note(ctx *gin.Context, e notify.InboundEvent) {
	if _, err := c.events.Do(ctx.Request.Context(), e); err != nil {
		problem.Write(ctx.Writer, notRecorded(ctx.Request.Context(), c.Logger, err))
		return
	}
	ctx.Status(http.StatusNoContent)
}
