package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// Schedule sends to everybody on a list, again and again.
type Schedule struct {
	ID int64
	ScheduleTerms
	Revision       int32 // counts changes by people, from 1
	CreatedAt      time.Time
	UpdatedAt      time.Time
	Deleted        bool
	WatchedUntil   time.Time  // runs that were due before are known to have run, or to be missed
	SyncedRevision int32      // what Temporal has
	SyncedAt       *time.Time // when that was last made sure of
	SyncError      *string    // why Temporal does not have the newest revision
}

// ScheduleTerms are what people decide of a schedule. They must be valid: the store checks only what
// the schema checks.
type ScheduleTerms struct {
	Name          string
	Channel       notify.Channel
	Timetable     notify.Timetable
	TemplateID    int64 // 0 once it is deleted
	ListID        int64 // 0 once it is deleted
	Active        bool
	PauseNote     *string // why it is not active
	CatchupWindow time.Duration
	Note          *string
}

var (
	// ErrStale means that a row was changed since it was read.
	ErrStale = errors.New("it was changed since it was read")
	// ErrReferenceGone means that a row refers to another one that is not there any more.
	ErrReferenceGone = errors.New("what it refers to is gone")
)

const scheduleColumns = `s.id, s.name, s.channel::text, coalesce(s.execution_time::text, ''), s.days_of_week, s.days_of_month, coalesce(s.cron, ''),
	s.timezone, coalesce(s.starts_on::text, ''), coalesce(s.ends_on::text, ''), coalesce(s.template_id, 0), coalesce(s.list_id, 0),
	s.is_active, s.pause_note, s.catchup_window, s.note, s.revision, s.created_at, s.updated_at, s.deleted_at IS NOT NULL,
	s.watched_until, s.synced_revision, s.synced_at, s.sync_error`

func scanSchedule(row pgx.CollectableRow) (s Schedule, err error) {
	t := &s.Timetable
	err = row.Scan(&s.ID, &s.Name, &s.Channel, &t.ExecutionTime, &t.DaysOfWeek, &t.DaysOfMonth, &t.Cron,
		&t.Timezone, &t.StartsOn, &t.EndsOn, &s.TemplateID, &s.ListID,
		&s.Active, &s.PauseNote, &s.CatchupWindow, &s.Note, &s.Revision, &s.CreatedAt, &s.UpdatedAt, &s.Deleted,
		&s.WatchedUntil, &s.SyncedRevision, &s.SyncedAt, &s.SyncError)
	return s, err
}

// args are the terms for $1 to $15.
func (t ScheduleTerms) args() []any {
	table := t.Timetable
	return []any{t.Name, t.Channel, table.ExecutionTime, append([]string{}, table.DaysOfWeek...), append([]int{}, table.DaysOfMonth...), table.Cron,
		table.Timezone, table.StartsOn, table.EndsOn, t.TemplateID, t.ListID, t.Active, t.PauseNote, t.CatchupWindow, t.Note}
}

// CreateSchedule adds a schedule. The error is ErrNameTaken when the name is another schedule's,
// ErrArchived when the template is archived, or ErrReferenceGone.
func (s *Store) CreateSchedule(ctx context.Context, terms ScheduleTerms) (created Schedule, err error) {
	err = s.pool.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := keepTemplate(ctx, tx, terms.TemplateID); err != nil {
			return err
		}
		created, err = insertSchedule(ctx, tx, terms)
		return err
	})
	return created, scheduleError("create schedule", err)
}

func insertSchedule(ctx context.Context, tx pgx.Tx, terms ScheduleTerms) (Schedule, error) {
	return oneOf(ctx, tx, scanSchedule, `
		INSERT INTO schedules AS s (name, channel, execution_time, days_of_week, days_of_month, cron,
			timezone, starts_on, ends_on, template_id, list_id, is_active, pause_note, catchup_window, note)
		VALUES ($1, $2, nullif($3, '')::time, $4, $5, nullif($6, ''), $7, nullif($8, '')::date, nullif($9, '')::date, $10, $11, $12, $13, $14, $15)
		RETURNING `+scheduleColumns, terms.args()...)
}

// ChangeSchedule gives a schedule other terms, unless it was changed since the revision. Where they say
// otherwise when it runs, runs that were due before are not looked for any more. The error is
// ErrNotFound, ErrStale, ErrNameTaken, ErrReferenceGone, or ErrArchived where the template is archived
// and they begin to send with it.
func (s *Store) ChangeSchedule(ctx context.Context, id int64, revision int32, terms ScheduleTerms) (changed Schedule, err error) {
	err = s.pool.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		begins, err := oneOf(ctx, tx, pgx.RowTo[bool], `
			SELECT template_id IS DISTINCT FROM $2 OR $3 AND NOT is_active FROM schedules WHERE id = $1 AND deleted_at IS NULL`, id, terms.TemplateID, terms.Active)
		if err == nil && begins {
			err = keepTemplate(ctx, tx, terms.TemplateID)
		}
		if err == nil {
			changed, err = updateSchedule(ctx, tx, id, revision, terms)
		}
		return err
	})
	return changed, s.staleError(ctx, id, scheduleError("change schedule", err))
}

