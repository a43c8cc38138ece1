package workflows_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/devstack/devstacktest"
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

func TestRecordedTaskRouterReplays(t *testing.T) {
	if *record {
		recordTaskRouter(t)
	}
	if err := replayer().ReplayWorkflowHistoryFromJSONFile(nil, historyFile("taskrouter")); err != nil {
		t.Error(err)
	}
}

func recordTaskRouter(t *testing.T) {
	c, err := client.Dial(client.Options{HostPort: devstacktest.Temporal(t), Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	carry := worker.New(c, workflows.TaskQueue, worker.Options{LocalActivityWorkerOnly: true})
	carry.RegisterWorkflow(workflows.TaskRouter)
	act := worker.New(c, activities.TaskRouterQueue, worker.Options{DisableWorkflowWorker: true})
	left := 2
	act.RegisterActivityWithOptions(func(context.Context) (bool, error) {
		left--
		return left > 0, nil
	}, activity.RegisterOptions{Name: "CarryOutTaskRouter"})
	for _, w := range []worker.Worker{carry, act} {
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
	}
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "record/taskrouter", TaskQueue: workflows.TaskQueue}, workflows.TaskRouter)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Get(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	writeHistory(t, c, run.GetID(), "taskrouter")
}
