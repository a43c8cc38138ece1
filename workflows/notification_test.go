package workflows_test

import (
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/workflows"
)

var (
	a     *activities.Activities
	input = workflows.NotificationInput{ID: uuid.MustParse("01890000-0000-7000-8000-000000000001"), Channel: notify.SMS}

	done    = activities.Next{Action: activities.Done, Status: notify.Success}
	waiting = activities.Next{Action: activities.CheckStatus, In: 5 * time.Minute, Status: notify.Pending}
)

// carry runs the workflow in an environment that skips time.
type carry struct {
	*testsuite.TestWorkflowEnvironment
	t       *testing.T
	started time.Time
}

func newCarry(t *testing.T) *carry {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivity(&activities.Activities{})
	t.Cleanup(func() { env.AssertExpectations(t) })
	return &carry{TestWorkflowEnvironment: env, t: t, started: env.Now()}
}

func (c *carry) send(answers ...any)        { c.expect(a.Send, answers) }
func (c *carry) lookUp(answers ...any)      { c.expect(a.LookUp, answers) }
func (c *carry) checkStatus(answers ...any) { c.expect(a.CheckStatus, answers) }

func (c *carry) expect(activity any, answers []any) {
	ref := activities.Ref{ID: &input.ID, WorkflowID: "default-test-workflow-id"}
	for _, answer := range answers {
		call := c.OnActivity(activity, mock.Anything, ref).Once()
		if err, ok := answer.(error); ok {
			call.Return(activities.Next{}, err)
		} else {
			call.Return(answer, nil)
		}
	}
}

// run starts the workflow and returns its result and how long it took.
func (c *carry) run() (notify.Status, time.Duration) {
	c.t.Helper()
	c.ExecuteWorkflow(workflows.Notification, input)
	if err := c.GetWorkflowError(); err != nil {
		c.t.Fatal(err)
	}
	var status notify.Status
	if err := c.GetWorkflowResult(&status); err != nil {
		c.t.Fatal(err)
	}
	return status, c.Now().Sub(c.started)
}

func (c *carry) want(status notify.Status, took time.Duration) {
	c.t.Helper()
	if gotStatus, gotTook := c.run(); gotStatus != status || gotTook.Round(time.Second) != took {
		c.t.Errorf("ended %s after %v, want %s after %v", gotStatus, gotTook, status, took)
	}
}

func (c *carry) signal(after time.Duration, name string, arg any) {
	c.RegisterDelayedCallback(func() { c.SignalWorkflow(name, arg) }, after)
}

func TestTheWebhooksSignalEndsTheWait(t *testing.T) {
	c := newCarry(t)
	c.send(waiting)
	c.signal(30*time.Second, workflows.SettledSignal, notify.Success)
	c.want(notify.Success, 30*time.Second)
}

func TestASignalBeforeSendReturnsIsNotLost(t *testing.T) {
	c := newCarry(t)
	c.OnActivity(a.Send, mock.Anything, mock.Anything).Once().After(3*time.Second).Return(waiting, nil)
	c.signal(time.Second, workflows.SettledSignal, notify.Failed)
	c.want(notify.Failed, 3*time.Second)
}

func TestWithoutASignalTheCarrierIsAskedAfterFiveMinutes(t *testing.T) {
	c := newCarry(t)
	c.send(waiting)
	c.checkStatus(done)
	c.want(notify.Success, 5*time.Minute)
}

func TestTheCarrierIsAskedAgainUntilTheStatusIsFinal(t *testing.T) {
	c := newCarry(t)
	c.send(waiting)
	later := waiting
	later.In = time.Hour
	c.checkStatus(waiting, later, activities.Next{Action: activities.Done, Status: notify.Unknown})
	c.want(notify.Unknown, 70*time.Minute)
}

func TestAReceiptFasterThanTheAnswerEndsAtOnce(t *testing.T) {
	c := newCarry(t)
	c.send(done)
	c.want(notify.Success, 0)
}

func TestRetriesFollowTheLedgersPauses(t *testing.T) {
	c := newCarry(t)
	var answers []any
	for _, pause := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second} {
		answers = append(answers, temporal.NewApplicationErrorWithOptions("refused", "RetryLater",
			temporal.ApplicationErrorOptions{NextRetryDelay: pause}))
	}
	c.send(append(answers, done)...)
	c.want(notify.Success, 14*time.Second)
}

func TestAnAmbiguousSendIsLookedForBeforeItIsSentAgain(t *testing.T) {
	c := newCarry(t)
	lookUp := activities.Next{Action: activities.LookUp, In: 30 * time.Second, Status: notify.Sending}
	c.send(lookUp, done)
	c.lookUp(lookUp, activities.Next{Action: activities.Send, In: 2 * time.Second, Status: notify.Accepted})
	c.want(notify.Success, 62*time.Second)
}

func TestAReceiptResolvesAnAmbiguousSend(t *testing.T) {
	c := newCarry(t)
	c.send(activities.Next{Action: activities.LookUp, In: 30 * time.Second, Status: notify.Sending})
	c.signal(3*time.Second, workflows.SettledSignal, notify.Success)
	c.want(notify.Success, 3*time.Second)
}

func TestResumingASenderWakesItsNotifications(t *testing.T) {
	c := newCarry(t)
	c.send(activities.Next{Action: activities.Send, In: 5 * time.Minute, Status: notify.Held}, done)
	c.signal(10*time.Second, workflows.WakeSignal, nil)
	c.want(notify.Success, 10*time.Second)
}

