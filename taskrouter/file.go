// Package taskrouter is a call centre as code: the file that describes it (taskrouter.yaml), what that means at Twilio,
// and the difference to what is there. It is pure: reading and writing Twilio is the carrier's part.
package taskrouter

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/todoku/todoku/notify"
)

// File is what taskrouter.yaml says. Parse makes it, and checks it, so that its parts fit together.
type File struct {
	Workspace  string
	Activities []Activity
	Queues     []Queue
	Operators  []Operator
	Routing    Routing
	Calls      Calls
}

// Activity is something that operators do, which makes them available for calls or not. Every workspace has the
// activities Offline, Available and Unavailable.
type Activity struct {
	Name      string
	Available bool
	line      int
}

// Queue is where calls wait.
type Queue struct {
	Name        string
	Workers     string // the expression that picks operators by their attributes; 1==1 takes all
	LIFO        bool   // the newest call goes first
	MaxReserved int    // to how many operators a call is offered at the same time, 1 to 50
	line        int
}

// Operator is somebody who takes calls: TaskRouter calls it a worker.
type Operator struct {
	Name       string
	ContactURI string // client:NAME, sip:USER@HOST or a number in E.164
	Attributes map[string]any
	Activity   string // that a new operator begins in; what he does later is his own affair
	line       int
}

// Routing is the way of a call to a queue: TaskRouter calls it a workflow.
type Routing struct {
	Name               string
	ReservationTimeout time.Duration // how long an operator may let it ring
	Filters            []Filter
	Default            *Target // where calls go that fit no filter, or that no target has taken in time
}

// Filter routes the calls whose attributes fit an expression.
type Filter struct {
	Name    string
	When    string
	Targets []Target // one after the other
}

// Target is a queue that a call is offered to for a time.
type Target struct {
	Queue    string
	Priority *int          // of two calls the one with more goes first
	Timeout  time.Duration // after which the next target has its turn; 0: none
	Workers  string        // an expression over task. and worker. that narrows the queue's operators; empty: none
	SkipIf   string        // an expression, such as workers.available == 0, that passes the target over; empty: none
	line     int
}

// Calls is what callers come to.
type Calls struct {
	Number     string     // that is rung, in E.164; empty: the numbers are left alone
	AnsweredBy AnsweredBy // what answers
	Policy     notify.InboundPolicy
	Away       Away   // what is heard while Todoku cannot be reached
	AfterCall  string // the activity that follows a call; empty: none

	callbackLine int // of the key that asks to be called back
}

// AnsweredBy is what a number's "a call comes in" points at.
type AnsweredBy string

const (
	Webhook AnsweredBy = "webhook" // our own voice webhook, which knows hours, limits and callbacks
	Studio  AnsweredBy = "studio"  // a published Studio flow, which greets and enqueues
)

// builtIn are the activities that TaskRouter makes in every workspace
// (https://www.twilio.com/docs/taskrouter/api/activity).
var builtIn = map[string]bool{"Offline": false, "Available": true, "Unavailable": false}

// limits of Twilio's: 50 reservations at a time, a day for a reservation and for a target.
const (
	maxReserved        = 50
	maxTimeout         = 24 * time.Hour
	defaultReservation = 20 * time.Second
	maxNameCharacters  = 64
)

// Parse reads a file. name is what its problems call it. The error is a Problems.
func Parse(name string, text []byte) (*File, error) {
	r := &reader{file: name}
	f := &File{Routing: Routing{Name: "Todoku", ReservationTimeout: defaultReservation}, Calls: Calls{AnsweredBy: Webhook}}
	root := r.document(text)
	if root == nil {
		return nil, r.problems
	}
	r.mapping(root, "the file", fields{
		"workspace":  {required: true, read: func(v value) { f.Workspace = v.name() }},
		"activities": {read: func(v value) { f.Activities = list(v, readActivity) }},
		"queues":     {required: true, read: func(v value) { f.Queues = list(v, readQueue) }},
		"operators":  {read: func(v value) { f.Operators = list(v, readOperator) }},
		"routing":    {required: true, read: func(v value) { f.Routing.read(v) }},
		"calls":      {read: func(v value) { f.Calls.read(v) }},
	})
	f.check(r)
	if len(r.problems) > 0 {
		slices.SortStableFunc(r.problems, func(a, b Problem) int { return a.Line - b.Line })
		return nil, r.problems
	}
	return f, nil
}

