package carrier

import (
	"cmp"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/notify"
)

// What Twilio tells of calls that come in: by the webhooks of a voice call
// (https://www.twilio.com/docs/voice/twiml#request-parameters), of <Enqueue>
// (https://www.twilio.com/docs/voice/twiml/enqueue#attributes-action-parameters), and by TaskRouter's
// events (https://www.twilio.com/docs/taskrouter/api/event/reference) and assignment callbacks
// (https://www.twilio.com/docs/taskrouter/handle-assignment-callbacks). None of the readers' errors
// repeats a value. Parameters never heard of pass.

var (
	taskSID        = regexp.MustCompile(`^WT[0-9a-fA-F]{32}$`)
	workerSID      = regexp.MustCompile(`^WK[0-9a-fA-F]{32}$`)
	reservationSID = regexp.MustCompile(`^WR[0-9a-fA-F]{32}$`)
	eventSID       = regexp.MustCompile(`^EV[0-9a-fA-F]{32}$`)
)

var (
	errCallSID = errors.New("read a call: CallSid is missing or is not a call's SID")
	errTaskSID = errors.New("read a task: TaskSid is missing or is not a task's SID")
	errWorkers = errors.New("read an assignment: ReservationSid or WorkerSid is missing or is not one")
	errEvent   = errors.New("read an event of TaskRouter: EventType is missing or is not a word")
	errResult  = errors.New("read the result of a queue: QueueResult is missing or is not a word")
)

// ParseInboundCall reads the webhook of a call that comes in now.
func ParseInboundCall(form Form, now time.Time) (notify.InboundEvent, error) {
	e, err := callEvent(form, now)
	e.Key, e.Kind, e.Word = "voice", "voice", notify.WordReceived
	return e, err
}

// ParseInboundStatus reads the status callback of a number that was called.
func ParseInboundStatus(form Form, now time.Time) (notify.InboundEvent, error) {
	e, err := callEvent(form, now)
	status := word(form.Get("CallStatus"))
	e.Key, e.Kind, e.Word = "status "+status, "status "+status, CallOver(status)
	return e, err
}

// CallOver is what the status of a call says of it: that it is over, or nothing.
func CallOver(status string) notify.InboundWord {
	if w, known := notify.LookupWord(notify.Call, status); known && w.Final() {
		return notify.WordHungUp
	}
	return notify.WordNoted
}

// queueResults are the results of <Enqueue>. A call that was bridged has spoken with an operator; one
// that left the queue by itself was sent out of it by TaskRouter or by its own wish, which then was
// told before.
var queueResults = map[string]notify.InboundWord{
	"bridged":                 notify.WordFinished,
	"redirected-from-bridged": notify.WordFinished,
	"bridging-in-process":     notify.WordNoted,
	"hangup":                  notify.WordHungUp,
	"leave":                   notify.WordTimedOut,
	"redirected":              notify.WordTimedOut,
	"queue-full":              notify.WordTurnedAway,
	"error":                   notify.WordTurnedAway,
	"system-error":            notify.WordTurnedAway,
}

// ParseQueueResult reads the webhook of a call that has left the queue.
func ParseQueueResult(form Form, now time.Time) (notify.InboundEvent, error) {
	e, err := callEvent(form, now)
	result := word(form.Get("QueueResult"))
	if err == nil && result == "" {
		err = errResult
	}
	e.Key, e.Kind, e.Word = "queue-result", "queue-result "+result, notify.WordHungUp
	if w, known := queueResults[result]; known {
		e.Word = w
	}
	switch {
	case result == "queue-full":
		e.Reason = notify.TurnedAwayFull
	case e.Word == notify.WordTurnedAway:
		e.Reason = notify.TurnedAwayError
	}
	return e, err
}

// ParseKeyPressed reads the webhook of a caller who pressed a key, which may be none.
func ParseKeyPressed(form Form, now time.Time) (e notify.InboundEvent, key string, err error) {
	e, err = callEvent(form, now)
	e.Key, e.Kind, e.Word = "callback requested", "key", notify.WordCallbackRequested
	if key = form.Get("Digits"); len(key) != 1 || key[0] < '0' || key[0] > '9' {
		key = ""
	}
	return e, key, err
}

// ParseHold reads the webhook of a caller who waits in the queue.
func ParseHold(form Form, now time.Time) (notify.InboundEvent, error) {
	e, err := callEvent(form, now)
	e.Key, e.Kind, e.Word = "wait", "wait", notify.WordHolding
	return e, err
}

func callEvent(form Form, now time.Time) (notify.InboundEvent, error) {
	sid := form.Get("CallSid")
	if !notify.ValidSID(notify.Call, sid) {
		return notify.InboundEvent{}, errCallSID
	}
	return notify.InboundEvent{
		CallID: notify.InboundID(sid), CallSID: sid, At: now, Source: notify.FromWebhook,
		From: address(form.Get("From")), To: address(form.Get("To")),
	}, nil
}

