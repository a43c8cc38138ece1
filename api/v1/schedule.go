package v1

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// Schedule sends to everybody on a list, again and again.
type Schedule struct {
	ID            int64            `json:"id"`
	Name          string           `json:"name" example:"Morning reminder"`
	Channel       notify.Channel   `json:"channel" enum:"SMS,CALL"`
	ExecutionTime *string          `json:"execution_time" example:"10:30:00"`
	DaysOfWeek    []string         `json:"days_of_week" nullable:"false" doc:"MON to SUN; none: every day."`
	DaysOfMonth   []int            `json:"days_of_month" nullable:"false" doc:"A month that lacks a day is left out; none: every day."`
	Cron          *string          `json:"cron" example:"30 10 * * 1-5" doc:"In the place of the three above."`
	Timezone      string           `json:"timezone" example:"Asia/Tokyo"`
	StartsOn      *string          `json:"starts_on" format:"date" doc:"The first day."`
	EndsOn        *string          `json:"ends_on" format:"date" doc:"The last day."`
	TemplateID    int64            `json:"template_id" doc:"The version that is current when it runs is sent."`
	ListID        int64            `json:"list_id"`
	IsActive      bool             `json:"is_active"`
	PauseNote     *string          `json:"pause_note" doc:"Why it is paused, for people."`
	CatchupWindow string           `json:"catchup_window" example:"10m" doc:"A run that would begin later than this after its time is skipped."`
	Note          *string          `json:"note"`
	Problem       *ScheduleProblem `json:"problem,omitempty" doc:"Why the next run will send nothing, or not to everybody; left out while nothing is known to be wrong. Members who lack a value are looked for within a minute of a change."`
	NextRuns      []time.Time      `json:"next_runs" nullable:"false" doc:"The next five, in its own zone; none while it is not active. A time that the clocks leave out is moved to the first moment after it, and one that they show twice is taken once, the first time."`
	LastRuns      []ScheduleRun    `json:"last_runs" nullable:"false" doc:"The last five, the newest first."`
	Sync          ScheduleSync     `json:"sync"`
	CreatedAt     time.Time        `json:"created_at"`
	UpdatedAt     time.Time        `json:"updated_at"`
}

// ScheduleRun is one time that a schedule ran, or should have.
type ScheduleRun struct {
	ID          int64             `json:"id"`
	ScheduledAt time.Time         `json:"scheduled_at" doc:"When it was due, in the schedule's zone."`
	ByHand      bool              `json:"by_hand" doc:"It was triggered, and was not due."`
	BatchID     *string           `json:"batch_id" format:"uuid"`
	SkipReason  *store.SkipReason `json:"skip_reason" example:"too_late" doc:"Why nothing was sent: too_late, missed (it did not begin within its catch-up window), inactive, outside_dates, template_archived, list_empty, members_lack_params (everybody on the list lacks a value that the template needs), no_recipients, no_sender or schedule_invalid (a field was made wrong in the database)."`
	CreatedAt   time.Time         `json:"created_at" doc:"When it ran, or was found to be missing."`
}

// ScheduleSync says whether Temporal, which starts the runs, has the schedule as it is.
type ScheduleSync struct {
	State       string     `json:"state" enum:"synced,pending,failed"`
	Error       *string    `json:"error" doc:"What Temporal said; it is tried again every minute."`
	SyncedAt    *time.Time `json:"synced_at"`
	ScheduleID  string     `json:"schedule_id" example:"schedule/7" doc:"Temporal's Schedule."`
	ScheduleURL *string    `json:"schedule_url" doc:"Its page in Temporal's Web UI, where one is configured."`
}

// SchedulePage is a part of the list of schedules.
type SchedulePage struct {
	Items      []Schedule `json:"items" nullable:"false"`
	NextCursor *string    `json:"next_cursor" doc:"Give it as cursor to read on; null on the last page."`
}

