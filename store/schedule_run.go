package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// ScheduleRun is one time that a schedule ran, or should have.
type ScheduleRun struct {
	ID          int64
	ScheduleID  int64
	LocalTime   *time.Time // what the clocks of its zone showed, as if it were in UTC; nil: it was run by hand
	ScheduledAt time.Time
	BatchID     *uuid.UUID
	SkipReason  *SkipReason // why there is no batch
	CreatedAt   time.Time
}

// SkipReason says why a run sent nothing.
type SkipReason string

// The reasons. They are part of the API and do not change.
const (
	SkipTooLate          SkipReason = "too_late"            // it began after the catch-up window
	SkipMissed           SkipReason = "missed"              // it did not begin at all
	SkipInactive         SkipReason = "inactive"            // the schedule was paused meanwhile
	SkipOutsideDates     SkipReason = "outside_dates"       // before the first day or after the last one
	SkipTemplateArchived SkipReason = "template_archived"   //
	SkipListEmpty        SkipReason = "list_empty"          //
	SkipNoRecipients     SkipReason = "no_recipients"       // nothing can be sent to anybody on the list
	SkipNoSender         SkipReason = "no_sender"           // the channel has nothing to send from
	SkipMembersLack      SkipReason = "members_lack_params" // everybody on the list lacks a value that the template needs
	SkipInvalid          SkipReason = "schedule_invalid"    // a field of the schedule is wrong: its row was changed by other means than the API
)

const scheduleRunColumns = `r.id, r.schedule_id, r.local_time, r.scheduled_at, r.batch_id, r.skip_reason, r.created_at`

// RunTerms are what a run takes from the settings.
type RunTerms struct {
	SenderID     int64 // 0: the channel has nothing to send from
	RequireHuman bool
	ShardSize    int
	Allowed      []string           // regions that may be sent to
	AllowedKinds []notify.PhoneKind // kinds that may be sent to though they charge the caller

	// TemporalBehind is how far Temporal's clock, which starts the run, is behind the database's: so much
	// does not count as lateness.
	TemporalBehind time.Duration
}

// RunSchedule runs a schedule that was due at a moment: it writes the batch to everybody on its list,
// or why there is none. A time that it ran at before, by what the clocks of that zone show, is not run
// again: ran is false then, and the run is that of before. Of two moments of one name the first
// counts. All of it is one transaction, so it may be called as often as one likes.
//
// The error is ErrNotFound when there is no such schedule, ErrNotDue when it does not run at that moment,
// because it was changed meanwhile, and *NotYetDueError when the moment has not come by the database's clock:
// then nothing was written.
func (s *Store) RunSchedule(ctx context.Context, id int64, due time.Time, terms func(notify.Channel) (RunTerms, error)) (run ScheduleRun, ran bool, err error) {
	err = s.pool.transactWithin(ctx, listLimit, func(ctx context.Context, tx pgx.Tx) error {
		r, err := prepareRun(ctx, tx, id, due, terms)
		if err != nil {
			return err
		}
		calendar, wrong := r.Timetable.Calendar()
		if len(wrong) > 0 || r.broken {
			run, ran, err = r.skipInvalid(ctx, tx)
			return err
		}
		r.due = notify.FirstOfItsName(due, calendar.Zone()) // Temporal may fire at the second
		local := notify.LocalTime(due, calendar.Zone())
		switch {
		case !calendar.Covers(r.due) && notify.NearChange(due, calendar.Zone()):
			return ErrNotDue
		case !calendar.Covers(r.due):
			return ErrNoRunTime
		}
		if early := r.due.Sub(r.now); early > 0 {
			return &NotYetDueError{In: early}
		}
		if run, ran, err = r.insert(ctx, tx, &local); err != nil || !ran {
			return err
		}
		reason := r.timely(calendar)
		if reason == "" {
			if reason, err = r.send(ctx, tx); err != nil {
				return err
			}
		}
		if reason == "" {
			return nil
		}
		run.BatchID, run.SkipReason = nil, &reason
		_, err = tx.Exec(ctx, `UPDATE schedule_runs SET batch_id = NULL, skip_reason = $2 WHERE id = $1`, run.ID, reason)
		return err
	})
	return run, ran, runError(err)
}

