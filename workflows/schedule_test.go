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
	"go.temporal.io/sdk/workflow"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/devstack/devstacktest"
	"github.com/todoku/todoku/workflows"
)

var (
	dueAt          = time.Date(2027, 3, 30, 1, 30, 0, 0, time.UTC)
	scheduledBatch = uuid.MustParse("01890000-0000-7000-8000-000000000003")
)

// newScheduled makes a test environment of a workflow that a Schedule started for a time.
func newScheduled(t *testing.T) *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivity(&activities.Activities{})
	if err := env.SetTypedSearchAttributesOnStart(temporal.NewSearchAttributes(temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime").ValueSet(dueAt))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { env.AssertExpectations(t) })
	return env
}

func TestAScheduleRunsForTheTimeThatItWasDue(t *testing.T) {
	env := newScheduled(t)
	env.SetStartTime(dueAt.Add(7 * time.Minute)) // Temporal makes up for it
	env.OnActivity(a.RunSchedule, mock.Anything, activities.DueRun{ScheduleID: 7, At: dueAt}).Once().Return(activities.RunOutcome{BatchID: &scheduledBatch}, nil)
	env.ExecuteWorkflow(workflows.RunSchedule, workflows.RunScheduleInput{ScheduleID: 7})
	var outcome activities.RunOutcome
	if err := env.GetWorkflowResult(&outcome); err != nil || outcome.BatchID == nil || *outcome.BatchID != scheduledBatch {
		t.Errorf("it ended with %+v, error %v", outcome, err)
	}
}

func TestARunWaitsForTheDatabase(t *testing.T) {
	env := newScheduled(t)
	env.OnActivity(a.RunSchedule, mock.Anything, mock.Anything).Times(5).Return(activities.RunOutcome{}, errors.New("no database"))
	env.OnActivity(a.RunSchedule, mock.Anything, mock.Anything).Once().Return(activities.RunOutcome{Skipped: "too_late"}, nil)
	began := env.Now()
	env.ExecuteWorkflow(workflows.RunSchedule, workflows.RunScheduleInput{ScheduleID: 7})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if took := env.Now().Sub(began); took != 30*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestARunThatNoScheduleStartedIsNone(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivity(&activities.Activities{})
	env.ExecuteWorkflow(workflows.RunSchedule, workflows.RunScheduleInput{ScheduleID: 7})
	var refused *temporal.ApplicationError
	if err := env.GetWorkflowError(); !errors.As(err, &refused) || refused.Type() != "NotScheduled" {
		t.Errorf("it ended with %v", err)
	}
}

func TestOneSyncIsForAllWhoAskedBeforeIt(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivity(&activities.Activities{})
	defer env.AssertExpectations(t)
	ask := func(after time.Duration, all bool) {
		env.RegisterDelayedCallback(func() { env.SignalWorkflow(workflows.SyncSignal, all) }, after)
	}
	ask(0, false)
	ask(0, true)
	ask(0, false)
	// While the first one runs, two more ask.
	ask(2*time.Second, false)
	ask(3*time.Second, false)
	env.OnActivity(a.SyncSchedules, mock.Anything, true).Once().After(5*time.Second).Return(activities.SyncCounts{}, nil)
	env.OnActivity(a.SyncSchedules, mock.Anything, false).Once().Return(activities.SyncCounts{}, nil)
	env.ExecuteWorkflow(workflows.SyncSchedules, workflows.SyncInput{})
	if err := env.GetWorkflowError(); err != nil {
		t.Error(err)
	}
}

func TestALongSyncGoesOnInANewHistory(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivity(&activities.Activities{})
	env.SetCurrentHistoryLength(2001)
	env.ExecuteWorkflow(workflows.SyncSchedules, workflows.SyncInput{Asked: true, All: true})
	var next *workflow.ContinueAsNewError
	if err := env.GetWorkflowError(); !errors.As(err, &next) {
		t.Fatalf("it ends with %v", err)
	}
}

func TestRecordedHistoriesOfSchedulesReplay(t *testing.T) {
	if *record {
		recordSchedules(t)
	}
	for _, name := range []string{"schedule-run", "schedule-run-skipped-after-an-outage", "schedule-sync"} {
		t.Run(name, func(t *testing.T) {
			if err := replayer().ReplayWorkflowHistoryFromJSONFile(nil, historyFile(name)); err != nil {
				t.Error(err)
			}
		})
	}
}

// recordSchedules has a real Schedule start the runs.
func recordSchedules(t *testing.T) {
	c, err := client.Dial(client.Options{HostPort: devstacktest.Temporal(t), Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tries := map[int64]int{}
	run := func(_ context.Context, due activities.DueRun) (activities.RunOutcome, error) {
		switch tries[due.ScheduleID]++; {
		case due.ScheduleID == 1:
			return activities.RunOutcome{BatchID: &scheduledBatch}, nil
		case tries[due.ScheduleID] < 3:
			return activities.RunOutcome{}, errors.New("no database")
		}
		return activities.RunOutcome{Skipped: "too_late"}, nil
	}
	sync := func(context.Context, bool) (activities.SyncCounts, error) {
		return activities.SyncCounts{Unchanged: 3}, nil
	}
	for queue, workflow := range map[string]any{activities.ReminderQueue: workflows.RunSchedule, activities.SyncQueue: workflows.SyncSchedules} {
		w := worker.New(c, queue, worker.Options{})
		w.RegisterWorkflow(workflow)
		w.RegisterActivityWithOptions(run, activity.RegisterOptions{Name: "RunSchedule"})
		w.RegisterActivityWithOptions(sync, activity.RegisterOptions{Name: "SyncSchedules"})
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
	}
	for id, name := range map[int64]string{1: "schedule-run", 2: "schedule-run-skipped-after-an-outage"} {
		handle, err := c.ScheduleClient().Create(t.Context(), client.ScheduleOptions{ID: "record/" + name, TriggerImmediately: true,
			Action: &client.ScheduleWorkflowAction{ID: "record/" + name, Workflow: workflows.RunSchedule, Args: []any{workflows.RunScheduleInput{ScheduleID: id}}, TaskQueue: activities.ReminderQueue}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = handle.Delete(context.WithoutCancel(t.Context())) }()
		var started string
		for end := time.Now().Add(20 * time.Second); started == ""; time.Sleep(20 * time.Millisecond) {
			have, err := handle.Describe(t.Context())
			if err != nil || time.Now().After(end) {
				t.Fatalf("it started nothing, error %v", err)
			}
			for _, action := range have.Info.RecentActions {
				started = action.StartWorkflowResult.WorkflowID
			}
		}
		if err := c.GetWorkflow(t.Context(), started, "").Get(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		writeHistory(t, c, started, name)
	}
	asked, err := c.SignalWithStartWorkflow(t.Context(), "record/schedule-sync", workflows.SyncSignal, true,
		client.StartWorkflowOptions{TaskQueue: activities.SyncQueue}, workflows.SyncSchedules, workflows.SyncInput{})
	if err != nil {
		t.Fatal(err)
	}
	if err := asked.Get(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	writeHistory(t, c, asked.GetID(), "schedule-sync")
}
