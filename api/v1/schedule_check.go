package v1

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

const (
	defaultCatchup  = 10 * time.Minute
	shortestCatchup = 10 * time.Second // Temporal's
	longestCatchup  = 24 * time.Hour
	namedMisfits    = 5
)

// checkSchedule puts a change into the terms, and says everything that is wrong with what comes out.
func (a *API) checkSchedule(ctx context.Context, wrong problem.Details, change scheduleChange, terms *store.ScheduleTerms) error {
	old := *terms
	if change.Name != nil {
		checkName(&wrong, *change.Name)
		terms.Name = strings.TrimSpace(*change.Name)
	}
	if change.Channel != nil {
		terms.Channel = checkChannel(&wrong, *change.Channel)
	}
	checkTimetable(&wrong, change, &terms.Timetable)
	checkCatchup(&wrong, change.CatchupWindow, &terms.CatchupWindow)
	checkNote(&wrong, "/note", change.Note)
	replace(&terms.Note, change.Note)
	if change.IsActive != nil && *change.IsActive != terms.Active {
		terms.Active, terms.PauseNote = *change.IsActive, nil
	}
	if change.TemplateID != nil {
		terms.TemplateID = *change.TemplateID
	}
	if change.ListID != nil {
		terms.ListID = *change.ListID
	}
	if err := a.checkWhatIsSent(ctx, &wrong, old, terms); err != nil {
		return err
	}
	return wrong.Problem()
}

// checkWhatIsSent looks at the channel, the template and the list where one of them is another than
// before. What has become wrong with them since keeps nobody from another change: least of all from
// switching the schedule off.
func (a *API) checkWhatIsSent(ctx context.Context, wrong *problem.Details, old store.ScheduleTerms, terms *store.ScheduleTerms) error {
	if terms.Channel == old.Channel && terms.TemplateID == old.TemplateID && terms.ListID == old.ListID {
		if terms.Active && !old.Active {
			_, err := a.checkScheduleTemplate(ctx, wrong, terms)
			return err
		}
		return nil
	}
	if terms.Channel != "" && a.Settings.Sender(terms.Channel) == "" {
		wrong.Add("/channel", problem.ChannelNotConfigured, "the channel "+string(terms.Channel)+" has no number to send from: set TWILIO_PHONE_NUMBER")
	}
	return a.checkScheduleReferences(ctx, wrong, terms)
}

// replace puts a text in the place of another; an empty one takes it away.
func replace(old **string, text *string) {
	if text != nil {
		*old = known(strings.TrimSpace(*text))
	}
}

// checkTimetable puts the change into the timetable, where a time takes the place of cron and the other
// way round, and days of one kind that of the other.
func checkTimetable(wrong *problem.Details, change scheduleChange, t *notify.Timetable) {
	set := func(old *string, text *string) {
		if text != nil {
			*old = strings.TrimSpace(*text)
		}
	}
	set(&t.Timezone, change.Timezone)
	set(&t.StartsOn, change.StartsOn)
	set(&t.EndsOn, change.EndsOn)
	if valueOf(change.Cron) != "" {
		t.ExecutionTime, t.DaysOfWeek, t.DaysOfMonth = "", nil, nil
	} else if valueOf(change.ExecutionTime) != "" || change.DaysOfWeek != nil || change.DaysOfMonth != nil {
		t.Cron = ""
	}
	set(&t.Cron, change.Cron)
	set(&t.ExecutionTime, change.ExecutionTime)
	if change.DaysOfWeek != nil {
		t.DaysOfWeek, t.DaysOfMonth = change.DaysOfWeek, nil
	}
	if change.DaysOfMonth != nil {
		t.DaysOfMonth = change.DaysOfMonth
		if change.DaysOfWeek == nil {
			t.DaysOfWeek = nil
		}
	}
	for _, field := range []string{"execution_time", "days_of_week", "days_of_month", "cron", "timezone", "starts_on", "ends_on"} {
		if wrong.At("/" + field) {
			return // the rest may be right, but nobody can tell
		}
	}
	calendar, errs := t.Calendar()
	for _, err := range errs {
		wrong.Add("/"+err.Field, problem.Code(err.Code), err.Detail)
	}
	if len(errs) > 0 {
		return
	}
	*t = calendar.Timetable
	if change.changesTimes() && calendar.Next(time.Now(), 1) == nil {
		if _, until := calendar.Limits(); !until.IsZero() && time.Now().Before(until) {
			wrong.Add("/ends_on", notify.CodeNeverRuns, "it has no run left until its last day: choose a later last day, or other days or times")
		} else {
			wrong.Add("/ends_on", notify.CodeNeverRuns, "its last day has passed: it would never run")
		}
	}
}

// changesTimes reports whether the change is one of the timetable: a schedule that is over can still be
// given another name.
func (c scheduleChange) changesTimes() bool {
	for _, text := range []*string{c.ExecutionTime, c.Cron, c.Timezone, c.StartsOn, c.EndsOn} {
		if text != nil {
			return true
		}
	}
	return c.DaysOfWeek != nil || c.DaysOfMonth != nil
}

func checkCatchup(wrong *problem.Details, typed *string, window *time.Duration) {
	if typed == nil || wrong.At("/catchup_window") {
		return
	}
	d, err := time.ParseDuration(*typed)
	if err != nil || d < shortestCatchup || d > longestCatchup || d%time.Second != 0 {
		wrong.Add("/catchup_window", problem.CatchupWindowInvalid, "the catch-up window is none: write 30s, 10m or 1h, from 10s to 24h")
		return
	}
	*window = d
}

// checkScheduleTemplate looks for the template; nil: it cannot be sent with.
func (a *API) checkScheduleTemplate(ctx context.Context, wrong *problem.Details, terms *store.ScheduleTerms) (*store.Template, error) {
	if wrong.At("/template_id") {
		return nil, nil
	}
	return a.findTemplate(ctx, wrong, terms.TemplateID, terms.Channel)
}

// checkScheduleReferences looks for the template and the list, and whether they fit each other.
func (a *API) checkScheduleReferences(ctx context.Context, wrong *problem.Details, terms *store.ScheduleTerms) error {
	template, err := a.checkScheduleTemplate(ctx, wrong, terms)
	if err != nil {
		return err
	}
	if wrong.At("/list_id") {
		return nil
	}
	_, err = a.Store.RecipientList(ctx, terms.ListID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		wrong.Add("/list_id", problem.ListNotFound, "there is no list with this id: see GET /api/v1/lists")
		return nil
	case err != nil:
		return a.fail(ctx, err)
	case template == nil || wrong.At("/template_id") || len(template.Params) == 0:
		return nil
	}
	misfits, err := a.Store.ListMisfits(ctx, terms.ListID, template.Params, namedMisfits)
	if err != nil {
		return a.fail(ctx, err)
	}
	if misfits.Count > 0 {
		wrong.Add("/list_id", problem.MembersLackParams, misfits.Error()+". Give the members these values, or choose another template or list")
	}
	return nil
}