var (
	// ErrNotDue means that a schedule does not run at the moment given: near a change of the clocks, Temporal
	// has taken it for another one.
	ErrNotDue = errors.New("the schedule does not run at this moment")
	// ErrNoRunTime means that the moment given is none at which a schedule runs: somebody
	// has triggered the schedule in Temporal, or changed it meanwhile. It is an ErrNotDue.
	ErrNoRunTime = fmt.Errorf("%w: it has no run then", ErrNotDue)
)

// NotYetDueError means that the moment of a run has not come: the run is to be tried again.
type NotYetDueError struct{ In time.Duration }

func (e *NotYetDueError) Error() string { return "the schedule runs in " + e.In.String() }

// RunSkippedError says why a run by hand sent nothing.
type RunSkippedError struct{ Reason SkipReason }

func (e *RunSkippedError) Error() string { return "the run was skipped: " + string(e.Reason) }

// TriggerSchedule runs a schedule now, by hand, also when it is not active. The error is ErrNotFound,
// ErrKeyInUse, ErrKeyReused or *RunSkippedError: then nothing was written. Where the same was asked
// before under the same key, replay is what was answered.
func (s *Store) TriggerSchedule(ctx context.Context, id int64, terms func(notify.Channel) (RunTerms, error), once *Once,
	answer func(ScheduleRun) (Answer, error)) (run ScheduleRun, replay *Answer, err error) {
	err = s.pool.transactWithin(ctx, listLimit, func(ctx context.Context, tx pgx.Tx) error {
		if once != nil {
			if replay, err = lockKey(ctx, tx, once); err != nil || replay != nil {
				return err
			}
		}
		r, err := prepareRun(ctx, tx, id, time.Time{}, terms)
		if err != nil {
			return err
		}
		if r.due = r.now; r.broken {
			return &RunSkippedError{SkipInvalid}
		}
		if run, _, err = r.insert(ctx, tx, nil); err != nil {
			return err
		}
		switch reason, err := r.send(ctx, tx); {
		case err != nil:
			return err
		case reason != "":
			return &RunSkippedError{reason}
		case once == nil:
			return nil
		}
		first, err := answer(run)
		if err != nil {
			return err
		}
		return keepAnswer(ctx, tx, once, first)
	})
	return run, replay, runError(err)
}

func runError(err error) error {
	var early *NotYetDueError
	if err == nil || errors.As(err, &early) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrNotDue) {
		return err
	}
	return fmt.Errorf("run schedule: %w", err)
}

// skipInvalid notes that a run cannot be, because its schedule cannot be read. Its zone may be what is
// wrong, so the run has its time in UTC.
func (r newRun) skipInvalid(ctx context.Context, tx pgx.Tx) (run ScheduleRun, ran bool, err error) {
	local := notify.LocalTime(r.due, time.UTC)
	if run, ran, err = r.insert(ctx, tx, &local); err != nil || !ran {
		return run, ran, err
	}
	reason := SkipInvalid
	run.BatchID, run.SkipReason = nil, &reason
	_, err = tx.Exec(ctx, `UPDATE schedule_runs SET batch_id = NULL, skip_reason = $2 WHERE id = $1`, run.ID, reason)
	return run, true, err
}

// newRun is a run under way.
type newRun struct {
	Schedule
	broken   bool // its template or its list is not there, or not of its channel
	template Template
	members  int32
	due, now time.Time
	batch    uuid.UUID
	terms    RunTerms
}

