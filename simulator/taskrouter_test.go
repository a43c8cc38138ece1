package simulator_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/twilio/twilio-go/client"
	taskrouter "github.com/twilio/twilio-go/rest/taskrouter/v1"
)

// centre is a call centre of one operator at TaskRouter.
type centre struct {
	workspace, available, offline, queue, worker, workflow string // SIDs
}

func (c centre) path(rest string) string { return "/v1/Workspaces/" + c.workspace + rest }

// callCentre makes a workspace whose callbacks go to paths of the application: /events and /assign.
func (r *rig) callCentre(application string) centre {
	r.t.Helper()
	var c centre
	c.workspace = r.mustPost("/v1/Workspaces", url.Values{
		"FriendlyName": {"Support"}, "EventCallbackUrl": {application + "/events"},
	})["sid"].(string)
	for _, a := range r.mustGet(c.path("/Activities"))["activities"].([]any) {
		switch a := a.(map[string]any); a["friendly_name"] {
		case "Available":
			c.available = a["sid"].(string)
		case "Offline":
			c.offline = a["sid"].(string)
		}
	}
	c.queue = r.mustPost(c.path("/TaskQueues"), url.Values{
		"FriendlyName": {"Sales"}, "TargetWorkers": {`skills HAS "sales"`},
	})["sid"].(string)
	c.worker = r.mustPost(c.path("/Workers"), url.Values{
		"FriendlyName": {"aoi"}, "ActivitySid": {c.available},
		"Attributes": {`{"skills": ["sales"], "contact_uri": "client:aoi"}`},
	})["sid"].(string)
	c.workflow = r.mustPost(c.path("/Workflows"), url.Values{
		"FriendlyName": {"Reception"}, "AssignmentCallbackUrl": {application + "/assign"},
		"TaskReservationTimeout": {"10"}, "Configuration": {routingTo(c.queue)},
	})["sid"].(string)
	return c
}

// routingTo is the configuration of a workflow that has one queue.
func routingTo(queue string) string {
	return `{"task_routing": {"filters": [], "default_filter": {"queue": "` + queue + `"}}}`
}

func (r *rig) post(path string, form url.Values) (int, map[string]any) {
	r.t.Helper()
	return r.do(r.request("POST", path, form.Encode()))
}

func (r *rig) mustPost(path string, form url.Values) map[string]any {
	r.t.Helper()
	status, body := r.post(path, form)
	if status != http.StatusCreated && status != http.StatusOK {
		r.t.Fatalf("POST %s %v: %d %v", path, form, status, body)
	}
	return body
}

func (r *rig) mustGet(path string) map[string]any {
	r.t.Helper()
	status, body := r.do(r.request("GET", path, ""))
	if status != http.StatusOK {
		r.t.Fatalf("GET %s: %d %v", path, status, body)
	}
	return body
}

// phoneNumber is the account's number.
func (r *rig) phoneNumber(number string) map[string]any {
	r.t.Helper()
	_, page := r.api("GET", "/IncomingPhoneNumbers.json?PhoneNumber="+url.QueryEscape(number), nil)
	found, _ := page["incoming_phone_numbers"].([]any)
	if len(found) != 1 {
		r.t.Fatalf("listed %v", page)
	}
	return found[0].(map[string]any)
}

// stat is one number of /_simulator/stats, named by its path.
func (r *rig) stat(path ...string) float64 {
	r.t.Helper()
	_, body := r.control("GET", "stats", "")
	var value any = body
	for _, part := range path {
		value = value.(map[string]any)[part]
	}
	return value.(float64)
}

func TestWorkspaceBeginsWithThreeActivities(t *testing.T) {
	rig := start(t)
	ws := rig.mustPost("/v1/Workspaces", url.Values{"FriendlyName": {"Support"}, "Template": {"NONE"}})
	page := rig.mustGet("/v1/Workspaces/" + ws["sid"].(string) + "/Activities")
	var names []string
	for _, a := range page["activities"].([]any) {
		a := a.(map[string]any)
		names = append(names, fmt.Sprint(a["friendly_name"], " ", a["available"]))
	}
	if got := strings.Join(names, ", "); got != "Offline false, Available true, Unavailable false" {
		t.Errorf("activities are %s", got)
	}
	if ws["default_activity_name"] != "Offline" || ws["timeout_activity_name"] != "Offline" {
		t.Errorf("made %v", ws)
	}
}