func TestANotificationThatTheLedgerLacksFailsItsWorkflow(t *testing.T) {
	c := newCarry(t)
	c.send(temporal.NewNonRetryableApplicationError("the ledger has no such notification", "NotFound", nil))
	c.ExecuteWorkflow(workflows.Notification, input)
	if c.GetWorkflowError() == nil {
		t.Error("the workflow ended without an error")
	}
}

func TestEachChannelHasItsQueue(t *testing.T) {
	for channel, want := range map[notify.Channel]string{notify.SMS: "send-sms", notify.Call: "send-call"} {
		if got := activities.SendQueue(channel); got != want {
			t.Errorf("%s is sent on %s, want %s", channel, got, want)
		}
	}
}

func later(a activities.Action) activities.Next {
	return activities.Next{Action: a, In: 500 * time.Millisecond}
}

func TestALongShardGoesOnInANewHistory(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivity(&activities.Activities{})
	env.OnActivity(a.Send, mock.Anything, mock.Anything).Once().Return(later(activities.Send), nil)
	env.SetCurrentHistoryLength(2001)
	env.ExecuteWorkflow(workflows.Shard, adoptingShard)
	var next *workflow.ContinueAsNewError
	if err := env.GetWorkflowError(); !errors.As(err, &next) {
		t.Fatalf("it ends with %v", err)
	}
	var in workflows.ShardInput
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &in); err != nil || in != adoptingShard {
		t.Errorf("it goes on with %+v, error %v: want %+v", in, err, adoptingShard)
	}
}

func TestALongSingleGoesOnInANewHistory(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivity(&activities.Activities{})
	env.OnActivity(a.Send, mock.Anything, mock.Anything).Once().Return(later(activities.Send), nil)
	env.OnActivity(a.Send, mock.Anything, mock.Anything).Return(done, nil)
	env.SetCurrentHistoryLength(2001)
	env.ExecuteWorkflow(workflows.Notification, input)
	var next *workflow.ContinueAsNewError
	if err := env.GetWorkflowError(); !errors.As(err, &next) {
		t.Fatalf("it ends with %v: want it to go on in a new history", err)
	}
	var in workflows.NotificationInput
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &in); err != nil || in != input {
		t.Errorf("it goes on with %+v, error %v: want %+v", in, err, input)
	}
}

var (
	send        = step{"Send", activities.SendSMSQueue}
	lookUp      = step{"LookUp", activities.StatusCheckQueue}
	checkStatus = step{"CheckStatus", activities.StatusCheckQueue}

	shard         = workflows.ShardInput{Channel: notify.SMS}
	adoptingShard = workflows.ShardInput{Channel: notify.SMS, Adopt: 1}

	settled = []signal{{workflows.SettledSignal, notify.Success}}
)

var notificationPaths = []path{
	{name: "settled-by-webhook", workflow: workflows.Notification, input: input, answers: answers{send: {waiting}}, signals: settled},
	{name: "settled-before-the-answer", workflow: workflows.Notification, input: input, answers: answers{send: {done}}},
	{name: "settled-by-check", workflow: workflows.Notification, input: input, answers: answers{
		send: {later(activities.CheckStatus)}, checkStatus: {later(activities.CheckStatus), done}}},
	{name: "sent-after-retries", workflow: workflows.Notification, input: input, answers: answers{send: {
		temporal.NewApplicationErrorWithOptions("refused", "RetryLater", temporal.ApplicationErrorOptions{NextRetryDelay: 100 * time.Millisecond}), done}}},
	{name: "ambiguous-and-found", workflow: workflows.Notification, input: input, answers: answers{
		send: {later(activities.LookUp)}, lookUp: {later(activities.CheckStatus)}, checkStatus: {done}}},
	{name: "ambiguous-and-sent-again", workflow: workflows.Notification, input: input, answers: answers{
		send: {later(activities.LookUp), done}, lookUp: {later(activities.LookUp), later(activities.Send)}}},
	{name: "held-and-resumed", workflow: workflows.Notification, input: input, answers: answers{
		send: {activities.Next{Action: activities.Send, In: 5 * time.Minute}, done}}, signals: []signal{{workflows.WakeSignal, nil}}},
	{name: "refused", workflow: workflows.Notification, input: input, answers: answers{send: {activities.Next{Action: activities.Done, Status: notify.Failed}}}},
	{name: "not-in-the-ledger", workflow: workflows.Notification, input: input, fails: true, answers: answers{
		send: {temporal.NewNonRetryableApplicationError("the ledger has no such notification", "NotFound", nil)}}},
	{name: "still-waiting", workflow: workflows.Notification, input: input, open: true, answers: answers{send: {waiting}}},
	{name: "shard-settled-by-webhook", workflow: workflows.Shard, input: shard, answers: answers{send: {later(activities.Send), waiting}}, signals: settled},
	{name: "adopting-shard-settled-by-webhook", workflow: workflows.Shard, input: adoptingShard, answers: answers{
		send: {waiting}, checkStatus: {activities.Next{Action: activities.Done}}}, signals: settled},
	{name: "shard-settled-by-check", workflow: workflows.Shard, input: shard, answers: answers{
		send: {later(activities.LookUp)}, lookUp: {later(activities.CheckStatus)}, checkStatus: {activities.Next{Action: activities.Done}}}},
}

func TestAHappySingleHasAtMost16Events(t *testing.T) {
	content, err := os.ReadFile(historyFile("settled-by-webhook"))
	if err != nil {
		t.Fatal(err)
	}
	var h struct{ Events []json.RawMessage }
	if err := json.Unmarshal(content, &h); err != nil {
		t.Fatal(err)
	}
	if n := len(h.Events); n == 0 || n > 16 {
		t.Errorf("the history has %d events", n)
	}
}
