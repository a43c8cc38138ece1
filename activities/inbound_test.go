package activities_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// inboundCall records a call that ended a while ago by these words.
func (b *bench) inboundCall(from string, ended time.Duration, words ...notify.InboundWord) uuid.UUID {
	b.t.Helper()
	sid := "CA" + strings.ReplaceAll(uuid.NewString(), "-", "")
	id := notify.InboundID(sid)
	for _, word := range words {
		b.tellOfCall(id, sid, from, ended, word)
	}
	return id
}

func (b *bench) tellOfCall(id uuid.UUID, sid, from string, ago time.Duration, word notify.InboundWord) {
	b.t.Helper()
	if _, err := b.Store.RecordInbound(b.t.Context(), notify.InboundEvent{
		CallID: id, CallSID: sid, Key: string(word), Kind: string(word), Word: word, At: time.Now().Add(-ago), Source: notify.FromWebhook,
		From: from, To: "+15005550006",
	}); err != nil {
		b.t.Fatal(err)
	}
}

// sorry is a policy that comes back to everybody in its own way.
var sorry = notify.InboundPolicy{WorkspaceSID: "WS1", WorkflowSID: "WW1", FollowUps: notify.FollowUps{
	Abandoned: notify.FollowUp{Action: notify.FollowUpSMS, Body: "お電話に出られず申し訳ございません。"},
	TimedOut:  notify.FollowUp{Action: notify.FollowUpCall, Body: "お電話に出られず申し訳ございません。"},
	Closed:    notify.FollowUp{Action: notify.FollowUpNone},
}}

// byOperator is a policy by which an operator comes back to everybody.
var byOperator = notify.InboundPolicy{WorkspaceSID: "WS1", WorkflowSID: "WW1", FollowUps: notify.FollowUps{
	Abandoned: notify.FollowUp{Action: notify.FollowUpTask},
}}

