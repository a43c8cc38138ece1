package workflows_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/todoku/todoku/activities"
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

var (
	runSchedule   = step{"RunSchedule", activities.ReminderQueue}
	syncSchedules = step{"SyncSchedules", activities.SyncQueue}

	schedulePaths = []path{
		{name: "schedule-run", workflow: workflows.RunSchedule, input: workflows.RunScheduleInput{ScheduleID: 1}, queue: activities.ReminderQueue, scheduled: true,
			answers: answers{runSchedule: {activities.RunOutcome{BatchID: &scheduledBatch}}}},
		{name: "schedule-run-skipped-after-an-outage", workflow: workflows.RunSchedule, input: workflows.RunScheduleInput{ScheduleID: 2}, queue: activities.ReminderQueue, scheduled: true,
			answers: answers{runSchedule: {errors.New("no database"), errors.New("no database"), activities.RunOutcome{Skipped: "too_late"}}}},
		{name: "schedule-sync", workflow: workflows.SyncSchedules, input: workflows.SyncInput{}, queue: activities.SyncQueue,
			signals: []signal{{workflows.SyncSignal, true}}, atOnce: true,
			answers: answers{syncSchedules: {activities.SyncCounts{Unchanged: 3}}}},
	}
)
