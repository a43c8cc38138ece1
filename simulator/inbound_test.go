package simulator_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/twilio/twilio-go/client"
)

// application answers the webhooks of a call centre, checks that each is signed, and remembers what it was told.
type application struct {
	t   *testing.T
	url string

	mu      sync.Mutex
	answers map[string]func(url.Values) (status int, body string) // by path
	told    []told
}

func newApplication(t *testing.T) *application {
	app := &application{t: t, answers: map[string]func(url.Values) (int, string){}}
	validator := client.NewRequestValidator(testToken)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		params := make(map[string]string)
		for name := range r.PostForm {
			params[name] = r.PostForm.Get(name)
		}
		if !validator.Validate("http://"+r.Host+r.URL.RequestURI(), params, r.Header.Get("X-Twilio-Signature")) {
			t.Errorf("the request to %s has a wrong signature", r.URL)
		}
		app.mu.Lock()
		app.told = append(app.told, told{method: r.URL.Path, params: r.PostForm})
		answer := app.answers[r.URL.Path]
		app.mu.Unlock()
		if answer == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		status, body := answer(r.PostForm)
		w.Header().Set("Content-Type", "text/xml")
		if strings.HasPrefix(body, "{") {
			w.Header().Set("Content-Type", "application/json")
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	app.url = server.URL
	return app
}

func (app *application) answer(path, body string) {
	app.answerWith(path, func(url.Values) (int, string) { return http.StatusOK, body })
}

func (app *application) answerWith(path string, answer func(url.Values) (int, string)) {
	app.mu.Lock()
	defer app.mu.Unlock()
	app.answers[path] = answer
}

// heard are the values that a path was told, one for each request.
func (app *application) heard(path, param string) []string {
	app.mu.Lock()
	defer app.mu.Unlock()
	var values []string
	for _, request := range app.told {
		if request.method == path {
			values = append(values, request.params.Get(param))
		}
	}
	return values
}

// events are the event callbacks about tasks and reservations.
func (app *application) events() string {
	return strings.Join(slices.DeleteFunc(app.heard("/events", "EventType"), func(event string) bool {
		return strings.HasPrefix(event, "worker.")
	}), " ")
}

// reception is a call centre, its application, and its number.
func (r *rig) reception(behaviour string) (centre, *application) {
	r.t.Helper()
	app := newApplication(r.t)
	r.behave(behaviour)
	c := r.callCentre(app.url)
	app.answer("/voice", `<Response><Say>hello</Say><Enqueue workflowSid="`+c.workflow+`" waitUrl="/wait"
		action="/left"><Task>{"language": "ja"}</Task></Enqueue></Response>`)
	app.answer("/wait", `<Response><Say>please wait</Say><Play>/music.mp3</Play></Response>`)
	app.answer("/assign", `{"instruction": "dequeue"}`)
	number := r.phoneNumber(goodSender)
	r.mustPost("/2010-04-01/Accounts/"+testAccount+"/IncomingPhoneNumbers/"+number["sid"].(string)+".json",
		url.Values{"VoiceUrl": {app.url + "/voice"}, "StatusCallback": {app.url + "/status"}})
	return c, app
}

type inboundItem struct {
	SID, From, Status, Outcome, Problem, Operator, Digits string
	TaskSID                                               string `json:"task_sid"`
	Requests                                              []struct{ Path string }
}

// ring has people ring in, and waits until so many calls are over.
func (r *rig) ring(callers string) []inboundItem {
	r.t.Helper()
	status, body := r.control("POST", "inbound", callers)
	if status != http.StatusAccepted {
		r.t.Fatalf("POST inbound %s: %d %v", callers, status, body)
	}
	eventually(r.t, "the calls are over", func() bool {
		return r.stat("inbound", "calls") == r.stat("inbound", "expected") && r.stat("inbound", "in_progress") == 0
	})
	return r.inboundCalls()
}

func (r *rig) inboundCalls() []inboundItem {
	r.t.Helper()
	_, shown := r.control("GET", "inbound", "")
	var list struct{ Items []inboundItem }
	encoded, _ := json.Marshal(shown)
	if err := json.Unmarshal(encoded, &list); err != nil {
		r.t.Fatal(err)
	}
	return list.Items
}

const (
	hurried = `"second_ms": 5, "callback_delay_ms": 0`
	quick   = `"answer_after_ms": 1, "talk_ms": 1, "wrap_up_ms": 1`
	oneCall = `{"to": "+15005550006"}`
)

func TestAnInboundCallIsAnswered(t *testing.T) {
	rig := start(t)
	_, app := rig.reception(`{` + hurried + `, "operators": {` + quick + `}}`)
	calls := rig.ring(oneCall)
	if len(calls) != 1 || calls[0].Outcome != "answered" || calls[0].Operator != "aoi" || calls[0].From != "+15550100000" {
		t.Errorf("the call is %+v", calls)
	}
	const want = "task.created workflow.target-matched task-queue.entered reservation.created reservation.accepted " +
		"reservation.completed task.completed"
	eventually(t, want, func() bool { return app.events() == want })
	if got := app.heard("/left", "QueueResult"); fmt.Sprint(got) != "[bridged]" {
		t.Errorf("the action was told %v", got)
	}
	eventually(t, "the number's status callback", func() bool {
		return fmt.Sprint(app.heard("/status", "CallStatus")) == "[completed]"
	})
	var attributes map[string]any
	if err := json.Unmarshal([]byte(app.heard("/assign", "TaskAttributes")[0]), &attributes); err != nil {
		t.Fatal(err)
	}
	if attributes["language"] != "ja" || attributes["call_sid"] != calls[0].SID || attributes["from"] != calls[0].From {
		t.Errorf("the task's attributes are %v", attributes)
	}
	if made := rig.stat("assignments", "made"); made != 1 {
		t.Errorf("%v assignment callbacks, want 1", made)
	}
}

func TestWhatOperatorsDo(t *testing.T) {
	for name, test := range map[string]struct {
		operators, callers string
		outcome            string
		events             string // some that must be among those told
	}{
		"one rejects":  {`"answer": 0, "reject": 1, ` + quick, `"patience_ms": 60`, "abandoned", "reservation.rejected task.canceled"},
		"one vanishes": {`"answer": 0, "vanish": 1, ` + quick, `"patience_ms": 150`, "abandoned", "reservation.timeout task.canceled"},
		"one comes back": {`"vanish": 1, "return_after_ms": 1, ` + quick, `"patience_ms": null`, "answered",
			"reservation.accepted task.completed"},
	} {
		t.Run(name, func(t *testing.T) {
			rig := start(t)
			_, app := rig.reception(`{` + hurried + `, "operators": {` + test.operators + `}}`)
			calls := rig.ring(`{"to": "+15005550006", ` + test.callers + `}`)
			if calls[0].Outcome != test.outcome {
				t.Errorf("the call is %+v", calls)
			}
			for event := range strings.FieldsSeq(test.events) {
				eventually(t, event, func() bool { return strings.Contains(app.events(), event) })
			}
		})
	}
}

func TestACallerHangsUpInTheQueue(t *testing.T) {
	rig := start(t)
	c, app := rig.reception(`{` + hurried + `}`)
	rig.mustPost(c.path("/Workers/"+c.worker), url.Values{"ActivitySid": {c.offline}})
	calls := rig.ring(`{"to": "+15005550006", "patience_ms": [40, 60]}`)
	if calls[0].Outcome != "abandoned" {
		t.Errorf("the call is %+v", calls)
	}
	if got := app.heard("/left", "QueueResult"); fmt.Sprint(got) != "[hangup]" {
		t.Errorf("the action was told %v", got)
	}
	if place := app.heard("/wait", "QueuePosition"); len(place) == 0 || place[0] != "1" {
		t.Errorf("the wait URL was told of the places %v", place)
	}
	eventually(t, "the task is canceled", func() bool {
		return slices.Contains(app.heard("/events", "TaskCanceledReason"), "hangup")
	})
}

func TestACallerPressesAKey(t *testing.T) {
	for name, test := range map[string]struct{ pressed, outcome, result string }{
		"and leaves the queue":  {`<Response><Leave/></Response>`, "left", "[leave]"},
		"and is said good-bye":  {`<Response><Say>we call you</Say><Hangup/></Response>`, "ended", "[hangup]"},
		"and is sent elsewhere": {`<Response><Redirect>/bye</Redirect></Response>`, "ended", "[hangup]"},
	} {
		t.Run(name, func(t *testing.T) {
			rig := start(t)
			c, app := rig.reception(`{` + hurried + `}`)
			rig.mustPost(c.path("/Workers/"+c.worker), url.Values{"ActivitySid": {c.offline}})
			app.answer("/wait", `<Response><Gather action="/pressed" numDigits="1"><Say>press 1</Say></Gather></Response>`)
			app.answer("/pressed", test.pressed)
			app.answer("/bye", `<Response><Hangup/></Response>`)
			calls := rig.ring(`{"to": "+15005550006", "press": {"digits": "1", "share": 1}}`)
			if calls[0].Outcome != test.outcome || calls[0].Digits != "1" {
				t.Errorf("the call is %+v", calls)
			}
			if got := app.heard("/pressed", "Digits"); fmt.Sprint(got) != "[1]" {
				t.Errorf("the gather's action was told %v", got)
			}
			if got := app.heard("/left", "QueueResult"); fmt.Sprint(got) != test.result {
				t.Errorf("the action was told %v, want %s", got, test.result)
			}
		})
	}
}

func TestATaskGoesFromQueueToQueueUntilItIsCanceled(t *testing.T) {
	rig := start(t)
	c, app := rig.reception(`{` + hurried + `}`)
	nobody := rig.mustPost(c.path("/TaskQueues"), url.Values{
		"FriendlyName": {"Nobody"}, "TargetWorkers": {`skills HAS "nothing"`},
	})["sid"].(string)
	rig.mustPost(c.path("/Workflows/"+c.workflow), url.Values{"Configuration": {`{"task_routing": {"filters": [
		{"filter_friendly_name": "Japanese", "expression": "language == \"ja\"", "targets": [
			{"queue": "` + nobody + `", "timeout": 2, "priority": 5}, {"queue": "` + nobody + `", "timeout": "3"}]}]}}`}})
	calls := rig.ring(oneCall)
	if calls[0].Outcome != "left" {
		t.Errorf("the call is %+v", calls)
	}
	const want = "task.created workflow.target-matched task-queue.entered task-queue.timeout " +
		"workflow.target-matched task-queue.entered task-queue.timeout workflow.timeout task.canceled"
	eventually(t, want, func() bool { return app.events() == want })
	task := rig.mustGet(c.path("/Tasks/" + calls[0].TaskSID))
	if task["assignment_status"] != "canceled" || task["reason"] != "Workflow timed out" || task["priority"] != 5.0 {
		t.Errorf("the task is %v", task)
	}
}

func TestOverflowGoesToTheNextTarget(t *testing.T) {
	rig := start(t)
	c, _ := rig.reception(`{` + hurried + `, "operators": {` + quick + `}}`)
	nobody := rig.mustPost(c.path("/TaskQueues"), url.Values{
		"FriendlyName": {"Nobody"}, "TargetWorkers": {`skills HAS "nothing"`},
	})["sid"].(string)
	for name, first := range map[string]string{
		"once its time is over": `{"queue": "` + nobody + `", "timeout": 2}`,
		"at once":               `{"queue": "` + nobody + `", "skip_if": "workers.available == 0"}`,
		"past other workers":    `{"queue": "` + c.queue + `", "expression": "worker.name == task.who", "timeout": 2}`,
	} {
		t.Run(name, func(t *testing.T) {
			rig.mustPost(c.path("/Workflows/"+c.workflow), url.Values{"Configuration": {`{"task_routing": {"filters": [
				{"filter_friendly_name": "all", "expression": "1==1", "targets": [` + first + `]}],
				"default_filter": {"queue": "` + c.queue + `"}}}`}})
			calls := rig.ring(oneCall)
			if last := calls[len(calls)-1]; last.Outcome != "answered" {
				t.Errorf("the call is %+v", last)
			}
		})
	}
}

func TestAFullQueueSaysSo(t *testing.T) {
	rig := start(t)
	_, app := rig.reception(`{` + hurried + `, "max_queue_size": 0}`)
	app.answer("/left", `<Response><Say>all lines are busy</Say></Response>`)
	calls := rig.ring(oneCall)
	if got := app.heard("/left", "QueueResult"); calls[0].Outcome != "ended" || fmt.Sprint(got) != "[queue-full]" {
		t.Errorf("the call is %+v, the action was told %v", calls, got)
	}
}

func TestWebhooksThatFailAreToldApart(t *testing.T) {
	for name, test := range map[string]struct {
		status        int
		body, problem string
	}{
		"a server's error":     {500, "", "POST /voice was answered 500 (5xx)"},
		"not TwiML":            {200, "hello", "POST /voice: it is not an XML document (Twilio's error 12100)"},
		"another document":     {200, "<html/>", "it begins with <html>, not <Response>"},
		"a broken document":    {200, "<Response><Say>", "its XML ends early"},
		"an unknown verb":      {200, "<Response><Juggle/></Response>", "<Juggle> is not allowed there"},
		"an unknown workflow":  {200, `<Response><Enqueue workflowSid="WW0"/></Response>`, `there is no workflow "WW0"`},
		"attributes of a list": {200, `<Response><Enqueue workflowSid="%s"><Task>[]</Task></Enqueue></Response>`, "not a JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			rig := start(t)
			c, app := rig.reception(`{` + hurried + `}`)
			app.answerWith("/voice", func(url.Values) (int, string) {
				return test.status, strings.ReplaceAll(test.body, "%s", c.workflow)
			})
			calls := rig.ring(oneCall)
			if calls[0].Outcome != "failed" || !strings.Contains(calls[0].Problem, test.problem) {
				t.Errorf("the call is %+v, want %s", calls, test.problem)
			}
		})
	}
}

