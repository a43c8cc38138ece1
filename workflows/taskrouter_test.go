package workflows_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/workflows"
)

func newTaskRouter(t *testing.T) *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivity(&activities.Activities{})
	t.Cleanup(func() { env.AssertExpectations(t) })
	return env
}

func TestRunsOfTaskRouterAreCarriedOutUntilNoneWaits(t *testing.T) {
	env := newTaskRouter(t)
	env.OnActivity(a.CarryOutTaskRouter, mock.Anything).Times(3).Return(true, nil)
	env.OnActivity(a.CarryOutTaskRouter, mock.Anything).Once().Return(false, nil)
	env.ExecuteWorkflow(workflows.TaskRouter)
	if err := env.GetWorkflowError(); err != nil {
		t.Error(err)
	}
}

func TestARunThatFailsForNowIsTriedAgain(t *testing.T) {
	env := newTaskRouter(t)
	env.OnActivity(a.CarryOutTaskRouter, mock.Anything).Times(8).Return(false, errors.New("the database is away"))
	env.OnActivity(a.CarryOutTaskRouter, mock.Anything).Once().Return(false, nil)
	env.ExecuteWorkflow(workflows.TaskRouter)
	if err := env.GetWorkflowError(); err != nil {
		t.Error(err)
	}
}

func TestManyRunsGoOnInANewHistory(t *testing.T) {
	env := newTaskRouter(t)
	env.OnActivity(a.CarryOutTaskRouter, mock.Anything).Return(true, nil)
	env.ExecuteWorkflow(workflows.TaskRouter)
	if err := env.GetWorkflowError(); !workflow.IsContinueAsNewError(err) {
		t.Errorf("it ended with %v", err)
	}
}

var taskRouterPaths = []path{
	{name: "taskrouter", workflow: workflows.TaskRouter, answers: answers{{"CarryOutTaskRouter", activities.TaskRouterQueue}: {true, false}}},
}
