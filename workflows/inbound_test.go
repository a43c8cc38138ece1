package workflows_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/todoku/todoku/activities"
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

var followInbound = step{"FollowInbound", activities.InboundQueue}

// news is a signal about a call.
func news(m workflows.InboundMoment) signal { return signal{workflows.InboundSignal, m} }

var inboundPaths = []path{
	{name: "inbound-finished", workflow: workflows.InboundCall, input: inboundInput, signals: []signal{
		news(moment(notify.InboundWaiting)),
		news(workflows.InboundMoment{State: notify.InboundReserved, Operator: operator}),
		news(workflows.InboundMoment{State: notify.InboundAnswered, Operator: operator}),
		news(workflows.InboundMoment{State: notify.InboundFinished, Operator: operator}),
	}, answers: answers{followInbound: {
		activities.InboundNext{State: notify.InboundFinished, Operator: operator, In: 500 * time.Millisecond},
		activities.InboundNext{State: notify.InboundFinished, Operator: operator, FollowUp: notify.FollowUpNone, Done: true},
	}}},
	{name: "inbound-abandoned-and-sent-an-sms", workflow: workflows.InboundCall, input: inboundInput, signals: []signal{
		news(moment(notify.InboundAbandoned)),
	}, answers: answers{followInbound: {
		errors.New("no database"),
		activities.InboundNext{State: notify.InboundAbandoned, FollowUp: notify.FollowUpSMS, Done: true},
	}}},
	{name: "inbound-late-event", workflow: workflows.InboundCall, input: inboundInput, signals: []signal{
		news(moment(notify.InboundTurnedAway)), news(moment(notify.InboundCallback)),
	}, answers: answers{followInbound: {
		activities.InboundNext{State: notify.InboundTurnedAway, In: time.Minute},
		activities.InboundNext{State: notify.InboundCallback, FollowUp: notify.FollowUpTask, Done: true},
	}}},
	{name: "inbound-not-in-the-ledger", workflow: workflows.InboundCall, input: inboundInput, fails: true, signals: []signal{
		news(moment(notify.InboundAbandoned)),
	}, answers: answers{followInbound: {
		temporal.NewNonRetryableApplicationError("the ledger has no such call", "NotFound", nil),
	}}},
}