func TestAnAssignmentCallbackThatFailsGoesToTheFallback(t *testing.T) {
	for name, answer := range map[string]string{
		"a server's error":       "500 ",
		"not JSON":               "200 <Response/>",
		"an unknown instruction": `200 {"instruction": "juggle"}`,
		"an unknown activity":    `200 {"instruction": "dequeue", "post_work_activity_sid": "WA0"}`,
	} {
		t.Run(name, func(t *testing.T) {
			rig := start(t)
			c, app := rig.reception(`{` + hurried + `, "operators": {` + quick + `}}`)
			rig.mustPost(c.path("/Workflows/"+c.workflow), url.Values{"FallbackAssignmentCallbackUrl": {app.url + "/fallback"}})
			app.answerWith("/assign", func(url.Values) (int, string) {
				var status int
				_, _ = fmt.Sscan(answer, &status)
				return status, answer[4:]
			})
			app.answer("/fallback", `{"instruction": "conference"}`)
			if calls := rig.ring(oneCall); calls[0].Outcome != "answered" {
				t.Errorf("the call is %+v", calls)
			}
			if failed := rig.stat("assignments", "failed"); failed != 1 {
				t.Errorf("%v assignment callbacks have failed, want 1", failed)
			}
		})
	}
}

func TestCallerWhoHangsUpDoesNotWaitForTheWebhook(t *testing.T) {
	rig := start(t)
	rig.reception(`{` + hurried + `}`)
	over := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	t.Cleanup(silent.Close)
	defer close(over)
	calls := rig.ring(`{"to": "+15005550006", "voice_url": "` + silent.URL + `", "patience_ms": 20}`)
	if calls[0].Outcome != "abandoned" {
		t.Errorf("the call is %+v", calls)
	}
}

