package workflows_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/testsuite"

	"github.com/todoku/todoku/activities"
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

// Both channels get the same answer: which of them asks first is chance.
var reconcilePaths = []path{
	{name: "reconcile", workflow: workflows.Reconcile, answers: answers{
		{"Reconcile", activities.StatusCheckQueue}: {activities.Reconciled{Settled: 1}, activities.Reconciled{Settled: 1}}}},
}