func newInboundBench(t *testing.T, policy notify.InboundPolicy) *bench {
	t.Helper()
	b := newBench(t)
	b.Terms.PhoneHashKey = []byte("k")
	b.Terms.Inbound = activities.InboundTerms{From: func(notify.Channel) string { return "+15005550006" }, Countries: []string{"JP"}}
	if err := b.Store.SaveInboundPolicy(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) follow(id uuid.UUID) activities.InboundNext {
	b.t.Helper()
	next, err := b.FollowInbound(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	return next
}

func TestWhatIsDoneAboutACaller(t *testing.T) {
	const mobile, landline = "+819012345678", "+81312345678"
	for name, test := range map[string]struct {
		policy notify.InboundPolicy
		from   string
		words  []notify.InboundWord
		want   notify.FollowUpAction
		reason string
	}{
		"hung up":                                          {sorry, mobile, []notify.InboundWord{notify.WordWaiting, notify.WordHungUp}, notify.FollowUpSMS, ""},
		"hung up, from a landline":                         {sorry, landline, []notify.InboundWord{notify.WordWaiting, notify.WordHungUp}, notify.FollowUpCall, notify.CodeLandlineWithoutSMS},
		"hung up, without a number":                        {sorry, "anonymous", []notify.InboundWord{notify.WordHungUp}, notify.FollowUpNone, "the caller showed no number that can be called"},
		"hung up, from another country":                    {sorry, "+12025550143", []notify.InboundWord{notify.WordHungUp}, notify.FollowUpNone, notify.CodeCountryNotAllowed},
		"hung up, from a premium-rate number":              {sorry, "+81990123456", []notify.InboundWord{notify.WordHungUp}, notify.FollowUpNone, notify.CodeNumberKindNotAllowed},
		"wants an operator, from a premium-rate number":    {byOperator, "+81990123456", []notify.InboundWord{notify.WordHungUp}, notify.FollowUpNone, notify.CodeNumberKindNotAllowed},
		"wants an operator, from another country":          {byOperator, "+12025550143", []notify.InboundWord{notify.WordHungUp}, notify.FollowUpNone, notify.CodeCountryNotAllowed},
		"wants an operator, with digits that spell a word": {byOperator, "+86282452253", []notify.InboundWord{notify.WordHungUp}, notify.FollowUpNone, "the caller showed no number that can be called"},
		"nobody answered":                                  {sorry, mobile, []notify.InboundWord{notify.WordWaiting, notify.WordTimedOut}, notify.FollowUpCall, ""},
		"spoke with somebody":                              {sorry, mobile, []notify.InboundWord{notify.WordAnswered, notify.WordHungUp}, notify.FollowUpNone, ""},
		"nothing is wanted":                                {sorry, mobile, []notify.InboundWord{notify.WordTurnedAway}, notify.FollowUpNone, ""},
		"nothing is set up":                                {notify.InboundPolicy{}, mobile, []notify.InboundWord{notify.WordHungUp}, notify.FollowUpNone, "nothing is set up that says what is done about callers"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newInboundBench(t, test.policy)
			id := b.inboundCall(test.from, 2*time.Minute, test.words...)
			for range 2 {
				if next := b.follow(id); !next.Done || next.FollowUp != test.want {
					t.Errorf("next is %+v, want %s", next, test.want)
				}
			}
			c, err := b.Store.InboundCall(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if c.FollowUpReason == nil && test.reason != "" || c.FollowUpReason != nil && *c.FollowUpReason != test.reason {
				t.Errorf("because %v, want %q", c.FollowUpReason, test.reason)
			}
			sent, _, err := b.Store.Notifications(t.Context(), store.Filter{}, nil, 10)
			if err != nil {
				t.Fatal(err)
			}
			if test.want == notify.FollowUpNone {
				if len(sent) != 0 {
					t.Errorf("%d notifications", len(sent))
				}
				return
			}
			if len(sent) != 1 || sent[0].ID != *c.NotificationID || sent[0].To != test.from || *sent[0].Reference != "inbound/"+id.String() {
				t.Errorf("%+v", sent)
			}
		})
	}
}

func TestACallThatHasJustEndedWaitsForLateEvents(t *testing.T) {
	b := newInboundBench(t, sorry)
	id := b.inboundCall("+819012345678", 0, notify.WordHungUp)
	if next := b.follow(id); next.Done || next.In <= 0 || next.In > 5*time.Second {
		t.Errorf("next is %+v", next)
	}
	id = b.inboundCall("+819012345678", 10*time.Second, notify.WordTurnedAway)
	if next := b.follow(id); next.Done || next.In < 40*time.Second || next.In > time.Minute {
		t.Errorf("next is %+v", next)
	}
}

func TestAFollowUpDoesNotWaitForAnotherClock(t *testing.T) {
	b := newInboundBench(t, sorry)
	id := b.inboundCall("+819012345678", -time.Hour, notify.WordHungUp)
	if next := b.follow(id); next.Done || next.In > 5*time.Second {
		t.Errorf("next is %+v", next)
	}
}

func TestATaskOfCallingBackWaitsUntilSomethingIsSetUp(t *testing.T) {
	policy := sorry
	policy.FollowUps.Requested.Action = notify.FollowUpTask
	b := newInboundBench(t, policy)
	id := b.inboundCall("+819012345678", time.Minute, notify.WordCallbackRequested)
	c, err := b.Store.InboundCall(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Store.DecideInboundFollowUp(t.Context(), id, c.Version, store.InboundFollowUp{Action: notify.FollowUpTask}); err != nil {
		t.Fatal(err)
	}
	if err := b.Store.ForgetInboundPolicy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.FollowInbound(t.Context(), id); err == nil || !strings.Contains(err.Error(), "todoku taskrouter apply") {
		t.Errorf("error %v", err)
	}
	policy = b.callCentre()
	if err := b.Store.SaveInboundPolicy(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	if next := b.follow(id); !next.Done || next.FollowUp != notify.FollowUpTask || len(b.tasks(policy.WorkspaceSID)) != 1 {
		t.Errorf("next is %+v", next)
	}
}

func TestTheCarrierIsAskedForACallOfWhichNothingIsHeard(t *testing.T) {
	b := newInboundBench(t, sorry)
	id := b.inboundCall("+819012345678", time.Hour, notify.WordWaiting)
	if next := b.follow(id); next.Done || next.State != notify.InboundWaiting || b.fetched.Load() != 0 {
		t.Errorf("next is %+v, after %d fetches", next, b.fetched.Load())
	}
	db, err := pgx.Connect(t.Context(), b.databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context())
	if _, err := db.Exec(t.Context(), `UPDATE inbound_calls SET updated_at = now() - interval '1 hour'`); err != nil {
		t.Fatal(err)
	}
	if next := b.follow(id); next.State != notify.InboundAbandoned || next.Done || b.fetched.Load() != 1 { // the simulator has no such call
		t.Errorf("next is %+v, after %d fetches", next, b.fetched.Load())
	}
}

func TestACallThatTheLedgerDoesNotHaveEndsItsWorkflow(t *testing.T) {
	b := newInboundBench(t, sorry)
	if _, err := b.FollowInbound(t.Context(), uuid.New()); err == nil || !strings.Contains(err.Error(), "no such call") {
		t.Errorf("error %v", err)
	}
}

// twilio posts a form to one of Twilio's paths, or reads it where there is none.
func (b *bench) twilio(path string, fields ...string) (body map[string]any) {
	b.t.Helper()
	method, form := http.MethodGet, url.Values{}
	for i := 0; i < len(fields); i += 2 {
		method = http.MethodPost
		form.Set(fields[i], fields[i+1])
	}
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.sim.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	request.SetBasicAuth("AC"+strings.Repeat("0", 32), "token")
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil || answer.StatusCode > 299 {
		b.t.Fatalf("%s %s: %d %v, error %v", method, path, answer.StatusCode, body, err)
	}
	return body
}

// callCentre makes a workspace without operators and a policy that gives every lost caller to one.
func (b *bench) callCentre() notify.InboundPolicy {
	b.t.Helper()
	workspace := b.twilio("/v1/Workspaces", "FriendlyName", "Support")["sid"].(string)
	queue := b.twilio("/v1/Workspaces/"+workspace+"/TaskQueues", "FriendlyName", "Everybody")["sid"].(string)
	workflow := b.twilio("/v1/Workspaces/"+workspace+"/Workflows", "FriendlyName", "Reception",
		"Configuration", `{"task_routing": {"default_filter": {"queue": "`+queue+`"}}}`)["sid"].(string)
	return notify.InboundPolicy{WorkspaceSID: workspace, WorkflowSID: workflow, TaskAttributes: map[string]any{"language": "ja"},
		FollowUps: notify.FollowUps{Abandoned: notify.FollowUp{Action: notify.FollowUpTask}}}
}

func (b *bench) tasks(workspace string) []map[string]any {
	var tasks []map[string]any
	for _, task := range b.twilio("/v1/Workspaces/" + workspace + "/Tasks")["tasks"].([]any) {
		tasks = append(tasks, task.(map[string]any))
	}
	return tasks
}

func TestAnOperatorIsGivenTheTaskOfCallingBackOnce(t *testing.T) {
	b := newInboundBench(t, notify.InboundPolicy{})
	policy := b.callCentre()
	if err := b.Store.SaveInboundPolicy(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	id := b.inboundCall("+819012345678", time.Minute, notify.WordWaiting, notify.WordHungUp)
	for range 2 {
		if next := b.follow(id); !next.Done || next.FollowUp != notify.FollowUpTask {
			t.Errorf("next is %+v", next)
		}
	}
	tasks := b.tasks(policy.WorkspaceSID)
	if len(tasks) != 1 {
		t.Fatalf("%d tasks", len(tasks))
	}
	c, err := b.Store.InboundCall(t.Context(), id)
	if err != nil || c.FollowUpTaskSID == nil || *c.FollowUpTaskSID != tasks[0]["sid"] {
		t.Errorf("%+v, error %v", c, err)
	}
	var attributes map[string]any
	if err := json.Unmarshal([]byte(tasks[0]["attributes"].(string)), &attributes); err != nil {
		t.Fatal(err)
	}
	if attributes["todoku_callback_for"] != id.String() || attributes["language"] != "ja" || attributes["type"] != "callback" || strings.Contains(tasks[0]["attributes"].(string), "8190") {
		t.Errorf("the task has %v", attributes)
	}
}

func TestATaskWhoseAnswerWasLostIsFound(t *testing.T) {
	b := newInboundBench(t, notify.InboundPolicy{})
	policy := b.callCentre()
	if err := b.Store.SaveInboundPolicy(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	id := b.inboundCall("+819012345678", time.Minute, notify.WordWaiting, notify.WordHungUp)
	b.behave(`{"fault": {"kind": "accept_then_drop", "count": 1}}`)
	if _, err := b.FollowInbound(t.Context(), id); err == nil {
		t.Fatal("the lost answer is no error")
	}
	if next := b.follow(id); !next.Done || next.FollowUp != notify.FollowUpTask {
		t.Errorf("next is %+v", next)
	}
	if tasks := b.tasks(policy.WorkspaceSID); len(tasks) != 1 {
		t.Errorf("%d tasks", len(tasks))
	}
}
