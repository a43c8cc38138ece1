package activities

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/outbox"
	"github.com/todoku/todoku/store"
)

// DueRun is a run of a schedule that is due.
type DueRun struct {
	ScheduleID int64
	At         time.Time // when it was due
}

// RunOutcome says what became of a run.
type RunOutcome struct {
	BatchID *uuid.UUID       `json:",omitempty"`
	Skipped store.SkipReason `json:",omitempty"`
	Before  bool             `json:",omitempty"` // it had run at this time before: nothing was done now
	NotDue  bool             `json:",omitempty"` // it does not run at this time, because it was changed or deleted meanwhile: nothing was done
}

// A run that Temporal starts before its time, by the database's clock, waits for it: in the activity for a moment, else
// by being tried again, so that a schedule that is changed meanwhile is noticed.
const (
	longestEarlyWait  = 5 * time.Second
	longestEarlyPause = time.Minute
)

// RunSchedule runs a schedule: it writes the batch to everybody on its list, or why there is none. A
// time that it ran at before is not run again.
func (a *Activities) RunSchedule(ctx context.Context, due DueRun) (RunOutcome, error) {
	stopBeating := heartbeat(ctx)
	defer stopBeating()
	run, ran, err := a.Store.RunSchedule(ctx, due.ScheduleID, due.At, a.runTerms(ctx))
	for early, ok := errors.AsType[*store.NotYetDueError](err); ok; early, ok = errors.AsType[*store.NotYetDueError](err) {
		if early.In > longestEarlyWait {
			a.Log.WarnContext(ctx, "Temporal started a schedule before its time: its clock is ahead of the database's",
				"schedule_id", due.ScheduleID, "at", due.At, "early", early.In)
			return RunOutcome{}, temporal.NewApplicationErrorWithOptions("the schedule is not due yet", "NotYetDue",
				temporal.ApplicationErrorOptions{NextRetryDelay: min(early.In, longestEarlyPause)})
		}
		if err := sleep(ctx, early.In); err != nil {
			return RunOutcome{}, err
		}
		run, ran, err = a.Store.RunSchedule(ctx, due.ScheduleID, due.At, a.runTerms(ctx))
	}
	switch {
	case errors.Is(err, store.ErrNoRunTime):
		return RunOutcome{}, temporal.NewNonRetryableApplicationError("the schedule has no run at this time, so nothing was sent: "+
			"to run it by hand, use POST /api/v1/schedules/{id}/trigger or todoku schedule trigger, and not Temporal's trigger", "NotARunTime", nil)
	case errors.Is(err, store.ErrNotDue), errors.Is(err, store.ErrNotFound):
		a.Log.WarnContext(ctx, "a schedule was started at a time that is none of its own", "schedule_id", due.ScheduleID, "at", due.At, "reason", err)
		return RunOutcome{NotDue: true}, nil
	case err != nil:
		return RunOutcome{}, err
	}
	outcome := RunOutcome{BatchID: run.BatchID, Before: !ran}
	if run.SkipReason != nil {
		outcome.Skipped = *run.SkipReason
	}
	if ran {
		a.tellOfRun(ctx, run)
	}
	return outcome, nil
}

// runTerms finds the sender of a channel, and what else the settings say of its batches.
func (a *Activities) runTerms(ctx context.Context) func(notify.Channel) (store.RunTerms, error) {
	behind := TemporalBehind(ctx, a.Store)
	return func(channel notify.Channel) (store.RunTerms, error) {
		set := a.Terms.Batch(channel)
		terms := store.RunTerms{TemporalBehind: behind, RequireHuman: set.RequireHuman, ShardSize: set.ShardSize, Allowed: set.Countries,
			AllowedKinds: a.Terms.NumberKinds}
		if set.Sender == "" {
			return terms, nil
		}
		var err error
		terms.SenderID, err = a.Store.EnsureSender(ctx, channel, set.Sender)
		return terms, err
	}
}

// tellOfRun logs and counts a run, and has its batch started.
func (a *Activities) tellOfRun(ctx context.Context, run store.ScheduleRun) {
	if run.SkipReason != nil {
		scheduleRuns.WithLabelValues(string(*run.SkipReason)).Inc()
		a.Log.WarnContext(ctx, "a run of a schedule was skipped", "schedule_id", run.ScheduleID, "due", run.ScheduledAt, "reason", *run.SkipReason)
		return
	}
	scheduleRuns.WithLabelValues("sent").Inc()
	a.Log.InfoContext(ctx, "schedule ran", "schedule_id", run.ScheduleID, "due", run.ScheduledAt, "batch_id", *run.BatchID)
	if a.Batches == nil {
		return
	}
	b, err := a.Store.Batch(ctx, *run.BatchID)
	if err == nil {
		err = outbox.StartBatch(ctx, a.Store, a.Batches, b.Workflow())
	}
	if err != nil {
		a.Log.WarnContext(ctx, "batch not started: left to the loop that starts batches", "batch_id", *run.BatchID, "error", err)
	}
}

// SyncCounts say what a sync has done. Names are people's words and stay out of Temporal's histories.
type SyncCounts struct{ Unchanged, Changed, Failed int }

// SyncSchedules makes Temporal's Schedules what the table says: all of them, or those that were changed.
func (a *Activities) SyncSchedules(ctx context.Context, all bool) (SyncCounts, error) {
	stopBeating := heartbeat(ctx)
	defer stopBeating()
	sync := ScheduleSync{Store: a.Store, Temporal: a.Schedules, Log: a.Log}
	do := sync.Changed
	if all {
		do = sync.All
	}
	done, err := do(ctx)
	counts := SyncCounts{Unchanged: done.Unchanged, Changed: len(done.Changes) - done.Failed(), Failed: done.Failed()}
	if err == nil && len(done.Changes) > 0 {
		a.Log.InfoContext(ctx, "schedules synced", "changed", counts.Changed, "failed", counts.Failed, "unchanged", counts.Unchanged)
	}
	return counts, err
}