// ParseTaskEvent reads an event callback of TaskRouter. It reports false for an event that is about no
// task: of workers, activities or the workspace.
func ParseTaskEvent(form Form, now time.Time) (e notify.InboundEvent, aboutTask bool, err error) {
	kind := word(form.Get("EventType"))
	switch {
	case kind == "":
		return e, false, errEvent
	case form.Get("TaskSid") == "":
		return e, false, nil
	}
	e, _, err = taskEvent(form, now)
	if err != nil {
		return e, true, err
	}
	e.Kind, e.Reason = kind, printable(cmp.Or(form.Get("TaskCanceledReason"), form.Get("TaskCompletedReason")))
	if e.Word == "" {
		e.Word = notify.TaskEventWord(kind)
	}
	if kind == "task.canceled" && e.Word == notify.WordNoted {
		// A task is canceled because the caller has hung up, or because nobody took it in time: then
		// Twilio names a time-out, a TTL or the workflow.
		e.Word = notify.WordTimedOut
		if reason := strings.ToLower(e.Reason); strings.Contains(reason, "hangup") || strings.Contains(reason, "hung up") {
			e.Word = notify.WordHungUp
		}
	}
	if e.Key = form.Get("Sid"); !eventSID.MatchString(e.Key) {
		e.Key = kind + " " + cmp.Or(e.Reservation, e.TaskSID) + " " + strconv.FormatInt(e.At.UnixMilli(), 10)
	}
	return e, true, nil
}

// Assignment is a task for which TaskRouter has chosen an operator, and asks what to do.
type Assignment struct {
	Event      notify.InboundEvent
	ContactURI string    // of the operator; empty: TaskRouter knows it, or nobody does
	CalledBack uuid.UUID // the call whose caller is to be called back; uuid.Nil: it is not such a task
}

// ParseAssignment reads an assignment callback.
func ParseAssignment(form Form, now time.Time) (Assignment, error) {
	e, attributes, err := taskEvent(form, now)
	if err == nil && (e.Reservation == "" || e.Operator.SID == "") {
		err = errWorkers
	}
	if err != nil {
		return Assignment{}, err
	}
	e.Key, e.Kind = "assignment "+e.Reservation, "assignment"
	if e.Word == "" {
		e.Word = notify.WordRinging
	}
	var worker struct {
		ContactURI string `json:"contact_uri"`
	}
	_ = json.Unmarshal([]byte(form.Get("WorkerAttributes")), &worker) // attributes of another shape have no contact
	return Assignment{Event: e, ContactURI: worker.ContactURI, CalledBack: attributes.CallBack}, nil
}

// CallbackAttribute is the attribute of a task of calling back that names the call.
const CallbackAttribute = "todoku_callback_for"

// taskAttributes are those that <Enqueue> gives to a call's task, and ours.
type taskAttributes struct {
	CallSID  string
	From     string
	To       string
	CallBack uuid.UUID
}

// readAttributes leaves out what is of another shape: a filter or another program may have written it, and the call
// must be found all the same.
func readAttributes(text string) (a taskAttributes) {
	var all map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &all) != nil {
		return a // of somebody else's task, whatever it is
	}
	for name, into := range map[string]any{"call_sid": &a.CallSID, "from": &a.From, "to": &a.To, CallbackAttribute: &a.CallBack} {
		_ = json.Unmarshal(all[name], into) // what has another shape stays empty
	}
	return a
}

func taskEvent(form Form, now time.Time) (notify.InboundEvent, taskAttributes, error) {
	sid := form.Get("TaskSid")
	if !taskSID.MatchString(sid) {
		return notify.InboundEvent{}, taskAttributes{}, errTaskSID
	}
	attributes := readAttributes(form.Get("TaskAttributes"))
	e := notify.InboundEvent{CallID: notify.InboundID(sid), TaskSID: sid, At: happenedAt(form, now), Source: notify.FromWebhook}
	switch {
	case attributes.CallBack != uuid.Nil:
		e.CallID, e.Word, e.To = attributes.CallBack, notify.WordCallbackTask, address(attributes.To)
	case notify.ValidSID(notify.Call, attributes.CallSID):
		e.CallID, e.CallSID = notify.InboundID(attributes.CallSID), attributes.CallSID
		e.From, e.To = address(attributes.From), address(attributes.To)
	}
	if r := form.Get("ReservationSid"); reservationSID.MatchString(r) {
		e.Reservation = r
	}
	if w := form.Get("WorkerSid"); workerSID.MatchString(w) {
		e.Operator = notify.Operator{SID: w, Name: printable(form.Get("WorkerName"))}
	}
	return e, attributes, nil
}

// happenedAt is when TaskRouter says that it happened: in milliseconds, in seconds, or in words.
func happenedAt(form Form, now time.Time) time.Time {
	if ms, err := strconv.ParseInt(form.Get("TimestampMs"), 10, 64); err == nil && plausible(time.UnixMilli(ms), now) {
		return time.UnixMilli(ms)
	}
	text := form.Get("Timestamp")
	if s, err := strconv.ParseInt(text, 10, 64); err == nil && plausible(time.Unix(s, 0), now) {
		return time.Unix(s, 0)
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil && plausible(at, now) {
		return at
	}
	return now
}

// plausible leaves out moments that no call can have: an event is told within days.
func plausible(at, now time.Time) bool {
	return at.After(now.AddDate(0, 0, -30)) && at.Before(now.Add(24*time.Hour))
}

// word is s where it can be one of Twilio's words, else empty.
func word(s string) string {
	if isWord(s) {
		return s
	}
	return ""
}

const longestText = 200 // runes of what people wrote

// printable makes a text of others fit for the ledger.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	if runes := []rune(s); len(runes) > longestText {
		s = string(runes[:longestText])
	}
	return s
}

// address is a number, or whatever else a caller shows: "anonymous", "sip:…", "client:…".
func address(s string) string { return printable(strings.TrimSpace(s)) }