// prepareRun reads what the run needs.
func prepareRun(ctx context.Context, tx pgx.Tx, id int64, due time.Time, terms func(notify.Channel) (RunTerms, error)) (r newRun, err error) {
	rows, err := tx.Query(ctx, `SELECT `+scheduleColumns+` FROM schedules s WHERE s.id = $1 AND s.deleted_at IS NULL`, id)
	if err != nil {
		return r, err
	}
	if r.Schedule, err = pgx.CollectExactlyOneRow(rows, scanSchedule); errors.Is(err, pgx.ErrNoRows) {
		return r, ErrNotFound
	} else if err != nil {
		return r, err
	}
	if rows, err = tx.Query(ctx, `
		SELECT `+templateColumns+`
		FROM templates t
		JOIN template_versions v ON v.template_id = t.id AND v.version = t.current_version
		WHERE t.id = $1`, r.TemplateID); err != nil {
		return r, err
	}
	if r.template, err = pgx.CollectExactlyOneRow(rows, scanTemplate); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return r, fmt.Errorf("read template: %w", err)
	}
	r.broken = err != nil || r.template.Channel != r.Channel
	var listFound bool
	if err := tx.QueryRow(ctx, `
		SELECT l.id IS NOT NULL, coalesce(l.members_count, 0), clock_timestamp()
		FROM (SELECT $1::bigint AS id) AS wanted
		LEFT JOIN lists l USING (id)`, r.ListID).Scan(&listFound, &r.members, &r.now); err != nil {
		return r, fmt.Errorf("read list: %w", err)
	}
	r.broken = r.broken || !listFound
	if r.batch, err = uuid.NewV7(); err != nil {
		return r, err
	}
	r.due = due
	r.terms, err = terms(r.Channel)
	return r, err
}

// insert writes the run, with a batch that is to be, unless there was one at this time: it waits for
// one that is being written. local is nil for a run by hand.
func (r newRun) insert(ctx context.Context, tx pgx.Tx, local *string) (run ScheduleRun, inserted bool, err error) {
	rows, err := tx.Query(ctx, `
		INSERT INTO schedule_runs AS r (schedule_id, local_time, timezone, scheduled_at, batch_id)
		VALUES ($1, $2::text::timestamp, $5, $3, $4)
		ON CONFLICT (schedule_id, local_time, timezone) DO NOTHING
		RETURNING `+scheduleRunColumns, r.ID, local, r.due, r.batch, r.Timetable.Timezone)
	if err != nil {
		return run, false, err
	}
	run, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[ScheduleRun])
	if !errors.Is(err, pgx.ErrNoRows) {
		return run, err == nil, err
	}
	rows, err = tx.Query(ctx, `
		SELECT `+scheduleRunColumns+` FROM schedule_runs r WHERE r.schedule_id = $1 AND r.local_time = $2::text::timestamp
			AND r.timezone = $3`, r.ID, local, r.Timetable.Timezone)
	if err != nil {
		return run, false, err
	}
	run, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[ScheduleRun])
	return run, false, err
}

// timely says why the time is none to run at; empty: it is one.
func (r newRun) timely(calendar *notify.Calendar) SkipReason {
	from, until := calendar.Limits()
	switch {
	case !r.Active:
		return SkipInactive
	case r.due.Before(from), !until.IsZero() && !r.due.Before(until):
		return SkipOutsideDates
	case r.now.Sub(r.due)-r.terms.TemporalBehind > r.CatchupWindow:
		return SkipTooLate
	}
	return ""
}

// send writes the batch, or says why there is none.
func (r newRun) send(ctx context.Context, tx pgx.Tx) (SkipReason, error) {
	switch {
	case r.template.ArchivedAt != nil:
		return SkipTemplateArchived, nil
	case r.members == 0:
		return SkipListEmpty, nil
	case r.terms.SenderID == 0:
		return SkipNoSender, nil
	}
	err := WriteListBatch(ctx, tx, NewBatch{
		ID: r.batch, Name: &r.Name, Channel: r.Channel, TemplateID: &r.template.ID, TemplateVersion: &r.template.Version,
		SenderID: r.terms.SenderID, RequireHuman: r.terms.RequireHuman, ShardSize: r.terms.ShardSize, ScheduleID: &r.ID,
	}, ListRecipients{ListID: r.ListID, Params: r.template.Params, Allowed: r.terms.Allowed, AllowedKinds: r.terms.AllowedKinds})
	if !errors.Is(err, ErrNoRecipients) {
		return "", err
	}
	if len(r.template.Params) > 0 {
		misfits, err := listMisfits(ctx, tx, r.ListID, r.template.Params, 1)
		if err != nil {
			return "", err
		}
		if misfits.Count >= int(r.members) {
			return SkipMembersLack, nil
		}
	}
	return SkipNoRecipients, nil
}