func updateSchedule(ctx context.Context, tx pgx.Tx, id int64, revision int32, terms ScheduleTerms) (Schedule, error) {
	return oneOf(ctx, tx, scanSchedule, `
		UPDATE schedules s SET
			name = $1, channel = $2, execution_time = nullif($3, '')::time, days_of_week = $4, days_of_month = $5, cron = nullif($6, ''),
			timezone = $7, starts_on = nullif($8, '')::date, ends_on = nullif($9, '')::date, template_id = $10, list_id = $11,
			is_active = $12, pause_note = $13, catchup_window = $14, note = $15,
			revision = revision + 1, updated_at = now(), sync_retry_at = NULL,
			watched_until = CASE
				WHEN (s.execution_time, s.days_of_week, s.days_of_month, s.cron, s.timezone, s.starts_on, s.ends_on, s.is_active) IS NOT DISTINCT FROM
					(nullif($3, '')::time, $4::text[], $5::integer[], nullif($6, ''), $7, nullif($8, '')::date, nullif($9, '')::date, $12) THEN s.watched_until
				ELSE now()
			END
		WHERE s.id = $16 AND s.revision = $17 AND s.deleted_at IS NULL
		RETURNING `+scheduleColumns, append(terms.args(), id, revision)...)
}

// DeleteSchedule deletes a schedule, unless it was changed since the revision. Its runs stay, and its
// row as well, until and after the sync has deleted it from Temporal; nothing else reads it. The error
// is ErrNotFound or ErrStale.
func (s *Store) DeleteSchedule(ctx context.Context, id int64, revision int32) error {
	_, err := one(ctx, s, pgx.RowTo[int64], `
		UPDATE schedules SET
			deleted_at = now(), template_id = NULL, list_id = NULL, is_active = false,
			revision = revision + 1, updated_at = now(), sync_retry_at = NULL
		WHERE id = $1 AND revision = $2 AND deleted_at IS NULL
		RETURNING id`, id, revision)
	return s.staleError(ctx, id, scheduleError("delete schedule", err))
}

// staleError tells a row that is not there from one that was changed.
func (s *Store) staleError(ctx context.Context, id int64, err error) error {
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	if _, err := s.Schedule(ctx, id); err != nil {
		return err
	}
	return ErrStale
}

// PauseSchedule makes a schedule inactive, with a note; one that is so already gets the new note. The
// error is ErrNotFound when there is no such schedule.
func (s *Store) PauseSchedule(ctx context.Context, id int64, note *string) (Schedule, error) {
	changed, err := setActive(ctx, s.pool, id, false, note)
	if errors.Is(err, ErrNotFound) { // or as it should be
		return s.Schedule(ctx, id)
	}
	return changed, scheduleError("pause schedule", err)
}

// ResumeSchedule makes a schedule active. What was due in the meantime is not made up for. The error is
// ErrNotFound when there is no such schedule, or ErrArchived when its template is archived.
func (s *Store) ResumeSchedule(ctx context.Context, id int64) (changed Schedule, err error) {
	err = s.pool.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		template, err := oneOf(ctx, tx, pgx.RowTo[int64], `
			SELECT template_id FROM schedules WHERE id = $1 AND deleted_at IS NULL FOR NO KEY UPDATE`, id)
		if err == nil {
			err = keepTemplate(ctx, tx, template)
		}
		if err == nil {
			changed, err = setActive(ctx, tx, id, true, nil)
		}
		return err
	})
	if errors.Is(err, ErrNotFound) { // or as it should be
		return s.Schedule(ctx, id)
	}
	return changed, scheduleError("resume schedule", err)
}

// setActive finds nothing where the schedule is as it should be.
func setActive(ctx context.Context, q querier, id int64, active bool, note *string) (Schedule, error) {
	return oneOf(ctx, q, scanSchedule, `
		UPDATE schedules s SET is_active = $2, pause_note = $3, revision = revision + 1, updated_at = now(), sync_retry_at = NULL,
			watched_until = CASE WHEN is_active = $2 THEN watched_until ELSE now() END
		WHERE id = $1 AND deleted_at IS NULL AND (is_active, pause_note) IS DISTINCT FROM ($2, $3)
		RETURNING `+scheduleColumns, id, active, note)
}

// Schedule reads a schedule. The error is ErrNotFound when there is none.
func (s *Store) Schedule(ctx context.Context, id int64) (Schedule, error) {
	found, err := one(ctx, s, scanSchedule, `
		SELECT `+scheduleColumns+` FROM schedules s WHERE s.id = $1 AND s.deleted_at IS NULL`, id)
	return found, scheduleError("read schedule", err)
}

// Schedules lists schedules, the oldest first, after the id given; at most limit.
func (s *Store) Schedules(ctx context.Context, after int64, limit int) ([]Schedule, error) {
	found, err := many(ctx, s, scanSchedule, `
		SELECT `+scheduleColumns+` FROM schedules s WHERE s.id > $1 AND s.deleted_at IS NULL ORDER BY s.id LIMIT $2`, after, limit)
	return found, scheduleError("list schedules", err)
}

// ListUsers names the schedules that send to a list.
func (s *Store) ListUsers(ctx context.Context, id int64) ([]User, error) {
	users, err := many(ctx, s, pgx.RowToStructByPos[User], `
		SELECT id, name FROM schedules WHERE list_id = $1 AND deleted_at IS NULL ORDER BY id`, id)
	return users, scheduleError("look for users of a list", err)
}

// TemplateUsers names the active schedules that send with a template.
func (s *Store) TemplateUsers(ctx context.Context, id int64) ([]User, error) {
	users, err := many(ctx, s, pgx.RowToStructByPos[User], `
		SELECT id, name FROM schedules WHERE template_id = $1 AND deleted_at IS NULL AND is_active ORDER BY id`, id)
	return users, scheduleError("look for users of a template", err)
}

func scheduleError(doing string, err error) error {
	return explain(doing, err, map[string]error{uniqueViolation: ErrNameTaken, foreignKeyViolation: ErrReferenceGone})
}