func TestAvailableOfAnActivityCannotBeChanged(t *testing.T) {
	rig := start(t)
	centre := rig.callCentre("http://127.0.0.1:1")
	changed := rig.mustPost(centre.path("/Activities/"+centre.offline), url.Values{
		"FriendlyName": {"Gone"}, "Available": {"true"},
	})
	if changed["available"] != false || changed["friendly_name"] != "Gone" {
		t.Errorf("changed to %v", changed)
	}
}

func TestTaskRouterRefusals(t *testing.T) {
	rig := start(t)
	c := rig.callCentre("http://127.0.0.1:1")
	for name, test := range map[string]struct {
		method, path string
		form         url.Values
		status, code int
	}{
		"a workspace without a name": {"POST", "/v1/Workspaces", url.Values{"FriendlyName": {" "}}, 400, 20001},
		"a callback that is no URL":  {"POST", c.path(""), url.Values{"EventCallbackUrl": {"here"}}, 400, 20001},
		"an event that is none":      {"POST", c.path(""), url.Values{"EventsFilter": {"task.born"}}, 400, 20001},
		"an activity that is none": {"POST", c.path(""),
			url.Values{"TimeoutActivitySid": {"WA" + strings.Repeat("0", 32)}}, 400, 20001},
		"a bad expression": {"POST", c.path("/TaskQueues"),
			url.Values{"FriendlyName": {"x"}, "TargetWorkers": {"skills LIKE 1"}}, 400, 20001},
		"too many reservations": {"POST", c.path("/TaskQueues"),
			url.Values{"FriendlyName": {"x"}, "MaxReservedWorkers": {"51"}}, 400, 20001},
		"a worker's name in other letters": {"POST", c.path("/Workers"), url.Values{"FriendlyName": {"AOI"}}, 400, 20001},
		"attributes that are no object": {"POST", c.path("/Workers"),
			url.Values{"FriendlyName": {"x"}, "Attributes": {"[1]"}}, 400, 20001},
		"a workflow without a configuration": {"POST", c.path("/Workflows"),
			url.Values{"FriendlyName": {"x"}}, 400, 20001},
		"a workflow to no queue": {"POST", c.path("/Workflows"), url.Values{"FriendlyName": {"x"},
			"Configuration": {routingTo("WQ" + strings.Repeat("0", 32))}}, 400, 20001},
		"a filter that makes no sense": {"POST", c.path("/Workflows/" + c.workflow), url.Values{
			"Configuration": {`{"task_routing": {"filters": [{"expression": "1 ==", "targets": [{"queue": "` +
				c.queue + `"}]}]}}`}}, 400, 20001},
		"a task for no workflow": {"POST", c.path("/Tasks"),
			url.Values{"WorkflowSid": {"WW" + strings.Repeat("0", 32)}}, 400, 20001},
		"a queue that is routed to": {"DELETE", c.path("/TaskQueues/" + c.queue), nil, 400, 20001},
		"an activity in use":        {"DELETE", c.path("/Activities/" + c.available), nil, 400, 20001},
		"an available worker":       {"DELETE", c.path("/Workers/" + c.worker), nil, 400, 20001},
		"an absolute page":          {"GET", c.path("/Workers?Page=1"), nil, 400, 40153},
		"a workspace that is none":  {"GET", "/v1/Workspaces/WS1/Workers", nil, 404, 20404},
		"a collection that is none": {"GET", c.path("/Nothing"), nil, 404, 20404},
		"a method that is none":     {"DELETE", c.path("/Workers"), nil, 405, 20004},
		"a flow without a status":   {"POST", "/v2/Flows", url.Values{"FriendlyName": {"x"}, "Definition": {"{}"}}, 400, 20001},
		"a flow that is no flow": {"POST", "/v2/Flows",
			url.Values{"FriendlyName": {"x"}, "Status": {"draft"}, "Definition": {"{}"}}, 400, 60202},
		"a flow of unknown widgets": {"POST", "/v2/Flows/Validate", url.Values{"FriendlyName": {"x"},
			"Status": {"draft"}, "Definition": {`{"states": [{"name": "x", "type": "juggle"}]}`}}, 400, 60202},
	} {
		t.Run(name, func(t *testing.T) {
			writes := rig.stat("writes")
			status, body := rig.do(rig.request(test.method, test.path, test.form.Encode()))
			checkFailure(t, status, body, test.status, test.code)
			if after := rig.stat("writes"); after != writes {
				t.Errorf("a refusal counts as %v writes", after-writes)
			}
		})
	}
}