func TestPostWorkActivityKeepsTheOperatorFromTheNextCall(t *testing.T) {
	rig := start(t)
	// Ten hurried seconds may be over before a busy machine has answered the assignment: then the operator comes back.
	c, app := rig.reception(`{` + hurried + `, "operators": {"return_after_ms": 1, ` + quick + `}}`)
	wrapUp := rig.mustPost(c.path("/Activities"), url.Values{"FriendlyName": {"Wrap-up"}, "Available": {"false"}})["sid"]
	app.answer("/assign", fmt.Sprintf(`{"instruction": "dequeue", "post_work_activity_sid": "%s"}`, wrapUp))
	for _, call := range rig.ring(`{"to": "+15005550006", "calls": 3}`) {
		if call.Outcome != "answered" {
			t.Errorf("the call is %+v", call)
		}
	}
	eventually(t, "the operator wraps up", func() bool {
		return slices.Contains(app.heard("/events", "WorkerActivityName"), "Wrap-up")
	})
}

func TestTheAPIAcceptsAndCompletesATask(t *testing.T) {
	rig := start(t)
	c, app := rig.reception(`{` + hurried + `}`)
	app.answerWith("/assign", func(url.Values) (int, string) { return http.StatusOK, "{}" })
	task := rig.mustPost(c.path("/Tasks"), url.Values{"Attributes": {`{"type": "callback"}`}})
	reservations := rig.mustGet(c.path("/Tasks/" + task["sid"].(string) + "/Reservations"))["reservations"].([]any)
	one := c.path("/Tasks/" + task["sid"].(string) + "/Reservations/" + reservations[0].(map[string]any)["sid"].(string))
	if status, body := rig.post(one, url.Values{"Instruction": {"dequeue"}}); status != 400 {
		t.Errorf("a task without a call was dequeued: %v", body)
	}
	if accepted := rig.mustPost(one, url.Values{"ReservationStatus": {"accepted"}}); accepted["reservation_status"] != "accepted" {
		t.Errorf("accepted %v", accepted)
	}
	status, body := rig.post(one, url.Values{"ReservationStatus": {"accepted"}})
	checkFailure(t, status, body, 400, 40144)
	status, body = rig.post(c.path("/Tasks/"+task["sid"].(string)), url.Values{"AssignmentStatus": {"canceled"}})
	checkFailure(t, status, body, 400, 20001)
	done := rig.mustPost(c.path("/Tasks/"+task["sid"].(string)), url.Values{"AssignmentStatus": {"completed"}, "Reason": {"called"}})
	if done["assignment_status"] != "completed" || done["reason"] != "called" {
		t.Errorf("completed %v", done)
	}
}

