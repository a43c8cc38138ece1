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
	"go.temporal.io/sdk/workflow"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/devstack/devstacktest"
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
		env.OnActivity(a.CarryBatch, mock.Anything, batchInput.ID).Return(answer, nil).Once()
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

// batchPath is one way through the batch's workflow.
type batchPath struct {
	name    string
	answers []any // of CarryBatch: an activities.Carried or an error
	signal  bool  // it is woken once, a second after its start
}

var batchPaths = []batchPath{
	{name: "batch-carried", answers: []any{carriedOn(0), carriedOn(500 * time.Millisecond), activities.Carried{Done: true, Details: "2 of 2"}}},
	{name: "batch-paused-and-woken", answers: []any{carriedOn(5 * time.Minute), activities.Carried{Done: true}}, signal: true},
	{name: "batch-carried-after-an-outage", answers: []any{errors.New("no database"), activities.Carried{Done: true}}},
	{name: "batch-not-in-the-ledger", answers: []any{temporal.NewNonRetryableApplicationError("the ledger has no such batch", "NotFound", nil)}},
}

func TestRecordedHistoriesOfBatchesReplay(t *testing.T) {
	if *record {
		recordBatches(t)
	}
	for _, p := range batchPaths {
		t.Run(p.name, func(t *testing.T) {
			if err := replayer().ReplayWorkflowHistoryFromJSONFile(nil, historyFile(p.name)); err != nil {
				t.Error(err)
			}
		})
	}
}

func recordBatches(t *testing.T) {
	c, err := client.Dial(client.Options{HostPort: devstacktest.Temporal(t), Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var mu sync.Mutex
	var answers []any
	carry := func(context.Context, uuid.UUID) (activities.Carried, error) {
		mu.Lock()
		defer mu.Unlock()
		answer := answers[0]
		answers = answers[1:]
		if err, ok := answer.(error); ok {
			return activities.Carried{}, err
		}
		return answer.(activities.Carried), nil
	}
	for _, queue := range []string{workflows.TaskQueue, activities.SendSMSQueue} {
		w := worker.New(c, queue, worker.Options{})
		w.RegisterWorkflow(workflows.Batch)
		w.RegisterActivityWithOptions(carry, activity.RegisterOptions{Name: "CarryBatch"})
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
	}
	for _, p := range batchPaths {
		mu.Lock()
		answers = p.answers
		mu.Unlock()
		id := "record/" + p.name
		run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: workflows.TaskQueue}, workflows.Batch, batchInput)
		if err != nil {
			t.Fatal(err)
		}
		if p.signal {
			time.Sleep(time.Second)
			if err := c.SignalWorkflow(t.Context(), id, "", workflows.WakeSignal, nil); err != nil {
				t.Fatal(err)
			}
		}
		_ = run.Get(t.Context(), nil) // one path ends with an error
		writeHistory(t, c, id, p.name)
	}
}
