package webhook_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/api/apitest"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

const (
	webhooks = "/api/twilio/webhook/"
	caller   = "+819012345678"
)

// element is TwiML as it reads: <Say language="ja-JP">…</Say>, attributes by name.
type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Children []element  `xml:",any"`
	Text     string     `xml:",chardata"`
}

func (e element) attr(name string) string {
	for _, a := range e.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// verbs names the elements of a document: "Say Gather(Say Play) Hangup".
func (e element) verbs() string {
	var names []string
	for _, child := range e.Children {
		name := child.XMLName.Local
		if len(child.Children) > 0 {
			name += "(" + child.verbs() + ")"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// find is the first element of that name.
func (e element) find(name string) element {
	for _, child := range e.Children {
		if child.XMLName.Local == name {
			return child
		}
		if found := child.find(name); found.XMLName.Local != "" {
			return found
		}
	}
	return element{}
}

func twiml(t *testing.T, answer apitest.Answer) element {
	t.Helper()
	if answer.Status != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/xml") {
		t.Fatalf("answer = %d %s", answer.Status, answer.Text)
	}
	var document element
	if err := xml.Unmarshal([]byte(answer.Text), &document); err != nil {
		t.Fatalf("%v in %s", err, answer.Text)
	}
	return document
}

// inboundCall is the form of a call's webhook.
func inboundCall(n int, more ...string) url.Values {
	return with(url.Values{
		"CallSid": {sid("CA", n)}, "AccountSid": {sidOfTests}, "From": {caller}, "To": {apitest.Number}, "Caller": {caller}, "Called": {apitest.Number},
		"CallStatus": {"ringing"}, "Direction": {"inbound"}, "ApiVersion": {"2010-04-01"},
	}, more)
}

func callID(n int) uuid.UUID { return notify.InboundID(sid("CA", n)) }

// taskEvent is the form of an event callback, about the task of a call.
func taskEvent(n int, kind string, second int, more ...string) url.Values {
	at := time.Now().Add(-time.Hour).Truncate(time.Hour).Add(time.Duration(second) * time.Second)
	attributes, _ := json.Marshal(map[string]any{"call_sid": sid("CA", n), "from": caller, "to": apitest.Number, "direction": "inbound"})
	return with(url.Values{
		"EventType": {kind}, "Sid": {sid("EV", n*1000+len(kind)*60+second)}, "AccountSid": {sidOfTests}, "WorkspaceSid": {sid("WS", 1)},
		"TaskSid": {sid("WT", n)}, "TaskAttributes": {string(attributes)}, "ResourceSid": {sid("WT", n)}, "ResourceType": {"task"},
		"Timestamp": {fmt.Sprint(at.Unix())}, "TimestampMs": {fmt.Sprint(at.UnixMilli())},
	}, more)
}

func reservation(n int) []string {
	return []string{"ReservationSid=" + sid("WR", n), "WorkerSid=" + sid("WK", n), fmt.Sprintf("WorkerName=Operator %d", n)}
}

func assignment(n, r int) url.Values {
	form := taskEvent(n, "x", 6, reservation(r)...)
	for _, name := range []string{"EventType", "Sid", "TimestampMs", "ResourceSid", "ResourceType"} {
		form.Del(name)
	}
	form.Set("WorkerAttributes", `{"contact_uri": "client:operator"}`)
	return form
}

// openHouse is a policy that takes every call.
func openHouse() notify.InboundPolicy {
	return notify.InboundPolicy{
		WorkspaceSID: sid("WS", 1), WorkflowSID: sid("WW", 1), PostWorkActivitySID: sid("WA", 1), TaskAttributes: map[string]any{"language": "ja"},
		Greeting: notify.Prompt{Say: "お電話ありがとうございます。"}, CallbackKey: "1",
	}
}

func receiving(t *testing.T, policy notify.InboundPolicy, environ ...string) *apitest.API {
	t.Helper()
	a := apitest.Start(t, environ...)
	if err := a.Store.SaveInboundPolicy(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	return a
}

func state(t *testing.T, a *apitest.API, n int) string {
	t.Helper()
	c, err := a.Store.InboundCall(t.Context(), callID(n))
	if err != nil {
		t.Fatal(err)
	}
	text := string(c.State)
	if c.OperatorName != nil {
		text += " " + *c.OperatorName
	}
	if c.Reason != nil {
		text += " " + *c.Reason
	}
	return text
}

func TestACallIsGreetedAndEnqueued(t *testing.T) {
	a := receiving(t, openHouse())
	for range 2 { // the same answer to a repeat
		document := twiml(t, a.Callback(webhooks+"voice", inboundCall(1)))
		if got := document.verbs(); got != "Say Enqueue(Task)" {
			t.Fatalf("it hears %s", got)
		}
		if s := document.find("Say"); s.attr("language") != "ja-JP" || s.Text != "お電話ありがとうございます。" {
			t.Errorf("it is greeted by %+v", s)
		}
		enqueue := document.find("Enqueue")
		for name, want := range map[string]string{
			"workflowSid": sid("WW", 1), "action": apitest.PublicURL + webhooks + "queue-result#rc=5&rp=all", "waitUrl": apitest.PublicURL + webhooks + "wait#rc=5&rp=all",
		} {
			if got := enqueue.attr(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		if got, want := document.find("Task").Text, fmt.Sprintf(`{"language":"ja","todoku_call":%q}`, callID(1)); got != want {
			t.Errorf("the task has %s, want %s", got, want)
		}
	}
	if got := state(t, a, 1); got != "RECEIVED" {
		t.Errorf("the call is %s", got)
	}
	if items, _ := a.Do("GET", "/api/v1/inbound/calls?phone=090-1234-5678", "").Body["items"].([]any); len(items) != 1 {
		t.Errorf("%d calls are found by the caller's number", len(items))
	}
}

func TestACallBeforeAnythingIsSetUpHearsAMessageAndIsRecorded(t *testing.T) {
	a := apitest.Start(t)
	document := twiml(t, a.Callback(webhooks+"voice", inboundCall(1)))
	if got := document.verbs(); got != "Say Hangup" || document.find("Say").attr("language") != "ja-JP" {
		t.Errorf("it hears %s: %s", got, document.find("Say").Text)
	}
	if got := state(t, a, 1); got != "TURNED_AWAY not_set_up" {
		t.Errorf("the call is %s", got)
	}
}

func TestWhoeverIsTurnedAwayIsOfferedACallback(t *testing.T) {
	never := openHouse()
	yesterday := time.Now().UTC().Add(-48 * time.Hour).Weekday()
	never.Hours = []notify.OpeningHours{{Days: []time.Weekday{yesterday}, From: "09:00", Until: "10:00"}}
	never.Closed = notify.Prompt{Play: "https://example.com/closed.mp3"}
	full := openHouse()
	full.MaxWaiting = 1
	for name, test := range map[string]struct {
		policy  notify.InboundPolicy
		environ string
		hears   string
		want    string
	}{
		"closed":   {never, "", "Gather(Play Say) Say Hangup", "TURNED_AWAY closed"},
		"full":     {full, "", "Gather(Say Say) Say Hangup", "TURNED_AWAY queue_full"},
		"busy":     {openHouse(), "INBOUND_MAX_CALLS=1", "Gather(Say Say) Say Hangup", "TURNED_AWAY too_many_calls"},
		"too fast": {openHouse(), "INBOUND_CALLS_PER_SECOND=1", "Gather(Say Say) Say Hangup", "TURNED_AWAY too_fast"},
	} {
		t.Run(name, func(t *testing.T) {
			a := receiving(t, test.policy, test.environ)
			a.Callback(webhooks+"voice", inboundCall(1))
			document := twiml(t, a.Callback(webhooks+"voice", inboundCall(2)))
			if got := document.verbs(); got != test.hears {
				t.Errorf("it hears %s, want %s", got, test.hears)
			}
			if got := state(t, a, 2); got != test.want {
				t.Errorf("the call is %s, want %s", got, test.want)
			}
			action, _, _ := strings.Cut(strings.TrimPrefix(document.find("Gather").attr("action"), apitest.PublicURL), "#")
			twiml(t, a.Callback(action, inboundCall(2, "Digits=9")))
			if got := state(t, a, 2); got != test.want {
				t.Errorf("after another key the call is %s", got)
			}
			if got := twiml(t, a.Callback(action, inboundCall(2, "Digits=1"))).verbs(); got != "Say Hangup" {
				t.Errorf("the wish is answered by %s", got)
			}
			if got := state(t, a, 2); got != "CALLBACK_REQUESTED" {
				t.Errorf("after the key the call is %s", got)
			}
		})
	}
}

func TestWhoeverWaitsHearsThePlaceAndMayAskForACallback(t *testing.T) {
	a := receiving(t, openHouse())
	for n := 1; n <= 3; n++ {
		a.Callback(webhooks+"voice", inboundCall(n))
	}
	document := twiml(t, a.Callback(webhooks+"wait", inboundCall(3, "QueuePosition=3")))
	if got := document.verbs(); got != "Gather(Say Say)" || !strings.Contains(document.find("Say").Text, "3番目") {
		t.Errorf("it hears %s: %s", got, document.find("Say").Text)
	}
	if got := state(t, a, 3); got != "WAITING" {
		t.Errorf("the call is %s", got)
	}
	if got := twiml(t, a.Callback(webhooks+"wait-key", inboundCall(3, "Digits=7"))).verbs(); got != "Redirect" {
		t.Errorf("another key is answered by %s", got)
	}
	if got := twiml(t, a.Callback(webhooks+"wait-key", inboundCall(3, "Digits=1"))).verbs(); got != "Say Leave" {
		t.Errorf("the wish is answered by %s", got)
	}
	if got := twiml(t, a.Callback(webhooks+"queue-result", inboundCall(3, "QueueResult=leave"))).verbs(); got != "Hangup" {
		t.Errorf("having left the queue it hears %s", got)
	}
	if got := state(t, a, 3); got != "CALLBACK_REQUESTED" {
		t.Errorf("the call is %s", got)
	}
	if got := twiml(t, a.Callback(webhooks+"wait", inboundCall(3))).verbs(); got != "Leave" {
		t.Errorf("a call that is over hears %s", got)
	}
	if got := twiml(t, a.Callback(webhooks+"wait", inboundCall(99))).verbs(); got != "Gather(Say)" {
		t.Errorf("a call that the ledger does not know hears %s", got)
	}
}

// Nobody could call back somebody who shows no number, or one of a country that is not called, so nothing is offered,
// and no key is taken for a wish.
func TestWhoeverCannotBeCalledIsPromisedNoCallback(t *testing.T) {
	for n, from := range []string{"", "anonymous", "Restricted", "+266696687", "sip:bob@example.com", "client:bob", "+442079460018"} {
		t.Run(from, func(t *testing.T) {
			a := receiving(t, openHouse(), "INBOUND_MAX_CALLS=1")
			hidden := "From=" + from
			a.Callback(webhooks+"voice", inboundCall(n, hidden))
			if got := twiml(t, a.Callback(webhooks+"wait", inboundCall(n, hidden))).verbs(); got != "Say Pause" {
				t.Errorf("waiting it hears %s", got)
			}
			if got := twiml(t, a.Callback(webhooks+"wait-key", inboundCall(n, hidden, "Digits=1"))).verbs(); got != "Redirect" {
				t.Errorf("the key is answered by %s", got)
			}
			if got := twiml(t, a.Callback(webhooks+"voice", inboundCall(100+n, hidden))).verbs(); got != "Say Say Hangup" {
				t.Errorf("turned away it hears %s", got)
			}
			answer := twiml(t, a.Callback(webhooks+"turned-away-key", inboundCall(100+n, hidden, "Digits=1")))
			if got := answer.find("Say").Text; strings.Contains(got, "折り返し") {
				t.Errorf("turned away it is promised: %s", got)
			}
			if got := state(t, a, n) + ", " + state(t, a, 100+n); got != "WAITING, TURNED_AWAY too_many_calls" {
				t.Errorf("the calls are %s", got)
			}
			if got := twiml(t, a.Callback(webhooks+"queue-result", inboundCall(n, hidden, "QueueResult=leave"))).verbs(); got != "Say Say Hangup" {
				t.Errorf("unanswered it hears %s", got)
			}
		})
	}
}

func TestHowACallLeavesTheQueue(t *testing.T) {
	a := receiving(t, openHouse())
	for i, test := range []struct{ result, hears, want string }{
		{"bridged", "Hangup", "FINISHED"},
		{"redirected-from-bridged", "Hangup", "FINISHED"},
		{"hangup", "Hangup", "ABANDONED"},
		{"leave", "Gather(Say Say) Say Hangup", "TIMED_OUT"},
		{"redirected", "Gather(Say Say) Say Hangup", "TIMED_OUT"},
		{"queue-full", "Gather(Say Say) Say Hangup", "TURNED_AWAY queue_full"},
		{"system-error", "Gather(Say Say) Say Hangup", "TURNED_AWAY queue_error"},
		{"never-heard-of", "Hangup", "ABANDONED"},
	} {
		a.Callback(webhooks+"voice", inboundCall(i))
		if got := twiml(t, a.Callback(webhooks+"queue-result", inboundCall(i, "QueueResult="+test.result))).verbs(); got != test.hears {
			t.Errorf("%s: it hears %s, want %s", test.result, got, test.hears)
		}
		if got := state(t, a, i); got != test.want {
			t.Errorf("%s: the call is %s, want %s", test.result, got, test.want)
		}
	}
}

func TestAnOperatorIsConnectedAsThePolicySays(t *testing.T) {
	conference := openHouse()
	conference.Instruction, conference.CallerID = "conference", "+15005550007"
	for name, test := range map[string]struct {
		policy notify.InboundPolicy
		change func(a *apitest.API, form url.Values)
		want   map[string]any
	}{
		"dequeue": {openHouse(), nil, map[string]any{"instruction": "dequeue", "from": apitest.Number, "post_work_activity_sid": sid("WA", 1)}},
		"conference": {conference, nil, map[string]any{
			"instruction": "conference", "from": "+15005550007", "post_work_activity_sid": sid("WA", 1), "end_conference_on_customer_exit": true,
		}},
		"the caller has gone": {openHouse(), func(a *apitest.API, _ url.Values) {
			a.Callback(webhooks+"voice-status", inboundCall(1, "CallStatus=completed"))
		}, map[string]any{}},
		"a task of calling back": {openHouse(), func(_ *apitest.API, form url.Values) {
			form.Set("TaskAttributes", fmt.Sprintf(`{"todoku_callback_for": %q, "to": %q}`, callID(1), apitest.Number))
		}, map[string]any{
			"instruction": "call", "to": "client:operator", "from": apitest.Number, "url": apitest.PublicURL + webhooks + "call-back?id=" + callID(1).String() + "#rc=5&rp=all", "accept": true,
			"post_work_activity_sid": sid("WA", 1),
		}},
		"somebody else's task":    {openHouse(), func(_ *apitest.API, form url.Values) { form.Set("TaskAttributes", `{"type": "chat"}`) }, map[string]any{}},
		"attributes of any shape": {openHouse(), func(_ *apitest.API, form url.Values) { form.Set("TaskAttributes", `["x"`) }, map[string]any{}},
		"nothing is set up":       {notify.InboundPolicy{}, nil, map[string]any{"instruction": "dequeue", "from": apitest.Number}},
	} {
		t.Run(name, func(t *testing.T) {
			a := receiving(t, test.policy)
			if test.policy.SetUp() {
				a.Callback(webhooks+"voice", inboundCall(1))
			}
			form := assignment(1, 1)
			if test.change != nil {
				test.change(a, form)
			}
			for range 2 {
				answer := a.Callback(webhooks+"assignment", form)
				if answer.Status != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json") || !maps.Equal(answer.Body, test.want) {
					t.Errorf("answer = %d %s, want %v", answer.Status, answer.Text, test.want)
				}
			}
		})
	}
}

// stories of tasks, as TaskRouter tells them.
var taskStories = []struct {
	name  string
	forms []url.Values
	want  string
}{
	{"answered by the second operator", []url.Values{
		taskEvent(1, "task.created", 1), taskEvent(1, "task-queue.entered", 1), taskEvent(1, "workflow.target-matched", 1),
		taskEvent(1, "reservation.created", 2, reservation(1)...), taskEvent(1, "reservation.timeout", 17, reservation(1)...),
		taskEvent(1, "reservation.created", 18, reservation(2)...), taskEvent(1, "reservation.accepted", 20, reservation(2)...),
		taskEvent(1, "reservation.wrapup", 50, reservation(2)...), taskEvent(1, "task.wrapup", 50), taskEvent(1, "task.completed", 55, "TaskCompletedReason=done"),
	}, "FINISHED Operator 2 done"},
	{"speaking", []url.Values{
		taskEvent(1, "task.created", 1), taskEvent(1, "reservation.created", 2, reservation(1)...), taskEvent(1, "reservation.accepted", 5, reservation(1)...),
	}, "ANSWERED Operator 1"},
	{"rejected and waiting again", []url.Values{
		taskEvent(1, "task.created", 1), taskEvent(1, "reservation.created", 2, reservation(1)...), taskEvent(1, "reservation.rejected", 4, reservation(1)...),
	}, "WAITING"},
	{"hung up", []url.Values{
		taskEvent(1, "task.created", 1), taskEvent(1, "reservation.created", 2, reservation(1)...), taskEvent(1, "reservation.canceled", 9, reservation(1)...),
		taskEvent(1, "task.canceled", 9, "TaskCanceledReason=hangup"),
	}, "ABANDONED hangup"},
	{"nobody took it in time", []url.Values{
		taskEvent(1, "task.created", 1), taskEvent(1, "workflow.timeout", 59), taskEvent(1, "task.canceled", 59, "TaskCanceledReason=Task TTL Exceeded"),
	}, "TIMED_OUT Task TTL Exceeded"},
}

func TestEventsOfTaskRouterMoveCallsInAnyOrder(t *testing.T) {
	for _, story := range taskStories {
		for order, forms := range map[string][]url.Values{
			"in order": story.forms, "reversed and repeated": append(reversed(story.forms), story.forms...),
		} {
			t.Run(story.name+", "+order, func(t *testing.T) {
				a := receiving(t, openHouse())
				for _, form := range forms {
					if answer := a.Callback(webhooks+"taskrouter-event", form); answer.Status != http.StatusNoContent {
						t.Fatalf("answer = %d %s", answer.Status, answer.Text)
					}
				}
				if got := state(t, a, 1); got != story.want {
					t.Errorf("the call is %s, want %s", got, story.want)
				}
				timeline, err := a.Store.InboundCallEvents(t.Context(), callID(1))
				if err != nil || len(timeline) != len(story.forms) {
					t.Errorf("the timeline has %d entries, want %d; error %v", len(timeline), len(story.forms), err)
				}
			})
		}
	}
}

func reversed(forms []url.Values) []url.Values {
	forms = slices.Clone(forms)
	slices.Reverse(forms)
	return forms
}

func TestEventsOfWhatWeDoNotKnowAreRecordedOrPassedOver(t *testing.T) {
	a := receiving(t, openHouse())
	for name, test := range map[string]struct {
		form   url.Values
		status int
		kept   uuid.UUID
	}{
		"a task without a call":   {taskEvent(7, "task.created", 1, "TaskAttributes={}"), 204, notify.InboundID(sid("WT", 7))},
		"a task of another sort":  {taskEvent(8, "task.created", 1, `TaskAttributes="chat"`), 204, notify.InboundID(sid("WT", 8))},
		"an event never heard of": {taskEvent(9, "task.teleported", 1), 204, callID(9)},
		"a worker":                {url.Values{"EventType": {"worker.activity.update"}, "WorkerSid": {sid("WK", 1)}}, 204, uuid.Nil},
		"no type":                 {taskEvent(10, "", 1), 400, uuid.Nil},
		"no SID":                  {taskEvent(11, "task.created", 1, "TaskSid=WT1"), 400, uuid.Nil},
		"an absurd time":          {taskEvent(12, "task.created", 1, "TimestampMs=99999999999999999"), 204, callID(12)},
	} {
		if answer := a.Callback(webhooks+"taskrouter-event", test.form); answer.Status != test.status {
			t.Errorf("%s: answer = %d %s", name, answer.Status, answer.Text)
		}
		if test.kept == uuid.Nil {
			continue
		}
		if timeline, err := a.Store.InboundCallEvents(t.Context(), test.kept); err != nil || len(timeline) != 1 {
			t.Errorf("%s: %d entries, error %v", name, len(timeline), err)
		}
	}
}

func TestOnlyTwilioMayAskAboutCalls(t *testing.T) {
	a := receiving(t, openHouse())
	for _, path := range []string{"voice", "voice-status", "assignment", "taskrouter-event", "wait", "wait-key", "queue-result", "turned-away-key", "call-back"} {
		form := inboundCall(1).Encode()
		unsigned := a.Do("POST", webhooks+path, form, "Authorization: ", "Content-Type: application/x-www-form-urlencoded")
		forged := a.Do("POST", webhooks+path, form, "Authorization: ", "Content-Type: application/x-www-form-urlencoded", "X-Twilio-Signature: guess")
		if unsigned.Code() != "callback_unsigned" || forged.Code() != "callback_forged" {
			t.Errorf("%s: %s and %s", path, unsigned.Text, forged.Text)
		}
		if answer := a.Callback(webhooks+path, url.Values{"CallSid": {"CA1"}, "EventType": {""}}); answer.Status != http.StatusBadRequest || answer.Code() != "malformed_callback" {
			t.Errorf("%s with a malformed form: %d %s", path, answer.Status, answer.Text)
		}
	}
	if calls, err := a.Store.InboundCalls(t.Context(), store.InboundFilter{}, nil, 10); err != nil || len(calls) != 0 {
		t.Errorf("%d calls were recorded, error %v", len(calls), err)
	}
}

func TestWithoutItsDatabaseACallerIsKeptOnTheLine(t *testing.T) {
	a := receiving(t, openHouse())
	twiml(t, a.Callback(webhooks+"voice", inboundCall(1)))
	a.Database.Cut()
	document := twiml(t, a.Callback(webhooks+"voice", inboundCall(2)))
	if got := document.verbs(); got != "Say Pause Redirect" {
		t.Fatalf("it hears %s", got)
	}
	if got := twiml(t, a.Callback(webhooks+"wait", inboundCall(1))).verbs(); got != "Gather(Say)" {
		t.Errorf("whoever waits hears %s", got)
	}
	if answer := a.Callback(webhooks+"assignment", assignment(1, 1)); answer.Body["instruction"] != "dequeue" || answer.Body["post_work_activity_sid"] != sid("WA", 1) {
		t.Errorf("the assignment: %d %s", answer.Status, answer.Text)
	}
	if got := twiml(t, a.Callback(webhooks+"wait-key", inboundCall(1, "Digits=1"))).verbs(); got != "Redirect" {
		t.Errorf("a wish that could not be recorded is answered by %s", got)
	}
	for path, form := range map[string]url.Values{
		"taskrouter-event": taskEvent(1, "task.created", 1), "queue-result": inboundCall(1, "QueueResult=hangup"), "voice-status": inboundCall(1, "CallStatus=completed"),
	} {
		if answer := a.Callback(webhooks+path, form); answer.Code() != "database_unavailable" {
			t.Errorf("%s: %d %s", path, answer.Status, answer.Text)
		}
	}
	last := twiml(t, a.Callback(webhooks+"voice?try=5", inboundCall(3)))
	if got := last.verbs(); got != "Say Say Hangup" {
		t.Errorf("after the last try it hears %s", got)
	}
	a.Database.Restore()
	again, _, _ := strings.Cut(strings.TrimPrefix(document.find("Redirect").Text, apitest.PublicURL), "#")
	if got := twiml(t, a.Callback(again, inboundCall(2))).verbs(); got != "Say Enqueue(Task)" {
		t.Errorf("when the database is back it hears %s", got)
	}
}

func TestAnOperatorWhoCallsBackIsConnectedWithTheCaller(t *testing.T) {
	a := receiving(t, openHouse())
	a.Callback(webhooks+"voice", inboundCall(1))
	operatorsCall := inboundCall(2, "From="+apitest.Number, "To=client:operator", "CallStatus=in-progress")
	document := twiml(t, a.Callback(webhooks+"call-back?id="+callID(1).String(), operatorsCall))
	if d := document.find("Dial"); d.attr("callerId") != apitest.Number || d.attr("timeLimit") != "3600" || d.attr("timeout") != "30" || document.find("Number").Text != caller {
		t.Errorf("it dials %+v", document)
	}
	for _, query := range []string{"", "?id=7", "?id=" + uuid.NewString()} {
		if got := twiml(t, a.Callback(webhooks+"call-back"+query, operatorsCall)).verbs(); got != "Say Hangup" {
			t.Errorf("%q: it hears %s", query, got)
		}
	}
	if log := a.Log(); strings.Contains(log, strings.TrimPrefix(caller, "+")) {
		t.Error("the log has the caller's number")
	}
}

func TestOperatorsAreNeverConnectedWithANumberThatMayNotBeCalled(t *testing.T) {
	a := receiving(t, openHouse())
	for n, from := range []string{"+81990123456", "+81570012345", "+812012345678", "+447700900123", "+447024123456", "Anonymous", "+266696687", "sip:+819012345678@example.jp"} {
		n += 10
		a.Callback(webhooks+"voice", inboundCall(n, "From="+from))
		operatorsCall := inboundCall(2, "From="+apitest.Number, "To=client:operator", "CallStatus=in-progress")
		if got := twiml(t, a.Callback(webhooks+"call-back?id="+callID(n).String(), operatorsCall)).verbs(); got != "Say Hangup" {
			t.Errorf("calling back %s: it hears %s", from, got)
		}
	}
	form := assignment(1, 1)
	form.Set("WorkerAttributes", `{"contact_uri": "+81990123456"}`)
	if answer := a.Callback(webhooks+"assignment", form); len(answer.Body) != 0 {
		t.Errorf("an operator at a premium-rate number: %s", answer.Text)
	}
}

func TestNoCallbackIsOfferedToANumberThatMayNotBeCalled(t *testing.T) {
	policy := openHouse()
	policy.FollowUps.Requested.Action = notify.FollowUpTask
	a := receiving(t, policy)
	for n, from := range []string{"+81990123456", "+447700900123", "Anonymous", "+86282452253"} {
		a.Callback(webhooks+"voice", inboundCall(n+10, "From="+from))
		if got := twiml(t, a.Callback(webhooks+"wait", inboundCall(n+10, "From="+from))).verbs(); strings.Contains(got, "Gather") {
			t.Errorf("%s hears %s", from, got)
		}
	}
}