func TestEventsComeInTheWayOfCallbacks(t *testing.T) {
	for mode, want := range map[string]string{
		"ordered": "task.created task-queue.entered task.completed",
		"repeated": "task.created task-queue.entered task.completed task.created task-queue.entered " +
			"task.completed",
		"reversed": "task.completed task-queue.entered task.created",
	} {
		t.Run(mode, func(t *testing.T) {
			rig := start(t)
			c, app := rig.reception(`{` + hurried + `, "callbacks": "` + mode + `", "operators": {` + quick + `}}`)
			rig.mustPost(c.path(""), url.Values{"EventsFilter": {"task.created, task-queue.entered,task.completed"}})
			rig.ring(oneCall)
			eventually(t, want, func() bool { return app.events() == want })
		})
	}
}

func TestAStudioFlowGreetsAndEnqueues(t *testing.T) {
	rig := start(t)
	c, app := rig.reception(`{` + hurried + `, "operators": {` + quick + `}}`)
	flow := url.Values{"FriendlyName": {"Reception"}, "Status": {"draft"}, "Definition": {receptionFlow(c.workflow)}}
	made := rig.mustPost("/v2/Flows", flow)
	number := rig.phoneNumber(goodSender)
	path := "/2010-04-01/Accounts/" + testAccount + "/IncomingPhoneNumbers/" + number["sid"].(string) + ".json"
	rig.mustPost(path, url.Values{"VoiceUrl": {made["webhook_url"].(string)}})
	if calls := rig.ring(oneCall); calls[0].Outcome != "ended" {
		t.Errorf("a draft does something: %+v", calls)
	}
	published := rig.mustPost("/v2/Flows/"+made["sid"].(string), url.Values{"Status": {"published"}})
	if published["revision"] != 2.0 {
		t.Errorf("published %v", published)
	}
	if calls := rig.ring(oneCall); calls[1].Outcome != "answered" {
		t.Errorf("the call is %+v", calls[1])
	}
	if asked := app.heard("/voice", "CallSid"); len(asked) != 0 {
		t.Errorf("the voice webhook was asked all the same")
	}
}