// ScheduleRuns gives the last runs of schedules, the newest first; at most few of each.
func (s *Store) ScheduleRuns(ctx context.Context, few int, schedules ...int64) (map[int64][]ScheduleRun, error) {
	all, err := many(ctx, s, pgx.RowToStructByPos[ScheduleRun], `
		SELECT r.*
		FROM unnest($1::bigint[]) AS of (id)
		CROSS JOIN LATERAL (
			SELECT `+scheduleRunColumns+` FROM schedule_runs r WHERE r.schedule_id = of.id ORDER BY r.scheduled_at DESC, r.id DESC LIMIT $2
		) AS r`, schedules, few)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	runs := make(map[int64][]ScheduleRun, len(schedules))
	for _, r := range all {
		runs[r.ScheduleID] = append(runs[r.ScheduleID], r)
	}
	return runs, nil
}

// DueWithoutRun are those of the times at which a schedule was due that it did not run at and that are
// not noted as missed, in order.
func (s *Store) DueWithoutRun(ctx context.Context, id int64, due []time.Time, zone *time.Location) ([]time.Time, error) {
	local := make([]string, len(due))
	for i, at := range due {
		local[i] = notify.LocalTime(at, zone)
	}
	missing, err := many(ctx, s, pgx.RowTo[time.Time], `
		SELECT at
		FROM unnest($2::text[], $3::timestamptz[]) AS due (local, at)
		WHERE NOT EXISTS (SELECT FROM schedule_runs r WHERE r.schedule_id = $1 AND r.local_time = local::timestamp AND r.timezone = $4)
		ORDER BY at`, id, local, due, zone.String())
	if err != nil {
		return nil, fmt.Errorf("look for runs: %w", err)
	}
	return missing, nil
}

// SchedulesToWatch lists active schedules whose runs of before their catch-up window and a grace were
// not looked at, and that moment.
func (s *Store) SchedulesToWatch(ctx context.Context, grace time.Duration) ([]Schedule, error) {
	found, err := many(ctx, s, scanSchedule, `
		SELECT `+scheduleColumns+`
		FROM schedules s
		WHERE s.is_active AND s.deleted_at IS NULL AND s.watched_until < clock_timestamp() - s.catchup_window - $1::interval
		ORDER BY s.watched_until`, grace)
	return found, scheduleError("look for schedules to watch", err)
}

// WatchSchedule notes as missed those of the times at which a schedule was due and has no run, and
// that it was looked at until a moment. It returns the times that were missed. Whoever comes second
// finds nothing.
func (s *Store) WatchSchedule(ctx context.Context, watched Schedule, due []time.Time, zone *time.Location, until time.Time) (missed []time.Time, err error) {
	err = s.pool.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		missed = nil
		tag, err := tx.Exec(ctx, `
			UPDATE schedules SET watched_until = $3 WHERE id = $1 AND revision = $2 AND watched_until = $4`,
			watched.ID, watched.Revision, until, watched.WatchedUntil)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		local := make([]string, len(due))
		for i, at := range due {
			local[i] = notify.LocalTime(at, zone)
		}
		rows, err := tx.Query(ctx, `
			INSERT INTO schedule_runs (schedule_id, local_time, timezone, scheduled_at, skip_reason)
			SELECT $1, local::timestamp, $5, at, $4 FROM unnest($2::text[], $3::timestamptz[]) AS due (local, at)
			ON CONFLICT (schedule_id, local_time, timezone) DO NOTHING
			RETURNING scheduled_at`, watched.ID, local, due, SkipMissed, zone.String())
		if err != nil {
			return err
		}
		missed, err = pgx.CollectRows(rows, pgx.RowTo[time.Time])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("watch schedule: %w", err)
	}
	return missed, nil
}
