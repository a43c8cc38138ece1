package workflows_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/devstack/devstacktest"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/workflows"
)

const operator = "WK00000000000000000000000000000001"

var inboundInput = workflows.InboundInput{
	ID: uuid.MustParse("01890000-0000-5000-8000-000000000003"), Now: workflows.InboundMoment{State: notify.InboundReceived}, CheckAfter: 5 * time.Minute,
}

func moment(state notify.InboundState) workflows.InboundMoment {
	return workflows.InboundMoment{State: state}
}

// followCall makes a test environment in which FollowInbound gives these answers.
func followCall(t *testing.T, answers ...activities.InboundNext) *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivity(&activities.Activities{})
	for _, answer := range answers {
		env.OnActivity(a.FollowInbound, mock.Anything, inboundInput.ID).Return(answer, nil).Once()
	}
	t.Cleanup(func() { env.AssertExpectations(t) })
	return env
}

func runCall(t *testing.T, env *testsuite.TestWorkflowEnvironment, in workflows.InboundInput, took time.Duration) workflows.InboundOutcome {
	t.Helper()
	began := env.Now()
	env.ExecuteWorkflow(workflows.InboundCall, in)
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if got := env.Now().Sub(began).Round(time.Second); got != took {
		t.Errorf("it took %v, want %v", got, took)
	}
	var outcome workflows.InboundOutcome
	if err := env.GetWorkflowResult(&outcome); err != nil {
		t.Fatal(err)
	}
	return outcome
}

func tell(env *testsuite.TestWorkflowEnvironment, after time.Duration, m workflows.InboundMoment) {
	env.RegisterDelayedCallback(func() { env.SignalWorkflow(workflows.InboundSignal, m) }, after)
}

func TestACallIsFollowedUntilItIsOver(t *testing.T) {
	env := followCall(t,
		activities.InboundNext{State: notify.InboundFinished, Operator: operator, In: 5 * time.Second},
		activities.InboundNext{State: notify.InboundFinished, Operator: operator, FollowUp: notify.FollowUpNone, Done: true})
	tell(env, 5*time.Second, moment(notify.InboundWaiting))
	tell(env, 10*time.Second, workflows.InboundMoment{State: notify.InboundAnswered, Operator: operator})
	tell(env, 60*time.Second, workflows.InboundMoment{State: notify.InboundFinished, Operator: operator})
	if got := runCall(t, env, inboundInput, 65*time.Second); got != (workflows.InboundOutcome{State: notify.InboundFinished, Operator: operator, FollowUp: notify.FollowUpNone}) {
		t.Errorf("it ends with %+v", got)
	}
}

func TestACallThatWasOverBeforeItsWorkflowBeganIsFollowedUpAtOnce(t *testing.T) {
	env := followCall(t, activities.InboundNext{State: notify.InboundAbandoned, FollowUp: notify.FollowUpSMS, Done: true})
	in := inboundInput
	in.Now = moment(notify.InboundAbandoned)
	if got := runCall(t, env, in, 0); got.FollowUp != notify.FollowUpSMS {
		t.Errorf("it ends with %+v", got)
	}
}

func TestALateEventChangesTheEnd(t *testing.T) {
	env := followCall(t,
		activities.InboundNext{State: notify.InboundTurnedAway, In: time.Minute},
		activities.InboundNext{State: notify.InboundCallback, In: 5 * time.Second},
		activities.InboundNext{State: notify.InboundCallback, FollowUp: notify.FollowUpTask, Done: true})
	tell(env, time.Second, moment(notify.InboundTurnedAway))
	tell(env, 10*time.Second, moment(notify.InboundCallback))
	if got := runCall(t, env, inboundInput, 15*time.Second); got.State != notify.InboundCallback || got.FollowUp != notify.FollowUpTask {
		t.Errorf("it ends with %+v", got)
	}
}

func TestWhatWasOvertakenDoesNotReopenACall(t *testing.T) {
	env := followCall(t, activities.InboundNext{State: notify.InboundAbandoned, Done: true})
	env.RegisterDelayedCallback(func() {
		env.SignalWorkflow(workflows.InboundSignal, moment(notify.InboundAbandoned))
		env.SignalWorkflow(workflows.InboundSignal, moment(notify.InboundWaiting))
	}, time.Second)
	runCall(t, env, inboundInput, time.Second)
}