// fallBackOn has a flow answer the number's calls whose documents fail, and returns its path.
func (r *rig) fallBackOn(definition string) string {
	r.t.Helper()
	form := url.Values{"FriendlyName": {"Fallback"}, "Status": {"published"}, "Definition": {definition}}
	if valid := r.mustPost("/v2/Flows/Validate", form); valid["valid"] != true {
		r.t.Errorf("the flow is not valid: %v", valid)
	}
	flow := r.mustPost("/v2/Flows", form)
	if page := r.mustGet("/v2/Flows"); len(page["flows"].([]any)) != 1 {
		r.t.Errorf("the flows are %v", page)
	}
	number := r.phoneNumber(goodSender)
	r.mustPost("/2010-04-01/Accounts/"+testAccount+"/IncomingPhoneNumbers/"+number["sid"].(string)+".json",
		url.Values{"VoiceFallbackUrl": {flow["webhook_url"].(string)}})
	return strings.TrimPrefix(flow["webhook_url"].(string), "https://webhooks.twilio.com")
}

const voicemailFlow = `{"initial_state": "Trigger", "states": [
	{"name": "Trigger", "type": "trigger", "properties": {}, "transitions": [
		{"event": "incomingCall", "next": "sorry"}]},
	{"name": "sorry", "type": "say-play", "properties": {"say": "sorry"}, "transitions": [
		{"event": "audioComplete", "next": "record"}]},
	{"name": "record", "type": "record-voicemail", "properties": {"max_length": 60}, "transitions": [
		{"event": "recordingComplete"}]}]}`