// newSchedule is a scheduleChange from nothing; its fields are the same.
type newSchedule struct {
	Name          *string  `json:"name" nullable:"false" maxLength:"100" example:"Morning reminder"`
	Channel       *string  `json:"channel" nullable:"false" enum:"SMS,CALL" example:"SMS"`
	ExecutionTime *string  `json:"execution_time,omitempty" example:"10:30" doc:"10:30 or 10:30:00. Either execution_time or cron."`
	DaysOfWeek    []string `json:"days_of_week,omitempty" nullable:"false" example:"[\"MON\",\"FRI\"]" doc:"MON to SUN; none: every day."`
	DaysOfMonth   []int    `json:"days_of_month,omitempty" nullable:"false" doc:"1 to 31; a month that lacks a day is left out. Either days_of_week or days_of_month."`
	Cron          *string  `json:"cron,omitempty" example:"30 10 * * 1-5" doc:"Minute, hour, day of the month, month, day of the week, as in cron(5)."`
	Timezone      *string  `json:"timezone,omitempty" example:"Asia/Tokyo" doc:"Of the IANA database; without it, DEFAULT_TIMEZONE."`
	TemplateID    *int64   `json:"template_id" nullable:"false"`
	ListID        *int64   `json:"list_id" nullable:"false"`
	IsActive      *bool    `json:"is_active,omitempty" doc:"Without it, true."`
	CatchupWindow *string  `json:"catchup_window,omitempty" example:"10m" doc:"From 10s to 24h; without it, 10m. A run that would begin later than this after its time is skipped."`
	StartsOn      *string  `json:"starts_on,omitempty" example:"2026-04-01" doc:"The first day."`
	EndsOn        *string  `json:"ends_on,omitempty" example:"2026-04-30" doc:"The last day."`
	Note          *string  `json:"note,omitempty" maxLength:"500"`
}

type scheduleChange struct {
	Name          *string  `json:"name,omitempty" maxLength:"100"`
	Channel       *string  `json:"channel,omitempty" enum:"SMS,CALL"`
	ExecutionTime *string  `json:"execution_time,omitempty" example:"11:00" doc:"It takes the place of cron."`
	DaysOfWeek    []string `json:"days_of_week,omitempty" nullable:"false" doc:"They take the place of days_of_month; []: every day."`
	DaysOfMonth   []int    `json:"days_of_month,omitempty" nullable:"false" doc:"They take the place of days_of_week; []: every day."`
	Cron          *string  `json:"cron,omitempty" doc:"It takes the place of execution_time and the days."`
	Timezone      *string  `json:"timezone,omitempty" example:"Asia/Tokyo"`
	TemplateID    *int64   `json:"template_id,omitempty"`
	ListID        *int64   `json:"list_id,omitempty"`
	IsActive      *bool    `json:"is_active,omitempty"`
	CatchupWindow *string  `json:"catchup_window,omitempty" example:"10m"`
	StartsOn      *string  `json:"starts_on,omitempty" doc:"An empty text: none."`
	EndsOn        *string  `json:"ends_on,omitempty" doc:"An empty text: none."`
	Note          *string  `json:"note,omitempty" maxLength:"500" doc:"An empty text: none."`
}

type scheduleInput struct {
	ID int64 `path:"id"`
}

type scheduleOutput struct {
	ETag string `header:"ETag" doc:"Give it as If-Match to PATCH and DELETE."`
	Body Schedule
}

type scheduleCreated struct {
	Location string `header:"Location"`
	ETag     string `header:"ETag" doc:"Give it as If-Match to PATCH and DELETE."`
	Body     Schedule
}

const (
	schedulesPath = "/api/v1/schedules"
	shownRuns     = 5 // next ones and last ones
)

func (a *API) registerSchedules(to huma.API) {
	create := operation("create-schedule", http.MethodPost, "/schedules", "Schedules", ScopeManage, "Create a schedule",
		"Every member of the list must have the parameters of the template.", http.StatusConflict)
	create.DefaultStatus = http.StatusCreated
	huma.Register(to, withBody(create), a.createSchedule)
	huma.Register(to, operation("list-schedules", http.MethodGet, "/schedules", "Schedules", ScopeRead,
		"List the schedules", "The oldest first."), a.listSchedules)
	huma.Register(to, operation("get-schedule", http.MethodGet, "/schedules/{id}", "Schedules", ScopeRead,
		"Read a schedule", "When it runs next, and how it ran last.", http.StatusNotFound), a.schedule)
	huma.Register(to, withBody(operation("change-schedule", http.MethodPatch, "/schedules/{id}", "Schedules", ScopeManage,
		"Change a schedule", "It runs by the change within two seconds. Of two people who change it at the same time the second one gets 412.",
		http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed, http.StatusPreconditionRequired)), a.changeSchedule)
	remove := operation("delete-schedule", http.MethodDelete, "/schedules/{id}", "Schedules", ScopeManage,
		"Delete a schedule", "What it has sent stays.", http.StatusNotFound, http.StatusPreconditionFailed, http.StatusPreconditionRequired)
	remove.DefaultStatus = http.StatusNoContent
	huma.Register(to, remove, a.deleteSchedule)
	a.registerScheduleControl(to)
}