func TestACallOfWhichNothingIsHeardIsLookedAt(t *testing.T) {
	env := followCall(t,
		activities.InboundNext{State: notify.InboundAnswered, In: 10 * time.Minute},
		activities.InboundNext{State: notify.InboundFinished, Done: true})
	runCall(t, env, inboundInput, 15*time.Minute)
}

// inboundPath is one way through the workflow of a call.
type inboundPath struct {
	name    string
	answers []any                     // of FollowInbound: an activities.InboundNext or an error
	news    []workflows.InboundMoment // one a second
}

var inboundPaths = []inboundPath{
	{name: "inbound-finished", news: []workflows.InboundMoment{
		moment(notify.InboundWaiting), {State: notify.InboundReserved, Operator: operator}, {State: notify.InboundAnswered, Operator: operator},
		{State: notify.InboundFinished, Operator: operator},
	}, answers: []any{
		activities.InboundNext{State: notify.InboundFinished, Operator: operator, In: 500 * time.Millisecond},
		activities.InboundNext{State: notify.InboundFinished, Operator: operator, FollowUp: notify.FollowUpNone, Done: true},
	}},
	{name: "inbound-abandoned-and-sent-an-sms", news: []workflows.InboundMoment{moment(notify.InboundAbandoned)}, answers: []any{
		errors.New("no database"),
		activities.InboundNext{State: notify.InboundAbandoned, FollowUp: notify.FollowUpSMS, Done: true},
	}},
	{name: "inbound-late-event", news: []workflows.InboundMoment{moment(notify.InboundTurnedAway), moment(notify.InboundCallback)}, answers: []any{
		activities.InboundNext{State: notify.InboundTurnedAway, In: time.Minute},
		activities.InboundNext{State: notify.InboundCallback, FollowUp: notify.FollowUpTask, Done: true},
	}},
	{name: "inbound-not-in-the-ledger", news: []workflows.InboundMoment{moment(notify.InboundAbandoned)}, answers: []any{
		temporal.NewNonRetryableApplicationError("the ledger has no such call", "NotFound", nil),
	}},
}

func TestRecordedHistoriesOfCallsReplay(t *testing.T) {
	if *record {
		recordCalls(t)
	}
	for _, p := range inboundPaths {
		t.Run(p.name, func(t *testing.T) {
			if err := replayer().ReplayWorkflowHistoryFromJSONFile(nil, historyFile(p.name)); err != nil {
				t.Error(err)
			}
		})
	}
}

func recordCalls(t *testing.T) {
	c, err := client.Dial(client.Options{HostPort: devstacktest.Temporal(t), Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var mu sync.Mutex
	var answers []any
	follow := func(context.Context, uuid.UUID) (activities.InboundNext, error) {
		mu.Lock()
		defer mu.Unlock()
		answer := answers[0]
		answers = answers[1:]
		if err, ok := answer.(error); ok {
			return activities.InboundNext{}, err
		}
		return answer.(activities.InboundNext), nil
	}
	for _, queue := range []string{workflows.TaskQueue, activities.InboundQueue} {
		w := worker.New(c, queue, worker.Options{})
		w.RegisterWorkflow(workflows.InboundCall)
		w.RegisterActivityWithOptions(follow, activity.RegisterOptions{Name: "FollowInbound"})
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
	}
	for _, p := range inboundPaths {
		mu.Lock()
		answers = p.answers
		mu.Unlock()
		id := "record/" + p.name
		run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: workflows.TaskQueue}, workflows.InboundCall, inboundInput)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range p.news {
			time.Sleep(time.Second)
			if err := c.SignalWorkflow(t.Context(), id, "", workflows.InboundSignal, m); err != nil {
				t.Fatal(err)
			}
		}
		_ = run.Get(t.Context(), nil) // one path ends with an error
		writeHistory(t, c, id, p.name)
	}
}