func readActivity(v value) (a Activity) {
	a.line = v.line()
	v.mapping("an activity", fields{
		"name":      {required: true, read: func(v value) { a.Name = v.name() }},
		"available": {required: true, read: func(v value) { a.Available = v.flag() }},
	})
	return a
}

func readQueue(v value) Queue {
	q := Queue{Workers: "1==1", MaxReserved: 1, line: v.line()}
	v.mapping("a queue", fields{
		"name":                 {required: true, read: func(v value) { q.Name = v.name() }},
		"workers":              {read: func(v value) { q.Workers = v.expression() }},
		"order":                {read: func(v value) { q.LIFO = v.oneOf("FIFO", "LIFO") == "LIFO" }},
		"max_reserved_workers": {read: func(v value) { q.MaxReserved = v.whole(1, maxReserved) }},
	})
	return q
}

func readOperator(v value) (o Operator) {
	o = Operator{Activity: "Offline", line: v.line()}
	v.mapping("an operator", fields{
		"name":        {required: true, read: func(v value) { o.Name = v.name() }},
		"contact_uri": {required: true, read: func(v value) { o.ContactURI = v.contact() }},
		"attributes": {read: func(v value) {
			o.Attributes = v.object()
			if _, twice := o.Attributes["contact_uri"]; twice {
				v.problem("contact_uri stands beside attributes, not inside of them")
			}
		}},
		"activity": {read: func(v value) { o.Activity = v.name() }},
	})
	return o
}

func (t *Routing) read(v value) {
	v.mapping("routing", fields{
		"name": {read: func(v value) { t.Name = v.name() }},
		"reservation_timeout": {read: func(v value) {
			t.ReservationTimeout = v.seconds(time.Second, maxTimeout)
		}},
		"filters": {read: func(v value) { t.Filters = list(v, readFilter) }},
		"default": {required: true, read: func(v value) { t.Default = new(readTarget(v)) }},
	})
}

func readFilter(v value) (f Filter) {
	v.mapping("a filter", fields{
		"name": {required: true, read: func(v value) { f.Name = v.name() }},
		"when": {required: true, read: func(v value) { f.When = v.expression() }},
		"targets": {required: true, read: func(v value) {
			if f.Targets = list(v, readTarget); len(f.Targets) == 0 {
				v.problem("a filter needs a target at least")
			}
		}},
	})
	return f
}

func readTarget(v value) (t Target) {
	t.line = v.line()
	v.mapping("a target", fields{
		"queue":    {required: true, read: func(v value) { t.Queue = v.name() }},
		"priority": {read: func(v value) { t.Priority = new(v.whole(0, 1<<31-1)) }},
		"timeout":  {read: func(v value) { t.Timeout = v.seconds(time.Second, maxTimeout) }},
		"workers":  {read: func(v value) { t.Workers = v.expression() }},
		"skip_if":  {read: func(v value) { t.SkipIf = v.expression() }},
	})
	return t
}