func (a *API) createSchedule(ctx context.Context, in *struct{ Body body[newSchedule] }) (*scheduleCreated, error) {
	terms := store.ScheduleTerms{Active: true, CatchupWindow: defaultCatchup, Timetable: notify.Timetable{Timezone: a.Settings.DefaultTimezone}}
	if err := a.checkSchedule(ctx, in.Body.Wrong, scheduleChange(in.Body.Value), &terms); err != nil {
		return nil, err
	}
	created, err := a.Store.CreateSchedule(ctx, terms)
	if err != nil {
		return nil, a.scheduleProblem(ctx, err)
	}
	a.syncSchedules()
	outlooks, err := a.outlooks(ctx, created)
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	shown := a.showSchedule(created, outlooks[created.ID], nil)
	return &scheduleCreated{schedulesPath + "/" + strconv.FormatInt(created.ID, 10), tagOf(created.Revision), shown}, nil
}

func (a *API) listSchedules(ctx context.Context, in *struct {
	Cursor string `query:"cursor" doc:"next_cursor of the page before."`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
}) (*struct{ Body SchedulePage }, error) {
	after, err := parseIDCursor("schedule", in.Cursor)
	if err != nil {
		return nil, err
	}
	schedules, err := a.Store.Schedules(ctx, after, in.Limit+1) // one more tells whether there is a next page
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	var page SchedulePage
	schedules, page.NextCursor = cutPage(schedules, in.Limit, func(last store.Schedule) string { return idCursor("schedule", last.ID) })
	runs, err := a.Store.ScheduleRuns(ctx, shownRuns, mapped(schedules, func(s store.Schedule) int64 { return s.ID })...)
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	outlooks, err := a.outlooks(ctx, schedules...)
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	page.Items = mapped(schedules, func(s store.Schedule) Schedule { return a.showSchedule(s, outlooks[s.ID], runs[s.ID]) })
	return &struct{ Body SchedulePage }{page}, nil
}

func (a *API) schedule(ctx context.Context, in *scheduleInput) (*scheduleOutput, error) {
	found, err := a.Store.Schedule(ctx, in.ID)
	if err != nil {
		return nil, a.scheduleProblem(ctx, err)
	}
	return a.scheduleAnswer(ctx, found)
}

// scheduleAnswer shows a schedule with what it would find now and its last runs.
func (a *API) scheduleAnswer(ctx context.Context, s store.Schedule) (*scheduleOutput, error) {
	runs, err := a.Store.ScheduleRuns(ctx, shownRuns, s.ID)
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	outlooks, err := a.outlooks(ctx, s)
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	return &scheduleOutput{tagOf(s.Revision), a.showSchedule(s, outlooks[s.ID], runs[s.ID])}, nil
}

func (a *API) changeSchedule(ctx context.Context, in *struct {
	ID int64 `path:"id"`
	Precondition
	Body body[scheduleChange]
}) (*scheduleOutput, error) {
	old, err := a.Store.Schedule(ctx, in.ID)
	if err != nil {
		return nil, a.scheduleProblem(ctx, err)
	}
	if err := in.matches(tagOf(old.Revision)); err != nil {
		return nil, err
	}
	terms := old.ScheduleTerms
	if err := a.checkSchedule(ctx, in.Body.Wrong, in.Body.Value, &terms); err != nil {
		return nil, err
	}
	changed, err := a.Store.ChangeSchedule(ctx, in.ID, old.Revision, terms)
	if err != nil {
		return nil, a.scheduleProblem(ctx, err)
	}
	a.syncSchedules()
	return a.scheduleAnswer(ctx, changed)
}