func TestNumbersThatNobodyCanBuyBelongToNobody(t *testing.T) {
	rig := start(t)
	for _, number := range []string{"+15005550000", "+15005550001", "123"} {
		_, page := rig.api("GET", "/IncomingPhoneNumbers.json?PhoneNumber="+url.QueryEscape(number), nil)
		if found := page["incoming_phone_numbers"].([]any); len(found) != 0 {
			t.Errorf("%s is %v", number, found)
		}
	}
}

// TestTwilioGoProvisions goes through lists, creates, updates and deletes with Twilio's own library, page by page.
func TestTwilioGoProvisions(t *testing.T) {
	rig := start(t)
	c := &client.Client{
		Credentials: client.NewCredentials(testAccount, testToken),
		HTTPClient:  &http.Client{Transport: rig.redirected()},
	}
	c.SetAccountSid(testAccount)
	twilio := taskrouter.NewApiServiceWithClient(c)
	ws, err := twilio.CreateWorkspace((&taskrouter.CreateWorkspaceParams{}).SetFriendlyName("Support"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		params := (&taskrouter.CreateWorkerParams{}).SetFriendlyName(fmt.Sprintf("worker %d", i))
		if _, err := twilio.CreateWorker(*ws.Sid, params.SetAttributes(`{"n": 1}`)); err != nil {
			t.Fatal(err)
		}
	}
	workers, err := twilio.ListWorker(*ws.Sid, (&taskrouter.ListWorkerParams{}).SetPageSize(2))
	if err != nil || len(workers) != 5 {
		t.Fatalf("listed %d workers: %v", len(workers), err)
	}
	workers, err = twilio.ListWorker(*ws.Sid, (&taskrouter.ListWorkerParams{}).SetFriendlyName("worker 3"))
	if err != nil || len(workers) != 1 {
		t.Fatalf("listed %d workers: %v", len(workers), err)
	}
	update := (&taskrouter.UpdateWorkerParams{}).SetAttributes(`{"n": 2}`)
	if changed, err := twilio.UpdateWorker(*ws.Sid, *workers[0].Sid, update); err != nil || *changed.Attributes != `{"n": 2}` {
		t.Errorf("changed %v: %v", changed, err)
	}
	if err := twilio.DeleteWorker(*ws.Sid, *workers[0].Sid, nil); err != nil {
		t.Error(err)
	}
	var refused *client.TwilioRestError
	if err := twilio.DeleteWorker(*ws.Sid, *workers[0].Sid, nil); !errors.As(err, &refused) || refused.Status != 404 {
		t.Errorf("deleting twice: %v", err)
	}
	if writes := rig.stat("writes"); writes != 8 {
		t.Errorf("%v writes, want 8", writes)
	}
}

func TestFaultsHitTaskRoutersCreatesToo(t *testing.T) {
	for fault, made := range map[string]int{"http_500": 0, "http_500_after_accept": 1} {
		rig := start(t)
		rig.behave(`{"fault": {"kind": "` + fault + `", "count": 1}}`)
		status, _ := rig.post("/v1/Workspaces", url.Values{"FriendlyName": {"Support"}})
		workspaces := rig.mustGet("/v1/Workspaces?FriendlyName=Support")["workspaces"].([]any)
		if status != 500 || len(workspaces) != made {
			t.Errorf("%s: answered %d, and there are %d workspaces", fault, status, len(workspaces))
		}
	}
}

// receptionFlow greets and enqueues.
func receptionFlow(workflow string) string {
	type object = map[string]any
	definition, _ := json.Marshal(object{
		"description": "reception", "initial_state": "Trigger", "flags": object{"allow_concurrent_calls": true},
		"states": []object{
			{"name": "Trigger", "type": "trigger", "properties": object{}, "transitions": []object{
				{"event": "incomingCall", "next": "greet"}, {"event": "incomingMessage"}}},
			{"name": "greet", "type": "say-play", "properties": object{"say": "hello"},
				"transitions": []object{{"event": "audioComplete", "next": "enqueue"}}},
			{"name": "enqueue", "type": "enqueue-call", "properties": object{"workflow_sid": workflow},
				"transitions": []object{{"event": "callComplete"}}},
		},
	})
	return string(definition)
}