func (c *Calls) read(v value) {
	p := &c.Policy
	v.mapping("calls", fields{
		"number":      {read: func(v value) { c.Number = v.phoneNumber() }},
		"answered_by": {read: func(v value) { c.AnsweredBy = AnsweredBy(v.oneOf(string(Webhook), string(Studio))) }},
		"greeting":    {read: func(v value) { p.Greeting = readPrompt(v) }},
		"hold":        {read: func(v value) { p.Hold = readPrompt(v) }},
		"closed":      {read: func(v value) { p.Closed = readPrompt(v) }},
		"busy":        {read: func(v value) { p.Busy = readPrompt(v) }},
		"away":        {read: func(v value) { c.Away = readAway(v) }},
		"task_attributes": {read: func(v value) {
			p.TaskAttributes = v.object()
			for _, name := range reservedAttributes {
				if _, taken := p.TaskAttributes[name]; taken {
					v.problem("task_attributes must not have %s: Twilio or Todoku sets it", name)
				}
			}
		}},
		"connect":       {read: func(v value) { p.Instruction = v.oneOf("dequeue", "conference") }},
		"caller_id":     {read: func(v value) { p.CallerID = v.phoneNumber() }},
		"after_call":    {read: func(v value) { c.AfterCall = v.name() }},
		"callback_key":  {read: func(v value) { p.CallbackKey, c.callbackLine = v.digit(), v.line() }},
		"hours":         {read: func(v value) { readHours(v, p) }},
		"max_waiting":   {read: func(v value) { p.MaxWaiting = v.whole(1, 1000) }},
		"service_level": {read: func(v value) { p.ServiceLevel = v.seconds(time.Second, time.Hour) }},
		"follow_up":     {read: func(v value) { readFollowUps(v, &p.FollowUps) }},
	})
}

// reservedAttributes are those by which the events of a task are found to be about a call: <Enqueue> sets them
// (https://www.twilio.com/docs/voice/twiml/enqueue#task-attributes), or the webhooks and follow-ups do.
var reservedAttributes = []string{"account_sid", "api_version", "call_sid", "caller", "direction", "from", "to", "todoku_call", "todoku_callback_for"}

// readPrompt reads {say: …}, {play: …}, or a text, which is said.
func readPrompt(v value) (p notify.Prompt) {
	if v.isText() {
		p.Say = v.spoken()
		return p
	}
	v.mapping("what is heard", fields{
		"say":  {read: func(v value) { p.Say = v.spoken() }},
		"play": {read: func(v value) { p.Play = v.webURL() }},
	})
	if (p.Say == "") == (p.Play == "") {
		v.problem("what is heard is one of say and play")
	}
	return p
}

// readAway reads what is heard while Todoku cannot be reached: a text, texts, or those with a voicemail.
func readAway(v value) (a Away) {
	say := func(v value) {
		if v.isText() {
			a.Say = []string{v.spoken()}
			return
		}
		if a.Say = list(v, value.spoken); len(a.Say) > maxAwayTexts {
			v.problem("%s must be at most %d texts", v.key, maxAwayTexts)
		}
	}
	if v.isText() || v.isList() {
		say(v)
		return a
	}
	v.mapping("away", fields{
		"say":       {read: say},
		"voicemail": {read: func(v value) { a.Voicemail = v.seconds(5*time.Second, 10*time.Minute) }},
	})
	return a
}

// maxAwayTexts is how many texts a caller hears at most while Todoku cannot be reached.
const maxAwayTexts = 5

var weekdays = map[string]time.Weekday{
	"sun": time.Sunday, "mon": time.Monday, "tue": time.Tuesday, "wed": time.Wednesday, "thu": time.Thursday,
	"fri": time.Friday, "sat": time.Saturday,
}

func readHours(v value, p *notify.InboundPolicy) {
	v.mapping("hours", fields{
		"timezone": {required: true, read: func(v value) {
			p.Timezone = v.text()
			if _, err := notify.LoadZone(p.Timezone); err != nil {
				v.problem("%q is no time zone: write one such as Asia/Tokyo", p.Timezone)
			}
		}},
		"open": {required: true, read: func(v value) {
			p.Hours = list(v, func(v value) (h notify.OpeningHours) {
				v.mapping("opening hours", fields{
					"days": {required: true, read: func(v value) {
						h.Days = list(v, func(v value) time.Weekday {
							return weekdays[v.oneOf("mon", "tue", "wed", "thu", "fri", "sat", "sun")]
						})
						if len(h.Days) == 0 && v.isList() {
							v.problem("days must name a day at least")
						}
					}},
					"from":  {required: true, read: func(v value) { h.From = v.text() }},
					"until": {required: true, read: func(v value) { h.Until = v.text() }},
				})
				if h.From != "" && h.Until != "" {
					if err := h.Check(); err != nil {
						v.problem("%v", err)
					}
				}
				return h
			})
			if len(p.Hours) == 0 && v.isList() {
				v.problem("open must have hours at least once: leave hours out to be open always")
			}
		}},
	})
}