func (a *API) deleteSchedule(ctx context.Context, in *struct {
	ID int64 `path:"id"`
	Precondition
}) (*struct{}, error) {
	old, err := a.Store.Schedule(ctx, in.ID)
	if err != nil {
		return nil, a.scheduleProblem(ctx, err)
	}
	if err := in.matches(tagOf(old.Revision)); err != nil {
		return nil, err
	}
	if err := a.Store.DeleteSchedule(ctx, in.ID, old.Revision); err != nil {
		return nil, a.scheduleProblem(ctx, err)
	}
	a.syncSchedules()
	return nil, nil
}

// syncSchedules has what was changed synced with Temporal beside the request. The worker does it where
// that fails.
func (a *API) syncSchedules() {
	a.Starts.Submit(func(ctx context.Context) {
		if err := a.Starter.SyncSchedules(ctx, false); err != nil {
			a.Logger.WarnContext(ctx, "schedules not synced: left to the worker", "error", err)
		}
	})
}

func (a *API) scheduleProblem(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return problem.New(problem.ScheduleNotFound, "there is no schedule with the id in the path: see GET /api/v1/schedules")
	case errors.Is(err, store.ErrNameTaken):
		return problem.New(problem.NameTaken, "another schedule has this name: choose another one")
	case errors.Is(err, store.ErrStale):
		return stale()
	case errors.Is(err, store.ErrArchived):
		return problem.Only("/template_id", problem.TemplateArchived, archivedTemplate)
	case errors.Is(err, store.ErrReferenceGone):
		return problem.Only("/list_id", problem.ListNotFound, "the list or the template was deleted at this moment: choose others")
	}
	return a.fail(ctx, err)
}

func (a *API) showSchedule(s store.Schedule, outlook store.ScheduleOutlook, runs []store.ScheduleRun) Schedule {
	t := s.Timetable
	shown := Schedule{
		ID: s.ID, Name: s.Name, Channel: s.Channel, ExecutionTime: known(t.ExecutionTime), DaysOfWeek: append([]string{}, t.DaysOfWeek...),
		DaysOfMonth: append([]int{}, t.DaysOfMonth...), Cron: known(t.Cron), Timezone: t.Timezone, StartsOn: known(t.StartsOn), EndsOn: known(t.EndsOn),
		TemplateID: s.TemplateID, ListID: s.ListID, IsActive: s.Active, PauseNote: s.PauseNote, CatchupWindow: shortDuration(s.CatchupWindow), Note: s.Note,
		Problem: a.problemOf(s, outlook), NextRuns: []time.Time{}, LastRuns: []ScheduleRun{}, Sync: a.showSync(s), CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt,
	}
	zone := time.UTC
	if calendar, wrong := t.Calendar(); len(wrong) == 0 {
		zone = calendar.Zone()
		if s.Active {
			shown.NextRuns = append(shown.NextRuns, calendar.Next(time.Now(), shownRuns)...)
		}
	}
	for _, run := range runs {
		shown.LastRuns = append(shown.LastRuns, showRun(run, zone))
	}
	return shown
}

func showRun(run store.ScheduleRun, zone *time.Location) ScheduleRun {
	shown := ScheduleRun{ID: run.ID, ScheduledAt: run.ScheduledAt.In(zone), ByHand: run.LocalTime == nil, SkipReason: run.SkipReason, CreatedAt: run.CreatedAt}
	if run.BatchID != nil {
		shown.BatchID = known(run.BatchID.String())
	}
	return shown
}

func (a *API) showSync(s store.Schedule) ScheduleSync {
	id := notify.ScheduleID(s.ID)
	shown := ScheduleSync{State: "synced", Error: s.SyncError, SyncedAt: s.SyncedAt, ScheduleID: id, ScheduleURL: known(a.Starter.ScheduleURL(id))}
	switch {
	case s.SyncedRevision >= s.Revision:
	case s.SyncError != nil:
		shown.State = "failed"
	default:
		shown.State = "pending"
	}
	return shown
}

// shortDuration writes 10m where Go writes 10m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
