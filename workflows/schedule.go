package workflows

import (
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/todoku/todoku/activities"
)

// RunScheduleInput names the schedule that a Temporal Schedule stands for.
type RunScheduleInput struct{ ScheduleID int64 }

// scheduledStart is when a Schedule meant to start a workflow, which may be a while ago: Temporal sets
// it (https://docs.temporal.io/search-attribute).
var scheduledStart = temporal.NewSearchAttributeKeyTime("TemporalScheduledStartTime")

// RunSchedule runs a schedule at the time that Temporal meant to. However often it is started for one
// time, everybody on the list gets one message: the ledger has one run for each.
func RunSchedule(ctx workflow.Context, in RunScheduleInput) (outcome activities.RunOutcome, err error) {
	at, ok := workflow.GetTypedSearchAttributes(ctx).GetTime(scheduledStart)
	if !ok {
		return outcome, temporal.NewNonRetryableApplicationError("only a Schedule starts this workflow: run a schedule by hand with POST /api/v1/schedules/{id}/trigger", "NotScheduled", nil)
	}
	err = workflow.ExecuteActivity(scheduleOptions.apply(ctx), a.RunSchedule, activities.DueRun{ScheduleID: in.ScheduleID, At: at}).Get(ctx, &outcome)
	return outcome, err
}

// SyncSignal asks SyncSchedules for one more sync: of all schedules, or of those that were changed.
const SyncSignal = "sync"

// SyncInput is what was asked of the run before, which it has not done.
type SyncInput struct{ Asked, All bool }

// SyncSchedules makes Temporal's Schedules what the table of schedules says, once for all that asked
// before it began, and again for those that asked since.
func SyncSchedules(ctx workflow.Context, next SyncInput) error {
	signals := workflow.GetSignalChannel(ctx, SyncSignal)
	for {
		for all := false; signals.ReceiveAsync(&all); all = false {
			next.Asked, next.All = true, next.All || all
		}
		switch {
		case !next.Asked:
			return nil
		case workflow.GetInfo(ctx).GetCurrentHistoryLength() > longHistory:
			return workflow.NewContinueAsNewError(ctx, SyncSchedules, next)
		}
		if err := workflow.ExecuteActivity(syncOptions.apply(ctx), a.SyncSchedules, next.All).Get(ctx, nil); err != nil {
			return err
		}
		next = SyncInput{}
	}
}