func TestACallWhoseDocumentsFailComesToTheNumbersFallback(t *testing.T) {
	for name, break_ := range map[string]func(*application, centre){
		"the first one":        func(app *application, _ centre) { app.answerWith("/voice", unavailable) },
		"one that is no TwiML": func(app *application, _ centre) { app.answer("/voice", "hello") },
		"one of the queue":     func(app *application, _ centre) { app.answerWith("/wait", unavailable) },
		"an impossible verb": func(app *application, _ centre) {
			app.answer("/voice", `<Response><Enqueue workflowSid="WW0"/></Response>`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			rig := start(t)
			c, app := rig.reception(`{` + hurried + `}`)
			rig.mustPost(c.path("/Workers/"+c.worker), url.Values{"ActivitySid": {c.offline}})
			path := rig.fallBackOn(voicemailFlow)
			break_(app, c)
			call := rig.ring(oneCall)[0]
			last := call.Requests[len(call.Requests)-1].Path
			if last == "status callback" {
				last = call.Requests[len(call.Requests)-2].Path
			}
			if call.Outcome != "ended" || last != path {
				t.Errorf("the call is %+v, want one that ends with %s", call, path)
			}
		})
	}
}

func unavailable(url.Values) (int, string) { return http.StatusServiceUnavailable, "" }

func TestCallsThatCameInAreListedWithTheOthers(t *testing.T) {
	rig := start(t)
	rig.reception(`{` + hurried + `, "operators": {` + quick + `}}`)
	rig.makeCall(nil)
	rig.ring(`{"to": "+15005550006", "calls": 3}`)
	rig.makeCall(nil)
	for query, want := range map[string]int{
		"To=%2B15005550006": 3, "": 5, "From=%2B15550100001": 1, "StartTime%3E=2999-01-01T00%3A00%3A00Z": 0,
		"To=%2B15005550006&Status=completed": 3, "To=%2B15005550006&StartTime%3E=2000-01-01T00%3A00%3A00Z": 3,
	} {
		seen := map[string]bool{}
		uri := "/2010-04-01/Accounts/" + testAccount + "/Calls.json?PageSize=2&" + query
		for uri != "" {
			page, _ := rig.page(uri)
			for _, shown := range page["calls"].([]any) {
				seen[shown.(map[string]any)["sid"].(string)] = true
			}
			uri, _ = page["next_page_uri"].(string)
		}
		if len(seen) != want {
			t.Errorf("%q: %d calls, want %d", query, len(seen), want)
		}
	}
}

func TestAnInboundCallIsACallOfTheAccount(t *testing.T) {
	rig := start(t)
	c, _ := rig.reception(`{` + hurried + `}`)
	rig.mustPost(c.path("/Workers/"+c.worker), url.Values{"ActivitySid": {c.offline}})
	if status, body := rig.control("POST", "inbound", oneCall); status != http.StatusAccepted {
		t.Fatal(body)
	}
	eventually(t, "the caller waits", func() bool { return rig.stat("inbound", "in_queue") == 1 })
	sid := rig.inboundCalls()[0].SID
	if shown := rig.call(sid); shown["direction"] != "inbound" || shown["status"] != "in-progress" {
		t.Errorf("the call is %v", shown)
	}
	if status, body := rig.api("POST", "/Calls/"+sid+".json", url.Values{"Status": {"completed"}}); status != 200 {
		t.Errorf("hanging up: %d %v", status, body)
	}
	eventually(t, "the call is over", func() bool { return rig.call(sid)["status"] == "completed" })
}

