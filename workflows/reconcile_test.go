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

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/devstack/devstacktest"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/workflows"
)

func newReconcile(t *testing.T) *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivity(&activities.Activities{})
	t.Cleanup(func() { env.AssertExpectations(t) })
	return env
}

func TestReconcileDoesBothChannels(t *testing.T) {
	env := newReconcile(t)
	env.OnActivity(a.Reconcile, mock.Anything, notify.SMS).Once().Return(activities.Reconciled{Settled: 3}, nil)
	env.OnActivity(a.Reconcile, mock.Anything, notify.Call).Once().Return(activities.Reconciled{Found: 1}, nil)
	env.ExecuteWorkflow(workflows.Reconcile)
	var done workflows.Reconciled
	if err := env.GetWorkflowResult(&done); err != nil {
		t.Fatal(err)
	}
	want := workflows.Reconciled{SMS: activities.Reconciled{Settled: 3}, Call: activities.Reconciled{Found: 1}}
	if done != want {
		t.Errorf("it reports %+v, want %+v", done, want)
	}
}

func TestAChannelThatFailsHoldsUpNothingOfTheOther(t *testing.T) {
	env := newReconcile(t)
	env.OnActivity(a.Reconcile, mock.Anything, notify.SMS).Times(3).Return(activities.Reconciled{}, errors.New("the carrier is away"))
	env.OnActivity(a.Reconcile, mock.Anything, notify.Call).Once().Return(activities.Reconciled{Settled: 2}, nil)
	started := env.Now()
	env.ExecuteWorkflow(workflows.Reconcile)
	if env.GetWorkflowError() == nil {
		t.Error("the run does not show the error")
	}
	if took := env.Now().Sub(started); took >= activities.ReconcileInterval {
		t.Errorf("it gave up after %v: the next run was skipped", took)
	}
}

func TestRecordedReconcileReplays(t *testing.T) {
	if *record {
		recordReconcile(t)
	}
	if err := replayer().ReplayWorkflowHistoryFromJSONFile(nil, historyFile("reconcile")); err != nil {
		t.Error(err)
	}
}

func recordReconcile(t *testing.T) {
	c, err := client.Dial(client.Options{HostPort: devstacktest.Temporal(t), Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, queue := range []string{workflows.TaskQueue, activities.StatusCheckQueue} {
		w := worker.New(c, queue, worker.Options{})
		w.RegisterWorkflow(workflows.Reconcile)
		w.RegisterActivityWithOptions(func(context.Context, notify.Channel) (activities.Reconciled, error) {
			return activities.Reconciled{Settled: 1}, nil
		}, activity.RegisterOptions{Name: "Reconcile"})
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
	}
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "record/reconcile", TaskQueue: workflows.TaskQueue}, workflows.Reconcile)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Get(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	writeHistory(t, c, run.GetID(), "reconcile")
}
