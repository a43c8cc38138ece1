package activities_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/store"
	"github.com/todoku/todoku/taskrouter"
)

// callCentre is what a test applies, with so many writes where nothing is there.
const callCentre = `workspace: Support
activities: [{name: Wrap-up, available: false}]
queues:
- {name: Sales, workers: 'skills HAS "sales"'}
- {name: Everyone}
operators:
- {name: aoi, contact_uri: 'client:aoi', attributes: {skills: [sales]}, activity: Available}
routing:
  name: Reception
  filters: [{name: Sales, when: 'topic == "sales"', targets: [{queue: Sales, timeout: 30s}]}]
  default: {queue: Everyone}
calls: {number: '+15005550006', answered_by: studio, greeting: hello, after_call: Wrap-up}
`

const callCentreWrites = 9

// board is a bench whose way to Twilio can be cut.
type board struct {
	*bench
	env    *testsuite.TestActivityEnvironment
	writes atomic.Int64 // that have arrived at Twilio
	cutAt  atomic.Int64 // which of them is the last to arrive; its answer is lost; 0: none

	meanwhile func() // happens at Twilio once, after the first of them
}

func newBoard(t *testing.T) *board {
	t.Helper()
	b := &board{bench: newBench(t)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cut := b.cutAt.Load()
		if cut > 0 && b.writes.Load() >= cut {
			panic(http.ErrAbortHandler)
		}
		answer := httptest.NewRecorder()
		b.sim.Config.Handler.ServeHTTP(answer, r)
		if r.Method != http.MethodGet && r.URL.Path != "/v2/Flows/Validate" {
			n := b.writes.Add(1)
			if n == 1 && b.meanwhile != nil {
				b.meanwhile()
			}
			if n == cut {
				panic(http.ErrAbortHandler)
			}
		}
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	}))
	t.Cleanup(server.Close)
	twilio, err := carrier.New(carrier.Options{AccountSID: testAccount, AuthToken: "token", APIURL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(twilio.Close)
	b.Carrier = twilio
	b.Terms.TaskRouterURLs = taskrouter.URLs{
		Voice: "https://t.example.com/voice", VoiceStatus: "https://t.example.com/status", Wait: "https://t.example.com/wait",
		Assignment: "https://t.example.com/assign", Events: "https://t.example.com/events",
	}
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	b.env = suite.NewTestActivityEnvironment()
	b.env.RegisterActivity(b.Activities)
	return b
}

const testAccount = "AC00000000000000000000000000000000"

// request asks for a run.
func (b *board) request(action, file string) uuid.UUID {
	b.t.Helper()
	id := uuid.Must(uuid.NewV7())
	if _, err := b.Store.AddTaskRouterRun(b.t.Context(), id, action, "taskrouter.yaml", file); err != nil {
		b.t.Fatal(err)
	}
	return id
}

// carryOut lets the activity have one try.
func (b *board) carryOut() error {
	b.t.Helper()
	_, err := b.env.ExecuteActivity(b.CarryOutTaskRouter)
	return err
}

// run asks for a run and carries it out.
func (b *board) run(action, file string) store.TaskRouterRun {
	b.t.Helper()
	id := b.request(action, file)
	if err := b.carryOut(); err != nil {
		b.t.Fatal(err)
	}
	run, err := b.Store.TaskRouterRun(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	return run
}

// cutOff carries a run out until the way to Twilio is cut, behind so many writes of it and one more. A try that came
// forward is gone on with at once; one that did not is an error, after which Temporal waits a little.
func (b *board) cutOff(done int64) {
	b.t.Helper()
	if err := b.carryOut(); (err == nil) != (done > 0) {
		b.t.Fatalf("after %d writes the try ended with %v", done, err)
	}
	b.cutAt.Store(0)
}

// mustRun is run, of one that goes well.
func (b *board) mustRun(action, file string) store.TaskRouterRun {
	b.t.Helper()
	run := b.run(action, file)
	if run.Problem != nil {
		b.t.Fatalf("%s: %s", action, *run.Problem)
	}
	return run
}

// twilio asks the simulator itself.
func (b *board) twilio(method, path string, form url.Values) map[string]any {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.sim.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	request.SetBasicAuth(testAccount, "token")
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	var body map[string]any
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil && response.StatusCode != http.StatusNoContent || response.StatusCode >= 300 {
		b.t.Fatalf("%s %s: %d %v %v", method, path, response.StatusCode, body, err)
	}
	return body
}

// names are what exists at Twilio: in the workspaces, and the flows.
func (b *board) names() string {
	b.t.Helper()
	var names []string
	add := func(path, key string) (sids []string) {
		for _, one := range b.twilio("GET", path, nil)[key].([]any) {
			one := one.(map[string]any)
			names = append(names, one["friendly_name"].(string))
			sids = append(sids, one["sid"].(string))
		}
		return sids
	}
	for _, ws := range add("/v1/Workspaces", "workspaces") {
		for path, key := range map[string]string{"Activities": "activities", "TaskQueues": "task_queues", "Workers": "workers", "Workflows": "workflows"} {
			add("/v1/Workspaces/"+ws+"/"+path, key)
		}
	}
	add("/v2/Flows", "flows")
	slices.Sort(names)
	return strings.Join(names, " ")
}

const everything = "Available Everyone Offline Reception Sales Support Support Support fallback Unavailable Wrap-up aoi"

func (b *board) workspace() string {
	b.t.Helper()
	return b.twilio("GET", "/v1/Workspaces", nil)["workspaces"].([]any)[0].(map[string]any)["sid"].(string)
}

func (b *board) number() map[string]any {
	b.t.Helper()
	page := b.twilio("GET", "/2010-04-01/Accounts/"+testAccount+"/IncomingPhoneNumbers.json?PhoneNumber=%2B15005550006", nil)
	return page["incoming_phone_numbers"].([]any)[0].(map[string]any)
}

func TestApplyMakesWhatAPlanShows(t *testing.T) {
	b := newBoard(t)
	plan := b.mustRun(activities.TaskRouterPlan, callCentre)
	if n := b.writes.Load(); n != 0 || b.names() != "" {
		t.Errorf("a plan has made %d writes, and there is %s", n, b.names())
	}
	apply := b.mustRun(activities.TaskRouterApply, callCentre)
	if fmt.Sprint(plan.Changes) != fmt.Sprint(apply.Changes) {
		t.Errorf("planned %v\ndone    %v", plan.Changes, apply.Changes)
	}
	if n := b.writes.Load(); n != callCentreWrites || b.names() != everything {
		t.Errorf("%d writes, want %d; there is %s", n, callCentreWrites, b.names())
	}
	if voice := b.number()["voice_url"].(string); !strings.HasPrefix(voice, "https://webhooks.twilio.com/v1/Accounts/"+testAccount+"/Flows/FW") {
		t.Errorf("the number's webhook is %s", voice)
	}
	policy, err := b.Store.InboundPolicy(t.Context())
	if err != nil || policy.WorkspaceSID != b.workspace() || policy.WorkflowSID == "" || policy.PostWorkActivitySID == "" || policy.Greeting.Say != "hello" {
		t.Errorf("calls are received by %+v, error %v", policy, err)
	}
}

// While Todoku cannot be reached, nothing of its own can answer a call.
func TestTheFallbackOfTheNumberIsAFlow(t *testing.T) {
	b := newBoard(t)
	file := strings.Replace(callCentre, "answered_by: studio", "answered_by: webhook", 1)
	b.mustRun(activities.TaskRouterApply, file)
	flow := func() map[string]any {
		flows := b.twilio("GET", "/v2/Flows", nil)["flows"].([]any)
		if len(flows) != 1 {
			t.Fatalf("there are %d flows", len(flows))
		}
		return flows[0].(map[string]any)
	}
	made := flow()
	if number := b.number(); number["voice_fallback_url"] != made["webhook_url"] || made["status"] != "published" || number["voice_url"] != "https://t.example.com/voice" {
		t.Errorf("the number is %v, the flow %v", number, made)
	}
	file = strings.Replace(file, "greeting: hello", "greeting: hello, away: {say: [ごめんなさい, sorry], voicemail: 1m}", 1)
	for _, action := range []string{activities.TaskRouterPlan, activities.TaskRouterApply} {
		if run := b.mustRun(action, file); len(run.Changes) != 1 || run.Changes[0].Name != "Support fallback" || run.Changes[0].Fields[0].Field != "Definition" {
			t.Errorf("%s: %+v", action, run.Changes)
		}
	}
	if changed := flow(); changed["sid"] != made["sid"] || changed["revision"] != 2.0 || !strings.Contains(fmt.Sprint(changed["definition"]), "max_length:60") {
		t.Errorf("the flow is %v", changed)
	}
	// Somebody has pointed the fallback elsewhere.
	b.twilio("POST", "/2010-04-01/Accounts/"+testAccount+"/IncomingPhoneNumbers/"+b.number()["sid"].(string)+".json",
		url.Values{"VoiceFallbackUrl": {"https://t.example.com/voice"}})
	run := b.mustRun(activities.TaskRouterPlan, file)
	if len(run.Changes) != 1 || run.Changes[0].Fields[0].Field != "VoiceFallbackUrl" || run.Changes[0].Fields[0].To != "{studio flow:Support fallback}" {
		t.Errorf("the plan has %+v", run.Changes)
	}
	b.mustRun(activities.TaskRouterApply, file)
	if number := b.number(); number["voice_fallback_url"] != made["webhook_url"] {
		t.Errorf("the number's fallback is %v", number["voice_fallback_url"])
	}
	b.mustRun(activities.TaskRouterDestroy, "")
	if fallback := b.number()["voice_fallback_url"]; fallback != "" || b.names() != "" {
		t.Errorf("the number's fallback is %v, and there is %s", fallback, b.names())
	}
}

func TestApplyOfAnUnchangedFileWritesNothing(t *testing.T) {
	b := newBoard(t)
	b.mustRun(activities.TaskRouterApply, callCentre)
	before := b.writes.Load()
	for range 3 {
		if run := b.mustRun(activities.TaskRouterApply, callCentre); len(run.Changes) != 0 {
			t.Errorf("it has done %v", run.Changes)
		}
	}
	if n := b.writes.Load() - before; n != 0 {
		t.Errorf("%d writes, want none", n)
	}
}

func TestWhatOnlyOurWebhooksSayIsNoWriteAtTwilio(t *testing.T) {
	b := newBoard(t)
	file := strings.Replace(callCentre, "answered_by: studio", "answered_by: webhook", 1)
	b.mustRun(activities.TaskRouterApply, file)
	before := b.writes.Load()
	file = strings.Replace(file, "greeting: hello", "greeting: good morning", 1)
	for _, action := range []string{activities.TaskRouterPlan, activities.TaskRouterApply} {
		run := b.mustRun(action, file)
		if len(run.Changes) != 1 || run.Changes[0].Kind != taskrouter.Policies || run.Changes[0].Fields[0].To != `{"Play":"","Say":"good morning"}` {
			t.Errorf("%s: %+v", action, run.Changes)
		}
	}
	if run := b.mustRun(activities.TaskRouterApply, file); len(run.Changes) != 0 || b.writes.Load() != before {
		t.Errorf("it has done %v, with %d writes", run.Changes, b.writes.Load()-before)
	}
	if policy, err := b.Store.InboundPolicy(t.Context()); err != nil || policy.Greeting.Say != "good morning" {
		t.Errorf("calls are received by %+v, error %v", policy, err)
	}
}

func TestWhatOperatorsDoIsTheirOwnAffair(t *testing.T) {
	b := newBoard(t)
	b.mustRun(activities.TaskRouterApply, callCentre)
	workers := b.twilio("GET", "/v1/Workspaces/"+b.workspace()+"/Workers", nil)["workers"].([]any)
	worker := workers[0].(map[string]any)
	if worker["activity_name"] != "Available" {
		t.Errorf("a new operator is %v", worker["activity_name"])
	}
	for _, a := range b.twilio("GET", "/v1/Workspaces/"+b.workspace()+"/Activities", nil)["activities"].([]any) {
		if a := a.(map[string]any); a["friendly_name"] == "Wrap-up" {
			b.twilio("POST", "/v1/Workspaces/"+b.workspace()+"/Workers/"+worker["sid"].(string), url.Values{"ActivitySid": {a["sid"].(string)}})
		}
	}
	if run := b.mustRun(activities.TaskRouterApply, callCentre); len(run.Changes) != 0 {
		t.Errorf("it has done %v", run.Changes)
	}
}

// Wherever the way to Twilio is cut, and with it the answer to a write, the next try makes what is missing and knows
// what was made.
func TestAnApplyThatIsCutAnywhereIsMendedByTheNext(t *testing.T) {
	for cut := range int64(callCentreWrites) {
		t.Run(fmt.Sprint("after write ", cut+1), func(t *testing.T) {
			b := newBoard(t)
			b.cutAt.Store(cut + 1)
			id := b.request(activities.TaskRouterApply, callCentre)
			b.cutOff(cut)
			if err := b.carryOut(); err != nil { // as Temporal does
				t.Fatal(err)
			}
			run, err := b.Store.TaskRouterRun(t.Context(), id)
			// Of the write whose answer was lost, nobody can say who made it; the policy is no write.
			if n := len(run.Changes); err != nil || n != callCentreWrites {
				t.Errorf("the run has done %d things, want %d; error %v", n, callCentreWrites, err)
			}
			if n := b.writes.Load(); n != callCentreWrites || b.names() != everything {
				t.Errorf("%d writes, want %d; there is %s", n, callCentreWrites, b.names())
			}
			if run := b.mustRun(activities.TaskRouterApply, callCentre); len(run.Changes) != 0 {
				t.Errorf("the next apply has done %v", run.Changes)
			}
			b.mustRun(activities.TaskRouterDestroy, "")
			if b.names() != "" {
				t.Errorf("after destroy there is %s", b.names())
			}
		})
	}
}

func TestADestroyThatIsCutAnywhereIsMendedByTheNext(t *testing.T) {
	for cut := range int64(callCentreWrites + 1) { // before an operator goes, he is sent offline
		t.Run(fmt.Sprint("after write ", cut+1), func(t *testing.T) {
			b := newBoard(t)
			b.mustRun(activities.TaskRouterApply, callCentre)
			b.cutAt.Store(callCentreWrites + cut + 1)
			b.request(activities.TaskRouterDestroy, "")
			b.cutOff(cut)
			if err := b.carryOut(); err != nil {
				t.Fatal(err)
			}
			objects, err := b.Store.TaskRouterObjects(t.Context())
			if b.names() != "" || len(objects) != 0 || err != nil {
				t.Errorf("there is %s; noted are %v, error %v", b.names(), objects, err)
			}
			if voice := b.number()["voice_url"]; voice != "" {
				t.Errorf("the number's webhook is %v", voice)
			}
		})
	}
}

// A worker that sleeps for longer than Temporal waits has a second try beside it once it wakes up.
func TestATryThatHasLostItsRunWritesNothingMore(t *testing.T) {
	b := newBoard(t)
	id := b.request(activities.TaskRouterApply, callCentre)
	b.meanwhile = func() {
		b.execute(`UPDATE taskrouter_runs SET held_by = gen_random_uuid(), held_until = clock_timestamp() + '2 s'::interval WHERE id = $1`, id)
	}
	if err := b.carryOut(); err == nil || b.writes.Load() != 1 {
		t.Errorf("the try ended with %v after %d writes, want 1", err, b.writes.Load())
	}
	lost := time.Now()
	if err := b.carryOut(); err != nil { // it waits until the other one's time is over
		t.Fatal(err)
	}
	if waited := time.Since(lost); waited < time.Second || b.writes.Load() != callCentreWrites || b.names() != everything {
		t.Errorf("after %s there are %d writes, and %s", waited, b.writes.Load(), b.names())
	}
}

func TestAfterAFewTriesARunSaysWhyItGaveUp(t *testing.T) {
	b := newBoard(t)
	b.behave(`{"fault": {"kind": "html_503"}}`)
	id := b.request(activities.TaskRouterApply, callCentre)
	if err := b.carryOut(); err == nil { // the first of some tries: Temporal makes the others
		t.Error("a load balancer's error ends the run at once")
	}
	run, err := b.Store.TaskRouterRun(t.Context(), id)
	if err != nil || run.FinishedAt != nil {
		t.Errorf("the run is %+v, error %v", run, err)
	}
}

func TestWhatTwilioRefusesForGoodIsNotTriedAgain(t *testing.T) {
	b := newBoard(t)
	b.mustRun(activities.TaskRouterApply, callCentre)
	workers := b.twilio("GET", "/v1/Workspaces/"+b.workspace()+"/Workers", nil)["workers"].([]any)
	for _, a := range b.twilio("GET", "/v1/Workspaces/"+b.workspace()+"/Activities", nil)["activities"].([]any) {
		if a := a.(map[string]any); a["friendly_name"] == "Wrap-up" {
			b.twilio("POST", "/v1/Workspaces/"+b.workspace()+"/Workers/"+workers[0].(map[string]any)["sid"].(string), url.Values{"ActivitySid": {a["sid"].(string)}})
		}
	}
	without := strings.Replace(strings.Replace(callCentre, "activities: [{name: Wrap-up, available: false}]\n", "", 1), ", after_call: Wrap-up", "", 1)
	run := b.run(activities.TaskRouterApply, without)
	if run.Problem == nil || !strings.HasPrefix(*run.Problem, `activity "Wrap-up": delete the activity: Cannot delete activity`) {
		t.Errorf("the run ended with %v", run.Problem)
	}
}

func TestOthersThingsAreLeftAlone(t *testing.T) {
	b := newBoard(t)
	ws := b.twilio("POST", "/v1/Workspaces", url.Values{"FriendlyName": {"Support"}})["sid"].(string)
	b.twilio("POST", "/v1/Workspaces/"+ws+"/TaskQueues", url.Values{"FriendlyName": {"Everyone"}, "TargetWorkers": {"1==2"}})
	b.twilio("POST", "/v1/Workspaces/"+ws+"/Workers", url.Values{"FriendlyName": {"ren"}})
	run := b.mustRun(activities.TaskRouterApply, callCentre)
	if got := run.Changes[0]; got.Action != taskrouter.Update || got.Kind != taskrouter.Workspaces {
		t.Errorf("the workspace that was there is not used: %+v", got)
	}
	smaller := strings.Replace(callCentre, "operators:\n- {name: aoi, contact_uri: 'client:aoi', attributes: {skills: [sales]}, activity: Available}\n", "", 1)
	b.mustRun(activities.TaskRouterApply, smaller)
	if got := b.names(); got != strings.Replace(everything, "aoi", "ren", 1) {
		t.Errorf("without aoi there is %s", got)
	}
	destroyed := b.mustRun(activities.TaskRouterDestroy, "")
	if got := b.names(); got != "Available Everyone Offline Support Unavailable ren" {
		t.Errorf("after destroy there is %s", got)
	}
	if len(destroyed.Notes) != 0 { // the workspace is not ours either
		t.Errorf("notes are %v", destroyed.Notes)
	}
}

func TestAWorkspaceThatOthersUseStays(t *testing.T) {
	b := newBoard(t)
	b.mustRun(activities.TaskRouterApply, callCentre)
	b.twilio("POST", "/v1/Workspaces/"+b.workspace()+"/Workers", url.Values{"FriendlyName": {"ren"}})
	run := b.mustRun(activities.TaskRouterDestroy, "")
	if got := b.names(); got != "Available Offline Support Unavailable ren" || len(run.Notes) != 1 {
		t.Errorf("after destroy there is %s; notes are %v", got, run.Notes)
	}
}

func TestTheNumbersWebhooksComeBackUnlessSomebodyChangedThem(t *testing.T) {
	b := newBoard(t)
	path := "/2010-04-01/Accounts/" + testAccount + "/IncomingPhoneNumbers/" + b.number()["sid"].(string) + ".json"
	b.twilio("POST", path, url.Values{"VoiceUrl": {"https://old.example.com/voice"}, "StatusCallback": {"https://old.example.com/status"}})
	b.mustRun(activities.TaskRouterApply, callCentre)
	b.mustRun(activities.TaskRouterApply, strings.Replace(callCentre, "answered_by: studio, ", "", 1)) // changed twice, and restored to the first
	b.twilio("POST", path, url.Values{"StatusCallback": {"https://new.example.com/status"}})
	run := b.mustRun(activities.TaskRouterDestroy, "")
	if got := b.number(); got["voice_url"] != "https://old.example.com/voice" || got["status_callback"] != "https://new.example.com/status" {
		t.Errorf("the number is %v", got)
	}
	if run.Changes[0].Action != taskrouter.Restore {
		t.Errorf("done was %v", run.Changes)
	}
}

func TestSwitchingFromStudioToTheWebhookAndBack(t *testing.T) {
	b := newBoard(t)
	b.mustRun(activities.TaskRouterApply, callCentre)
	b.mustRun(activities.TaskRouterApply, strings.Replace(callCentre, "studio", "webhook", 1))
	if got := b.number()["voice_url"]; got != "https://t.example.com/voice" {
		t.Errorf("the number's webhook is %v", got)
	}
	if flows := b.twilio("GET", "/v2/Flows", nil)["flows"].([]any); len(flows) != 1 { // that of the number's fallback
		t.Errorf("there still is %v", flows)
	}
	b.mustRun(activities.TaskRouterApply, callCentre)
	if got := b.names(); got != everything {
		t.Errorf("there is %s", got)
	}
}

func TestTwoOfAnotherNameAreAnErrorAndNotAGuess(t *testing.T) {
	b := newBoard(t)
	for range 2 {
		b.twilio("POST", "/v1/Workspaces", url.Values{"FriendlyName": {"Support"}})
	}
	run := b.run(activities.TaskRouterApply, callCentre)
	if run.Problem == nil || !strings.Contains(*run.Problem, "there are 2 of the workspace Support at Twilio") || b.writes.Load() != 0 {
		t.Errorf("the run ended with %v after %d writes", run.Problem, b.writes.Load())
	}
}

func TestWhatTwilioRefusesNamesTheLine(t *testing.T) {
	b := newBoard(t)
	ws := b.twilio("POST", "/v1/Workspaces", url.Values{"FriendlyName": {"Support"}})["sid"].(string)
	b.meanwhile = func() { // somebody makes an operator by hand, in other letters, behind the back of the plan
		b.twilio("POST", "/v1/Workspaces/"+ws+"/Workers", url.Values{"FriendlyName": {"AOI"}})
	}
	run := b.run(activities.TaskRouterApply, callCentre)
	if run.Problem == nil || !strings.HasPrefix(*run.Problem, `taskrouter.yaml:7: worker "aoi": create the worker: A worker with FriendlyName`) {
		t.Errorf("the run ended with %v", *run.Problem)
	}
	if len(run.Changes) != 4 {
		t.Errorf("done was %v", run.Changes)
	}
	b.mustRun(activities.TaskRouterApply, strings.Replace(callCentre, "name: aoi", "name: AOI", 1))
	if got, want := b.names(), strings.Replace("AOI "+everything, " aoi", "", 1); got != want {
		t.Errorf("once it is mended, there is %s, want %s", got, want)
	}
}

func TestWrongCredentialsEndARunAtOnce(t *testing.T) {
	b := newBoard(t)
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"code": 20003, "message": "Authenticate", "more_info": "https://www.twilio.com/docs/errors/20003", "status": 401}`))
	}))
	t.Cleanup(refuses.Close)
	twilio, err := carrier.New(carrier.Options{AccountSID: testAccount, AuthToken: "wrong", APIURL: refuses.URL})
	if err != nil {
		t.Fatal(err)
	}
	b.Carrier = twilio
	run := b.run(activities.TaskRouterPlan, callCentre)
	if run.Problem == nil || *run.Problem != "list each workspace: Authenticate (Twilio error 20003, HTTP 401, AllSenders)" {
		t.Errorf("the run ended with %v", run.Problem)
	}
}

func TestRunsThatCannotBegin(t *testing.T) {
	b := newBoard(t)
	b.Terms.TaskRouterURLs = taskrouter.URLs{}
	if run := b.run(activities.TaskRouterApply, callCentre); run.Problem == nil || !strings.Contains(*run.Problem, "TODOKU_PUBLIC_URL is empty") {
		t.Errorf("the run ended with %v", run.Problem)
	}
	if run := b.run(activities.TaskRouterPlan, "workspace: 1\n"); run.Problem == nil || !strings.Contains(*run.Problem, "taskrouter.yaml:1: the file needs queues") {
		t.Errorf("the run ended with %v", run.Problem)
	}
	more, err := b.env.ExecuteActivity(b.CarryOutTaskRouter)
	var any bool
	if err = errors.Join(err, more.Get(&any)); err != nil || any {
		t.Errorf("with nothing to do it reports %t, error %v", any, err)
	}
}

func TestNothingOfTheFileReachesTemporal(t *testing.T) {
	file := strings.Replace(callCentre, "client:aoi", "+15550100101", 1)
	for cut := range int64(callCentreWrites) {
		b := newBoard(t)
		b.mustRun(activities.TaskRouterApply, strings.Split(file, "operators:")[0]+"routing: {default: {queue: Everyone}}\n")
		b.behave(`{"fault": {"kind": "http_500"}}`)
		b.cutAt.Store(b.writes.Load() + cut + 1)
		b.request(activities.TaskRouterApply, file)
		if err := b.carryOut(); err != nil && strings.ContainsAny(err.Error(), `"+{`) {
			t.Errorf("the error is %v", err)
		}
	}
}
