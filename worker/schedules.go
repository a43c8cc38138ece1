package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/starter"
	"github.com/todoku/todoku/store"
)

const (
	schedulesInterval = time.Second
	syncAge           = time.Second     // by then whoever changed a schedule has told the sync, or never will
	syncPause         = 5 * time.Second // before the sync is told again
	syncEvery         = 3 * time.Minute // of all schedules

	watchInterval = 15 * time.Second
	// watchGrace is how long after its catch-up window a run is given to be written down.
	watchGrace = 30 * time.Second
	// watchedFor is how long a schedule that has nothing to watch is left alone.
	watchedFor = time.Hour
	watchLimit = 1000 // runs of one schedule in one look

	misfitsLimit = 100 // schedules whose template or list has changed, in one look
)

var missedRuns = promauto.NewCounter(prometheus.CounterOpts{
	Name: "todoku_schedule_runs_missed_total",
	Help: "Runs of schedules that should have happened and did not: Temporal or every worker was away for longer than the catch-up window.",
})

// Schedules has schedules synced with Temporal when nobody else does, and watches whether what was due
// has run. Every worker runs one; they share the work.
type Schedules struct {
	Store   *store.Store
	Starter *starter.Starter
	Log     *slog.Logger

	told, synced, watched time.Time // when it last did each
}

// Run goes on until ctx ends.
func (s *Schedules) Run(ctx context.Context) {
	repeat(ctx, s.Log, "schedules", schedulesInterval, "schedules wait until the database and Temporal answer again", func(ctx context.Context) error {
		return errors.Join(s.sync(ctx), s.watch(ctx))
	})
}

// sync has all schedules synced now and then, and those that were changed and are not synced.
func (s *Schedules) sync(ctx context.Context) error {
	if time.Since(s.synced) > syncEvery {
		if err := s.Starter.SyncSchedules(ctx, true); err != nil {
			return err
		}
		s.synced, s.told = time.Now(), time.Now()
	}
	if time.Since(s.told) < syncPause {
		return nil
	}
	due, err := s.Store.ScheduleSyncDue(ctx, syncAge)
	if err != nil || !due {
		return err
	}
	s.told = time.Now()
	return s.Starter.SyncSchedules(ctx, false)
}

// watch compares the runs that should have happened with those that did, and looks ahead for members who lack values.
func (s *Schedules) watch(ctx context.Context) error {
	if time.Since(s.watched) < watchInterval {
		return nil
	}
	s.watched = time.Now()
	grace := watchGrace + activities.TemporalBehind(ctx, s.Store)
	schedules, err := s.Store.SchedulesToWatch(ctx, grace)
	if err != nil {
		return err
	}
	for _, schedule := range schedules {
		err = errors.Join(err, s.watchOne(ctx, schedule, grace))
	}
	_, failure := s.Store.LookForMisfits(ctx, store.ScheduleUse{}, misfitsLimit)
	return errors.Join(err, failure)
}

func (s *Schedules) watchOne(ctx context.Context, schedule store.Schedule, grace time.Duration) error {
	calendar, wrong := schedule.Timetable.Calendar()
	if len(wrong) > 0 {
		return wrong[0]
	}
	until := s.Store.Now(ctx).Add(-schedule.CatchupWindow - grace)
	due := calendar.Between(schedule.WatchedUntil, until)
	if len(due) > watchLimit {
		due, until = due[:watchLimit], due[watchLimit-1]
	}
	if len(due) == 0 && until.Sub(schedule.WatchedUntil) < watchedFor {
		return nil
	}
	missed, err := s.Store.WatchSchedule(ctx, schedule, due, calendar.Zone(), until)
	for _, at := range missed {
		missedRuns.Inc()
		s.Log.Error("a schedule did not run when it was due", "schedule_id", schedule.ID, "due", at)
	}
	return err
}