func readFollowUps(v value, f *notify.FollowUps) {
	v.mapping("follow_up", fields{
		"abandoned": {read: func(v value) { f.Abandoned = readFollowUp(v) }},
		"timed_out": {read: func(v value) { f.TimedOut = readFollowUp(v) }},
		"full":      {read: func(v value) { f.Full = readFollowUp(v) }},
		"closed":    {read: func(v value) { f.Closed = readFollowUp(v) }},
		"requested": {read: func(v value) { f.Requested = readFollowUp(v) }},
		"missed":    {read: func(v value) { f.Missed = readFollowUp(v) }},
	})
}

// readFollowUp reads none, task, {sms: TEXT} or {call: TEXT}.
func readFollowUp(v value) (f notify.FollowUp) {
	if v.isText() {
		f.Action = notify.FollowUpAction(v.oneOf(string(notify.FollowUpNone), string(notify.FollowUpTask)))
		return f
	}
	does := 0
	say := func(action notify.FollowUpAction, channel notify.Channel) field {
		return field{read: func(v value) { f.Action, f.Body, does = action, v.message(channel), does+1 }}
	}
	v.mapping("a follow-up", fields{"sms": say(notify.FollowUpSMS, notify.SMS), "call": say(notify.FollowUpCall, notify.Call)})
	if does != 1 {
		v.problem("a follow-up is none, task, {sms: TEXT} or {call: TEXT}")
	}
	return f
}

// check holds the parts of the file against each other.
func (f *File) check(r *reader) {
	activities := maps.Clone(builtIn)
	first := map[string]int{}
	for _, a := range f.Activities {
		r.once(first, "activity", a.Name, a.line)
		if available, ok := builtIn[a.Name]; ok && available != a.Available {
			r.problem(a.line, "the activity %s is in every workspace with available: %t, which cannot be changed", a.Name, available)
		}
		activities[a.Name] = a.Available
	}
	queues := map[string]int{}
	for _, q := range f.Queues {
		r.once(queues, "queue", q.Name, q.line)
	}
	operators := map[string]int{}
	for _, o := range f.Operators {
		r.once(operators, "operator", strings.ToLower(o.Name), o.line) // TaskRouter does not tell cases apart there
		if _, ok := activities[o.Activity]; !ok && o.Activity != "" {
			r.problem(o.line, "the operator %s begins in %q, which is no activity of this file", o.Name, o.Activity)
		}
	}
	filters := map[string]int{}
	check := func(t Target) {
		if _, ok := queues[t.Queue]; !ok && t.Queue != "" {
			r.problem(t.line, "there is no queue %q in this file", t.Queue)
		}
	}
	for _, filter := range f.Routing.Filters {
		line := 0
		for i, t := range filter.Targets {
			line = t.line
			check(t)
			if i < len(filter.Targets)-1 && t.Timeout == 0 && t.SkipIf == "" {
				r.problem(t.line, "the target %s has no timeout, so those after it never have their turn", t.Queue)
			}
		}
		r.once(filters, "filter", filter.Name, line)
	}
	if f.Routing.Default != nil {
		check(*f.Routing.Default)
	}
	if action := f.Calls.Policy.FollowUps.Requested.Action; f.Calls.Policy.CallbackKey != "" && (action == "" || action == notify.FollowUpNone) {
		r.problem(f.Calls.callbackLine, "callback_key promises a callback that nobody makes: say in follow_up what is done when it is requested")
	}
	if _, ok := activities[f.Calls.AfterCall]; !ok && f.Calls.AfterCall != "" {
		r.problem(0, "calls: after_call is %q, which is no activity of this file", f.Calls.AfterCall)
	}
}
