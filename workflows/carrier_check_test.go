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
	"github.com/todoku/todoku/workflows"
)

var checkInput = workflows.CarrierCheckInput{ID: uuid.MustParse("01890000-0000-7000-8000-000000000003")}

func newCarrierCheck(t *testing.T) *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivity(&activities.Activities{})
	t.Cleanup(func() { env.AssertExpectations(t) })
	return env
}

func TestACheckIsTriedWhileTheCarrierIsAway(t *testing.T) {
	env := newCarrierCheck(t)
	env.OnActivity(a.CompareBatch, mock.Anything, checkInput.ID).Times(5).Return(errors.New("the carrier is away"))
	env.OnActivity(a.CompareBatch, mock.Anything, checkInput.ID).Once().Return(nil)
	env.ExecuteWorkflow(workflows.CarrierCheck, checkInput)
	if err := env.GetWorkflowError(); err != nil {
		t.Error(err)
	}
}

func TestACheckThatCannotBeMadeIsGivenUp(t *testing.T) {
	for name, failure := range map[string]error{
		"the carrier stays away": errors.New("the carrier is away"),
		"it was replaced":        temporal.NewNonRetryableApplicationError("another one has taken its place", "NotFound", nil),
	} {
		t.Run(name, func(t *testing.T) {
			env := newCarrierCheck(t)
			env.OnActivity(a.CompareBatch, mock.Anything, checkInput.ID).Return(failure)
			env.OnActivity(a.GiveUpCarrierCheck, mock.Anything, checkInput.ID).Once().Return(nil)
			started := env.Now()
			env.ExecuteWorkflow(workflows.CarrierCheck, checkInput)
			if env.GetWorkflowError() == nil {
				t.Error("the run does not show the error")
			}
			if took := env.Now().Sub(started); took > workflows.CarrierCheckTimeout+time.Minute {
				t.Errorf("it gave up after %v", took)
			}
		})
	}
}

var (
	compareBatch       = step{"CompareBatch", activities.StatusCheckQueue}
	giveUpCarrierCheck = step{"GiveUpCarrierCheck", activities.StatusCheckQueue}

	carrierCheckPaths = []path{
		{name: "carrier-check", workflow: workflows.CarrierCheck, input: checkInput, answers: answers{compareBatch: {nil}}},
		{name: "carrier-check-given-up", workflow: workflows.CarrierCheck, input: checkInput, fails: true, answers: answers{
			compareBatch:       {temporal.NewNonRetryableApplicationError("another one has taken its place", "NotFound", nil)},
			giveUpCarrierCheck: {nil}}},
	}
)
