package carrier

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/taskrouter"
)

// queue is a task queue as taskrouter writes it.
func queue(name string) taskrouter.Object {
	return taskrouter.Object{Kind: taskrouter.Queues, Name: name, Fields: map[string]string{
		"TargetWorkers": "1==1", "TaskOrder": "LIFO", "MaxReservedWorkers": "3"}}
}

func mustCreate(t *testing.T, r *rig, workspaceSID string, o taskrouter.Object) taskrouter.Object {
	t.Helper()
	made, err := r.client.TaskRouter().Create(t.Context(), workspaceSID, o)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func mustList(t *testing.T, r *rig, kind taskrouter.Kind, workspaceSID, name string) []taskrouter.Object {
	t.Helper()
	all, err := r.client.TaskRouter().List(t.Context(), kind, workspaceSID, name)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

const flowDefinition = `{"initial_state":"Trigger","states":[{"name":"Trigger","properties":{},"transitions":[],"type":"trigger"}]}`

// Every kind is made, read back field by field, changed and deleted.
func TestEveryKindGoesToTwilioAndBack(t *testing.T) {
	r := startRig(t, `{}`)
	twilio := r.client.TaskRouter()
	ws := mustCreate(t, r, "", taskrouter.Object{Kind: taskrouter.Workspaces, Name: "Support", Fields: map[string]string{
		"EventCallbackUrl": "https://t.example.com/events", "EventsFilter": "task.created", "Template": "NONE"}})
	configuration := func(queueSID string) string {
		return `{"task_routing":{"default_filter":{"queue":"` + queueSID + `"}}}`
	}
	sales := mustCreate(t, r, ws.SID, queue("Sales"))
	for _, test := range []struct {
		in            string
		made, changed taskrouter.Object
	}{
		{ws.SID, taskrouter.Object{Kind: taskrouter.Activities, Name: "Wrap-up", Fields: map[string]string{"Available": "false"}},
			taskrouter.Object{Fields: map[string]string{}}},
		{ws.SID, queue("Everyone"), taskrouter.Object{Fields: map[string]string{"TargetWorkers": `a == "b"`, "TaskOrder": "FIFO", "MaxReservedWorkers": "1"}}},
		{ws.SID, taskrouter.Object{Kind: taskrouter.Workers, Name: "aoi", Fields: map[string]string{"Attributes": `{"contact_uri":"client:aoi"}`}},
			taskrouter.Object{Fields: map[string]string{"Attributes": `{"contact_uri":"client:ren"}`}}},
		{ws.SID, taskrouter.Object{Kind: taskrouter.Workflows, Name: "Reception", Fields: map[string]string{
			"Configuration": configuration(sales.SID), "AssignmentCallbackUrl": "https://t.example.com/assign",
			"FallbackAssignmentCallbackUrl": "https://t.example.com/again", "TaskReservationTimeout": "20"}},
			taskrouter.Object{Fields: map[string]string{"TaskReservationTimeout": "30"}}},
		{"", taskrouter.Object{Kind: taskrouter.Flows, Name: "Support", Fields: map[string]string{"Status": "draft", "Definition": flowDefinition}},
			taskrouter.Object{Fields: map[string]string{"Status": "published"}}},
	} {
		t.Run(string(test.made.Kind), func(t *testing.T) {
			made := mustCreate(t, r, test.in, test.made)
			check := func(when string, want map[string]string) {
				t.Helper()
				for _, o := range mustList(t, r, made.Kind, test.in, made.Name) {
					if o.SID != made.SID {
						continue
					}
					for field, value := range want {
						if o.Name != made.Name || o.Fields[field] != value {
							t.Errorf("%s, %s of %s is %q, want %q", when, field, o.Name, o.Fields[field], value)
						}
					}
					return
				}
				t.Errorf("%s, it is not listed", when)
			}
			check("at first", test.made.Fields)
			changed := test.changed
			changed.Kind, changed.Name, changed.SID = made.Kind, made.Name, made.SID
			if err := twilio.Update(t.Context(), test.in, changed); err != nil {
				t.Fatal(err)
			}
			check("changed", changed.Fields)
			for range 2 { // the second time it is gone already
				if err := twilio.Delete(t.Context(), test.in, made); err != nil {
					t.Error(err)
				}
			}
			for _, o := range mustList(t, r, made.Kind, test.in, made.Name) {
				if o.SID == made.SID {
					t.Error("it is listed although it was deleted")
				}
			}
		})
	}
}

func TestTheAccountsSIDStaysInside(t *testing.T) {
	r := startRig(t, `{}`)
	flow := mustCreate(t, r, "", taskrouter.Object{Kind: taskrouter.Flows, Name: "Support", Fields: map[string]string{"Status": "published", "Definition": flowDefinition}})
	if flow.URL != "https://webhooks.twilio.com/v1/Accounts/{account}/Flows/"+flow.SID {
		t.Errorf("the flow's webhook is %s", flow.URL)
	}
	number := mustList(t, r, taskrouter.Numbers, "", testFrom)[0]
	number.Fields = map[string]string{"VoiceUrl": flow.URL, "TrunkSid": ""}
	if err := r.client.TaskRouter().Update(t.Context(), "", number); err != nil {
		t.Fatal(err)
	}
	if got := mustList(t, r, taskrouter.Numbers, "", testFrom)[0]; got.Fields["VoiceUrl"] != flow.URL {
		t.Errorf("the number's webhook is %s", got.Fields["VoiceUrl"])
	}
	if got := mustList(t, r, taskrouter.Numbers, "", "+15005550000"); len(got) != 0 {
		t.Errorf("a number of nobody's is %+v", got)
	}
}

func TestListsAreReadToTheLastPage(t *testing.T) {
	r := startRig(t, `{}`)
	ws := mustCreate(t, r, "", taskrouter.Object{Kind: taskrouter.Workspaces, Name: "Support"})
	for n := range largestPage + 1 {
		mustCreate(t, r, ws.SID, taskrouter.Object{Kind: taskrouter.Activities, Name: fmt.Sprint("a", n), Fields: map[string]string{"Available": "true"}})
	}
	if all := mustList(t, r, taskrouter.Activities, ws.SID, ""); len(all) != largestPage+4 { // three are there from the first
		t.Errorf("%d were listed", len(all))
	}
}

func TestPagesThatLeadElsewhereAreNotFollowed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"workspaces": [], "meta": {"next_page_url": "https://evil.example.com/v1/Others?Page=1"}}`))
	}))
	t.Cleanup(server.Close)
	_, err := newClient(t, server.URL).TaskRouter().List(t.Context(), taskrouter.Workspaces, "", "")
	expect(t, err, SafeToRetry, nil)
	if !strings.Contains(err.Error(), "its next page is not a page of the same list") {
		t.Error(err)
	}
}

func TestNothingIsWrittenAfterTheDeadline(t *testing.T) {
	r := startRig(t, `{}`)
	twilio := r.client.TaskRouter().Until(time.Now().Add(-time.Second))
	_, err := twilio.Create(t.Context(), "", taskrouter.Object{Kind: taskrouter.Workspaces, Name: "Support"})
	expect(t, err, SafeToRetry, ErrDeadline)
	if made := mustList(t, r, taskrouter.Workspaces, "", ""); len(made) != 0 {
		t.Errorf("%v was made", made)
	}
}

func TestWritesHaveTheirClassToo(t *testing.T) {
	for fault, want := range map[string]struct {
		class Class
		made  int
	}{
		"accept_then_drop": {Ambiguous, 1},
		"refuse":           {Ambiguous, 0},
		"http_500":         {Ambiguous, 0},
		"html_503":         {Ambiguous, 0},
		"rate_limited":     {SafeToRetry, 0},
	} {
		r := startRig(t, `{"fault": {"kind": "`+fault+`", "count": 1}}`)
		_, err := r.client.TaskRouter().Create(t.Context(), "", taskrouter.Object{Kind: taskrouter.Workspaces, Name: "Support"})
		expect(t, err, want.class, nil)
		if made := mustList(t, r, taskrouter.Workspaces, "", ""); len(made) != want.made {
			t.Errorf("%s: %d workspaces were made, want %d", fault, len(made), want.made)
		}
	}
	r := startRig(t, `{}`)
	ws := mustCreate(t, r, "", taskrouter.Object{Kind: taskrouter.Workspaces, Name: "Support"})
	bad := queue("Sales")
	bad.Fields["TargetWorkers"] = "skills LIKE 1"
	_, err := r.client.TaskRouter().Create(t.Context(), ws.SID, bad)
	expect(t, err, Request, nil)
	if !strings.Contains(err.Error(), "create the task queue: Invalid TargetWorkers expression: at character 8 there is LIKE") {
		t.Error(err)
	}
	number := taskrouter.Object{Kind: taskrouter.Numbers, Name: testFrom} // is neither bought nor given up
	_, err = r.client.TaskRouter().Create(t.Context(), "", number)
	expect(t, err, Request, nil)
	expect(t, r.client.TaskRouter().Delete(t.Context(), "", number), Request, nil)
}

func TestAFlowIsValidatedWithoutBeingMade(t *testing.T) {
	r := startRig(t, `{}`)
	for definition, want := range map[string]Class{flowDefinition: "", `{"states": [], "initial_state": "Trigger"}`: Request} {
		err := r.client.TaskRouter().Validate(t.Context(), taskrouter.Object{Kind: taskrouter.Flows, Name: "Support",
			Fields: map[string]string{"Status": "published", "Definition": definition}})
		if ClassOf(err) != want || (err == nil) != (want == "") {
			t.Errorf("%s: %v", definition, err)
		}
	}
	if flows := mustList(t, r, taskrouter.Flows, "", "Support"); len(flows) != 0 {
		t.Errorf("there is %+v", flows)
	}
}

func TestACallbackTaskIsMadeFoundAndCanceled(t *testing.T) {
	r := startRig(t, `{}`)
	ws := mustCreate(t, r, "", taskrouter.Object{Kind: taskrouter.Workspaces, Name: "Support"})
	everyone := mustCreate(t, r, ws.SID, queue("Everyone"))
	workflow := mustCreate(t, r, ws.SID, taskrouter.Object{Kind: taskrouter.Workflows, Name: "Reception", Fields: map[string]string{
		"Configuration": `{"task_routing":{"default_filter":{"queue":"` + everyone.SID + `"}}}`}})
	call := uuid.New()
	find := func(call uuid.UUID, want string) {
		t.Helper()
		if sid, err := r.client.FindCallbackTask(t.Context(), ws.SID, call); sid != want || err != nil {
			t.Errorf("found %q, error %v, want %q", sid, err, want)
		}
	}
	find(call, "")
	late := CallbackTask{WorkspaceSID: ws.SID, WorkflowSID: workflow.SID, CallID: call, Deadline: time.Now().Add(-time.Second)}
	if _, err := r.client.CreateCallbackTask(t.Context(), late); !errors.Is(err, ErrDeadline) || ClassOf(err) != SafeToRetry {
		t.Errorf("after the deadline: %v", err)
	}
	find(call, "")
	late.Deadline = time.Now().Add(time.Minute)
	sid, err := r.client.CreateCallbackTask(t.Context(), late)
	if err != nil {
		t.Fatal(err)
	}
	find(call, sid)
	find(uuid.New(), "")
	for range 2 { // the second time it is canceled already
		if canceled, err := r.client.CancelTask(t.Context(), ws.SID, sid); !canceled || err != nil {
			t.Errorf("canceled %t, error %v", canceled, err)
		}
	}
	if err := r.client.TaskRouter().Delete(t.Context(), "", ws); err != nil {
		t.Fatal(err)
	}
	find(call, "")
	if canceled, err := r.client.CancelTask(t.Context(), ws.SID, sid); canceled || err != nil {
		t.Errorf("of a workspace that is gone: canceled %t, error %v", canceled, err)
	}
}
