package workflows_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/workflows"
)

var batchInput = workflows.BatchInput{ID: uuid.MustParse("01890000-0000-7000-8000-000000000002"), Channel: notify.SMS}

func carriedOn(in time.Duration) activities.Carried {
	return activities.Carried{In: in, Details: "1 of 2"}
}

// carryBatches makes a test environment in which CarryBatch gives these answers.
func carryBatches(t *testing.T, answers ...activities.Carried) *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivity(&activities.Activities{})
	for _, answer := range answers {
		env.OnActivity(a.CarryBatch, mock.Anything, batchInput.ID, mock.Anything).Return(answer, nil).Once()
	}
	t.Cleanup(func() { env.AssertExpectations(t) })
	return env
}

func runBatch(t *testing.T, env *testsuite.TestWorkflowEnvironment, want time.Duration) {
	t.Helper()
	began := env.Now()
	env.ExecuteWorkflow(workflows.Batch, batchInput)
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if took := env.Now().Sub(began).Round(time.Second); took != want {
		t.Errorf("it took %v, want %v", took, want)
	}
}

func TestABatchIsCarriedTurnByTurn(t *testing.T) {
	env := carryBatches(t, carriedOn(0), carriedOn(0), carriedOn(time.Minute), activities.Carried{Done: true})
	runBatch(t, env, time.Minute)
}

func TestABatchShowsHowFarItIsSoonAfterItBeganOrWasWoken(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivity(&activities.Activities{})
	var turns []time.Duration
	env.OnActivity(a.CarryBatch, mock.Anything, batchInput.ID, mock.Anything).Return(
		func(_ context.Context, _ uuid.UUID, turn time.Duration) (activities.Carried, error) {
			turns = append(turns, turn)
			switch len(turns) {
			case 6:
				return carriedOn(time.Minute), nil
			case 8:
				return activities.Carried{Done: true}, nil
			}
			return carriedOn(0), nil
		})
	runBatch(t, env, time.Minute)
	if want := []time.Duration{2, 4, 8, 16, 30, 30, 2, 4}; !slices.EqualFunc(turns, want, func(turn, s time.Duration) bool { return turn == s*time.Second }) {
		t.Errorf("the turns are %v", turns)
	}
}

func TestAResumptionWakesABatch(t *testing.T) {
	env := carryBatches(t, carriedOn(time.Hour), activities.Carried{Done: true})
	env.RegisterDelayedCallback(func() { env.SignalWorkflow(workflows.WakeSignal, nil) }, 10*time.Second)
	runBatch(t, env, 10*time.Second)
}

func TestALongBatchGoesOnInANewHistory(t *testing.T) {
	env := carryBatches(t, carriedOn(0))
	env.SetCurrentHistoryLength(2001)
	env.ExecuteWorkflow(workflows.Batch, batchInput)
	if err := env.GetWorkflowError(); !errors.As(err, new(*workflow.ContinueAsNewError)) {
		t.Errorf("it ends with %v", err)
	}
}

var (
	carryBatch = step{"CarryBatch", activities.SendSMSQueue}

	batchPaths = []path{
		{name: "batch-carried", workflow: workflows.Batch, input: batchInput, answers: answers{
			carryBatch: {carriedOn(0), carriedOn(500 * time.Millisecond), activities.Carried{Done: true, Details: "2 of 2"}}}},
		{name: "batch-paused-and-woken", workflow: workflows.Batch, input: batchInput, answers: answers{
			carryBatch: {carriedOn(5 * time.Minute), activities.Carried{Done: true}}}, signals: []signal{{workflows.WakeSignal, nil}}},
		{name: "batch-carried-after-an-outage", workflow: workflows.Batch, input: batchInput, answers: answers{
			carryBatch: {errors.New("no database"), activities.Carried{Done: true}}}},
		{name: "batch-not-in-the-ledger", workflow: workflows.Batch, input: batchInput, fails: true, answers: answers{
			carryBatch: {temporal.NewNonRetryableApplicationError("the ledger has no such batch", "NotFound", nil)}}},
	}
)
