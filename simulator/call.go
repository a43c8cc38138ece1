package simulator

import (
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The limits of https://www.twilio.com/docs/voice/api/call-resource.
const (
	maxTwimlCharacters = 4000
	maxSendDigits      = 32
	maxCallTimeout     = 600 // seconds
)

// phoneCall is what only calls have.
type phoneCall struct {
	outcome    *CallOutcome
	detects    bool      // machine detection was asked for
	startedAt  time.Time // when it began to ring
	answeredAt time.Time
	endedAt    time.Time
	duration   *int // seconds
	answeredBy string
}

var (
	callInitiated  = step{event: "initiated", status: "initiated"}
	callRinging    = step{event: "ringing", status: "ringing"}
	callAnswered   = step{event: "answered", status: "in-progress"}
	callCompleted  = step{event: "completed", status: "completed"}
	callBusy       = step{event: "completed", status: "busy"}
	callUnanswered = step{event: "completed", status: "no-answer"}
	callFailed     = step{event: "completed", status: "failed"}
	callCanceled   = step{event: "completed", status: "canceled"}
)

// callSteps are the events that lead to each outcome, from queued on. Every end is the event completed.
// https://www.twilio.com/docs/voice/api/call-resource#statuscallbackevent
var callSteps = map[string][]step{
	"queued":      {},
	"ringing":     {callInitiated, callRinging},
	"in-progress": {callInitiated, callRinging, callAnswered},
	"completed":   {callInitiated, callRinging, callAnswered, callCompleted},
	"busy":        {callInitiated, callRinging, callBusy},
	"no-answer":   {callInitiated, callRinging, callUnanswered},
	"failed":      {callInitiated, callFailed},
	"canceled":    {callInitiated, callCanceled},
}

var callOutcomeWords = []string{
	"queued", "ringing", "in-progress", "completed", "busy", "no-answer", "failed", "canceled",
}

var callFields = []field{
	webURL("Url", 21205),
	webURL("FallbackUrl", 21205),
	webURL("StatusCallback", 21609),
	webURL("RecordingStatusCallback", 21609),
	webURL("AsyncAmdStatusCallback", 21609),
	webURL("ClientNotificationUrl", 21609),
	// One event a value: a list joined by commas or spaces in one value is an error too.
	oneOf("StatusCallbackEvent", 21626, "initiated", "ringing", "answered", "completed"),
	httpMethod("Method"),
	httpMethod("FallbackMethod"),
	httpMethod("StatusCallbackMethod"),
	httpMethod("RecordingStatusCallbackMethod"),
	httpMethod("AsyncAmdStatusCallbackMethod"),
	integerBetween("Timeout", 1, maxCallTimeout, 0),
	integer("TimeLimit"),
	boolean("Record"),
	boolean("AsyncAmd"),
	oneOf("MachineDetection", 0, "Enable", "DetectMessageEnd"),
	integer("MachineDetectionTimeout"),
	integer("MachineDetectionSpeechThreshold"),
	integer("MachineDetectionSpeechEndThreshold"),
	integer("MachineDetectionSilenceTimeout"),
	atMost("SendDigits", maxSendDigits, 0),
	sidOf("Byoc", "BY", 0),
	sidOf("ApplicationSid", "AP", 0),
}

// newCall makes r the call that the form asks for, or fails the form.
func newCall(r *record, f *form, who caller) {
	r.to, r.from = f.text("To"), f.text("From")
	switch {
	case r.to == "":
		f.refuse(21201, "No 'To' number is specified.")
	case r.from == "":
		f.refuse(21213, "A 'From' phone number is required.")
	case !f.has("Url") && !f.has("Twiml") && !f.has("ApplicationSid"):
		f.refuse(21205, "Url parameter is required.")
	}
	f.check(callFields)
	f.checkTwiml()
	switch {
	case !isEndpoint(r.to):
		f.refuse(21211, "The phone number you are attempting to call, %s, is not valid.", r.to)
	case !isEndpoint(r.from):
		f.refuse(21212, "Invalid 'From' Phone Number: %s", r.from)
	}
	f.refuseMagicCall(r.to, r.from)
	if f.failed != nil {
		return
	}

	c := &phoneCall{
		outcome: r.behaviour.callOutcome(r.to),
		detects: f.has("MachineDetection") && !f.has("SendDigits"),
	}
	r.kind = c
	r.sid, r.status, r.sender = newSID("CA"), "queued", r.from
	r.steps = callSteps[c.outcome.Status]
	if r.body = f.text("Url"); r.body == "" { // with a Url, Twilio leaves Twiml alone
		r.body = f.text("Twiml")
	}
	if f.has("ApplicationSid") { // the application's own callback takes its place
		return
	}
	events := f.values["StatusCallbackEvent"]
	if len(events) == 0 {
		events = []string{callCompleted.event}
	}
	r.delivery = newDelivery(f.text("StatusCallback"), f.text("StatusCallbackMethod"), who.token, events)
}

func (f *form) checkTwiml() {
	if utf8.RuneCountInString(f.text("Twiml")) > maxTwimlCharacters {
		f.refuse(32018, "Twiml size exceeded maximum allowed value of 4000 characters.")
	}
}

func (c *phoneCall) enter(r *record, s step, now time.Time) {
	if s == callInitiated {
		return // an event only: the resource goes on reading queued
	}
	r.status = s.status
	switch s {
	case callRinging:
		c.startedAt = now
	case callAnswered:
		c.answeredAt = now
		c.answeredBy = c.detected()
	case callCompleted:
		c.duration = c.outcome.DurationS
	}
	if s.event == callCompleted.event {
		c.endedAt = now
	}
}

// detected is what machine detection says of who answers; empty when nobody asked for it.
func (c *phoneCall) detected() string {
	switch {
	case !c.detects:
		return ""
	case c.outcome.AnsweredBy != nil:
		return *c.outcome.AnsweredBy
	default:
		return "human"
	}
}

// sipResponses are the SIP codes that Twilio reports for calls that nobody took.
var sipResponses = map[string]string{"busy": "486", "no-answer": "487"}

// callbackParams are those of https://www.twilio.com/docs/voice/api/call-resource#statuscallback. Duration is in
// minutes, begun ones counting whole; CallDuration is in seconds.
func (c *phoneCall) callbackParams(r *record, s step, now time.Time) params {
	told := url.Values{
		"AccountSid":     {r.account},
		"ApiVersion":     {apiVersion},
		"CallSid":        {r.sid},
		"CallStatus":     {s.status},
		"CallbackSource": {"call-progress-events"},
		"Called":         {r.to},
		"Caller":         {r.from},
		"Direction":      {"outbound-api"},
		"From":           {r.from},
		"Timestamp":      {*twilioDate(now)},
		"To":             {r.to},
	}
	for _, end := range []string{"To", "Called", "From", "Caller"} {
		for _, part := range []string{"City", "State", "Zip", "Country"} {
			told.Set(end+part, "")
		}
	}
	if s.event != callCompleted.event {
		return sorted(told)
	}
	seconds := c.duration
	if s != callCompleted {
		seconds = new(0)
	}
	if seconds != nil {
		told.Set("CallDuration", strconv.Itoa(*seconds))
		told.Set("Duration", strconv.Itoa((*seconds+59)/60))
	}
	if c.answeredBy != "" {
		told.Set("AnsweredBy", c.answeredBy)
	}
	if code, ok := sipResponses[s.status]; ok {
		told.Set("SipResponseCode", code)
	}
	return sorted(told)
}

// callResource is Twilio's JSON of a call, with the types that its clients insist on.
type callResource struct {
	AccountSID      string            `json:"account_sid"`
	AnsweredBy      *string           `json:"answered_by"`
	APIVersion      string            `json:"api_version"`
	CallerName      *string           `json:"caller_name"`
	DateCreated     *string           `json:"date_created"`
	DateUpdated     *string           `json:"date_updated"`
	Direction       string            `json:"direction"`
	Duration        *string           `json:"duration"`
	EndTime         *string           `json:"end_time"`
	ForwardedFrom   *string           `json:"forwarded_from"`
	From            string            `json:"from"`
	FromFormatted   string            `json:"from_formatted"`
	GroupSID        *string           `json:"group_sid"`
	ParentCallSID   *string           `json:"parent_call_sid"`
	PhoneNumberSID  string            `json:"phone_number_sid"`
	Price           *string           `json:"price"`
	PriceUnit       string            `json:"price_unit"`
	QueueTime       string            `json:"queue_time"`
	SID             string            `json:"sid"`
	StartTime       *string           `json:"start_time"`
	Status          string            `json:"status"`
	SubresourceURIs map[string]string `json:"subresource_uris"`
	To              string            `json:"to"`
	ToFormatted     string            `json:"to_formatted"`
	TrunkSID        *string           `json:"trunk_sid"`
	URI             string            `json:"uri"`
}

var callSubresources = []string{"notifications", "recordings", "payments", "events", "siprec", "streams",
	"transcriptions", "user_defined_message_subscriptions", "user_defined_messages"}

func (c *phoneCall) resource(r *record) any {
	at := target{account: r.account, channel: call, sid: r.sid}
	resource := callResource{
		AccountSID:      r.account,
		AnsweredBy:      orNull(c.answeredBy),
		APIVersion:      apiVersion,
		DateCreated:     twilioDate(r.createdAt),
		DateUpdated:     twilioDate(r.updatedAt),
		Direction:       "outbound-api",
		EndTime:         twilioDate(c.endedAt),
		From:            r.from,
		FromFormatted:   formatted(r.from),
		PhoneNumberSID:  phoneNumberSID(r.from),
		PriceUnit:       "USD",
		QueueTime:       "0",
		SID:             r.sid,
		StartTime:       twilioDate(c.startedAt),
		Status:          r.status,
		SubresourceURIs: at.subresources(callSubresources...),
		To:              r.to,
		ToFormatted:     formatted(r.to),
		URI:             at.uri(),
	}
	if c.duration != nil {
		resource.Duration = new(strconv.Itoa(*c.duration))
	}
	return resource
}

var callUpdateFields = []field{
	oneOf("Status", 0, "canceled", "completed"),
	webURL("Url", 21205),
	webURL("FallbackUrl", 21205),
	webURL("StatusCallback", 21609),
	httpMethod("Method"),
	httpMethod("FallbackMethod"),
	httpMethod("StatusCallbackMethod"),
	integer("TimeLimit"),
}

// updateCall ends a call, or gives it new instructions. Status=canceled ends it while it is queued or ringing and
// does nothing to one that is answered; completed hangs up that one too. The world is locked.
func (w *world) updateCall(r *record, f *form) {
	f.check(callUpdateFields)
	f.checkTwiml()
	status := f.text("Status")
	redirects := f.has("Url") || f.has("Twiml")
	answered := r.status == callAnswered.status
	waiting := r.status == "queued" || r.status == callRinging.status
	switch {
	case f.has("Url") && f.has("Twiml"):
		f.refuse(20001, "Bad request: Url and Twiml cannot be given together.")
	case !waiting && !answered, redirects && !answered:
		f.refuse(21220, "Call is not in-progress. Cannot redirect.")
	}
	if f.failed != nil {
		return
	}
	if f.has("StatusCallback") && r.delivery != nil {
		r.delivery.redirect(f.text("StatusCallback"), f.text("StatusCallbackMethod"))
	}
	if redirects {
		r.body = f.text("Url") + f.text("Twiml")
	}
	c := r.kind.(*phoneCall)
	switch {
	case status != "" && waiting:
		r.steps = []step{callCanceled}
	case status == callCompleted.status && answered:
		elapsed := int((time.Since(c.answeredAt) + time.Second - 1) / time.Second)
		c.outcome = &CallOutcome{Status: status, DurationS: &elapsed, AnsweredBy: c.outcome.AnsweredBy}
		r.steps = []step{callCompleted}
	default:
		return
	}
	w.send(r, w.advance(r))
}

// subresources are the URIs of what belongs to a record: its own with the last part turned into a folder.
func (t target) subresources(names ...string) map[string]string {
	uris := make(map[string]string, len(names))
	base := strings.TrimSuffix(t.uri(), ".json")
	for _, name := range names {
		words := strings.Split(name, "_")
		for i, word := range words {
			words[i] = strings.ToUpper(word[:1]) + word[1:]
		}
		uris[name] = base + "/" + strings.Join(words, "") + ".json"
	}
	return uris
}
