package workflows_test

import (
	"context"
	"errors"
	"log/slog"
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

func TestRecordedCarrierChecksReplay(t *testing.T) {
	names := map[string]error{"carrier-check": nil, "carrier-check-given-up": temporal.NewNonRetryableApplicationError("another one has taken its place", "NotFound", nil)}
	if *record {
		recordCarrierChecks(t, names)
	}
	for name := range names {
		if err := replayer().ReplayWorkflowHistoryFromJSONFile(nil, historyFile(name)); err != nil {
			t.Error(name, err)
		}
	}
}

func recordCarrierChecks(t *testing.T, answers map[string]error) {
	c, err := client.Dial(client.Options{HostPort: devstacktest.Temporal(t), Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, queue := range []string{workflows.TaskQueue, activities.StatusCheckQueue} {
		w := worker.New(c, queue, worker.Options{})
		w.RegisterWorkflow(workflows.CarrierCheck)
		w.RegisterActivityWithOptions(func(ctx context.Context, _ uuid.UUID) error {
			return answers[activity.GetInfo(ctx).WorkflowExecution.ID]
		}, activity.RegisterOptions{Name: "CompareBatch"})
		w.RegisterActivityWithOptions(func(context.Context, uuid.UUID) error { return nil }, activity.RegisterOptions{Name: "GiveUpCarrierCheck"})
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
	}
	for name := range answers {
		run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: name, TaskQueue: workflows.TaskQueue}, workflows.CarrierCheck, checkInput)
		if err != nil {
			t.Fatal(err)
		}
		_ = run.Get(t.Context(), nil) // one ends with an error
		writeHistory(t, c, name, name)
	}
}