func TestManyCallersOverManyOperators(t *testing.T) {
	rig := start(t)
	c, _ := rig.reception(`{"second_ms": 50, "operators": {"answer": 8, "reject": 1, "vanish": 1, "return_after_ms": 5, ` + quick + `}}`)
	for i := range 9 {
		rig.mustPost(c.path("/Workers"), url.Values{"FriendlyName": {fmt.Sprint("operator ", i)},
			"ActivitySid": {c.offline}, "Attributes": {`{"skills": ["sales"], "contact_uri": "+15550100100"}`}})
	}
	if status, body := rig.control("POST", "operators", `{"activity": "Available"}`); status != 200 || body["moved"] != 10.0 {
		t.Fatalf("answered %d %v", status, body)
	}
	froms := map[string]bool{}
	for _, call := range rig.ring(`{"to": "+15005550006", "calls": 60, "per_second": 1000, "from": "+15550100098"}`) {
		froms[call.From] = true
		if call.Outcome != "answered" {
			t.Errorf("the call is %+v", call)
		}
	}
	if len(froms) != 60 || !froms["+15550100157"] {
		t.Errorf("%d callers", len(froms))
	}
}

func TestCallersThatMakeNoSense(t *testing.T) {
	rig := start(t)
	for _, test := range []struct {
		callers string
		status  int
		says    string
	}{
		{`{"to": "+15005550006"}`, 409, "account_sid is needed"},
		{`{"to": "+15005550006", "account_sid": "AC` + strings.Repeat("0", 32) + `"}`, 409, "has not used TaskRouter"},
		{`{"to": "me"}`, 400, "to must be a number"},
		{`{"to": "+15005550006", "from": "me"}`, 400, "from must be a number"},
		{`{"to": "+15005550006", "calls": 0}`, 400, "calls must be from 1"},
		{`{"to": "+15005550006", "per_second": -1}`, 400, "per_second must not be negative"},
		{`{"to": "+15005550006", "voice_url": "here"}`, 400, "voice_url must be"},
		{`{"to": "+15005550006", "press": {"digits": "1", "share": 2}}`, 400, "press must have digits"},
		{`{"to": "+15005550006", "patience_ms": -1}`, 400, "must not be negative"},
		{`{"to": "+15005550006", "friends": 3}`, 400, `unknown field "friends"`},
	} {
		status, body := rig.control("POST", "inbound", test.callers)
		if said, _ := body["error"].(string); status != test.status || !strings.Contains(said, test.says) {
			t.Errorf("%s: %d %v, want %d and %s", test.callers, status, body, test.status, test.says)
		}
	}
	rig.phoneNumber(goodSender)
	for callers, says := range map[string]string{
		`{"to": "+15005550006"}`: "has no VoiceUrl",
		`{"to": "+15005550000"}`: "has no number",
	} {
		status, body := rig.control("POST", "inbound", callers)
		if said, _ := body["error"].(string); status != 409 || !strings.Contains(said, says) {
			t.Errorf("%s: %d %v, want 409 and %s", callers, status, body, says)
		}
	}
}

func TestResetEndsTheCalls(t *testing.T) {
	rig := start(t)
	c, _ := rig.reception(`{}`)
	rig.mustPost(c.path("/Workers/"+c.worker), url.Values{"ActivitySid": {c.offline}})
	if status, body := rig.control("POST", "inbound", `{"to": "+15005550006", "calls": 20}`); status != http.StatusAccepted {
		t.Fatal(body)
	}
	eventually(t, "the callers are there", func() bool { return rig.stat("inbound", "in_progress") == 20 })
	if status, _ := rig.control("POST", "reset", ""); status != http.StatusNoContent {
		t.Errorf("answered %d", status)
	}
	if calls := rig.stat("inbound", "calls"); calls != 0 {
		t.Errorf("%v calls after the reset", calls)
	}
}
