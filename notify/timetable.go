package notify

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// Timetable says when a schedule runs: at a time of the day, or as a cron expression says.
type Timetable struct {
	ExecutionTime string   // 10:30:00; empty where there is Cron
	DaysOfWeek    []string // MON to SUN; none: every day
	DaysOfMonth   []int    // 1 to 31, a month that lacks the day is left out; none: every day
	Cron          string   // five fields; empty where there is ExecutionTime
	Timezone      string   // of the IANA database
	StartsOn      string   // the first day, 2026-04-01; empty: from now on
	EndsOn        string   // the last day; empty: for ever
}

// Weekdays are the names of the days of a week, from Monday on.
var Weekdays = []string{"MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"}

// The codes of what can be wrong with a Timetable. They are part of the API and do not change.
const (
	CodeTimeMissing    = "execution_time_or_cron"
	CodeTimeInvalid    = "execution_time_invalid"
	CodeCronInvalid    = "cron_invalid"
	CodeZoneUnknown    = "timezone_unknown"
	CodeWeekdayInvalid = "days_of_week_invalid"
	CodeMonthDay       = "days_of_month_invalid"
	CodeTwoKindsOfDays = "days_of_week_or_month"
	CodeDateInvalid    = "date_invalid"
	CodeEndBeforeStart = "ends_before_it_starts"
	CodeNeverRuns      = "schedule_never_runs"
)

// TimetableError is one thing that is wrong with a Timetable.
type TimetableError struct {
	Field  string // as the API calls it: execution_time
	Code   string
	Detail string
}

func (e *TimetableError) Error() string { return e.Field + ": " + e.Detail }

// Calendar is a Timetable that was read: it knows the moments of its runs.
type Calendar struct {
	Timetable // in its one form: 10:30 is 10:30:00, days are in order and each is there once

	zone        *time.Location
	rule        rule
	from, until time.Time // from inclusive, until exclusive; zero: no limit
}

// rule says which days and times fit.
type rule struct {
	seconds, minutes, hours, monthDays, months, weekdays set
	eitherDay                                            bool // a day fits when its day of the month or that of the week does
}

func everyDay() rule {
	return rule{seconds: setOf(0), monthDays: setFrom(1, 31, 1), months: setFrom(1, 12, 1), weekdays: setFrom(0, 6, 1)}
}

const (
	dateLayout = "2006-01-02"

	// The years in which Temporal finds a moment for a calendar (minCalendarYear and maxCalendarYear in
	// service/worker/scheduler/calendar.go of its server).
	firstYear, lastYear = 2000, 2100
)

// Calendar reads the timetable, or returns everything that is wrong with it.
func (t Timetable) Calendar() (*Calendar, []*TimetableError) {
	c := &Calendar{Timetable: t, rule: everyDay()}
	var wrong []*TimetableError
	refuse := func(field, code, detail string) { wrong = append(wrong, &TimetableError{field, code, detail}) }

	var err error
	if c.zone, err = LoadZone(t.Timezone); err != nil {
		refuse("timezone", CodeZoneUnknown, err.Error())
	}
	switch {
	case (t.ExecutionTime == "") == (t.Cron == ""):
		refuse("execution_time", CodeTimeMissing, "give either execution_time or cron, and not both")
	case t.Cron != "":
		c.readCron(refuse)
	default:
		c.readTime(refuse)
	}
	c.readDates(refuse)
	if len(wrong) > 0 {
		return nil, wrong
	}
	if c.Next(time.Time{}, 1) == nil {
		field, detail := "ends_on", "no day from starts_on to ends_on is one of its days: it would never run"
		if t.Cron != "" && c.until.IsZero() {
			field, detail = "cron", fmt.Sprintf("there is no such day until %d: it would never run", lastYear)
		}
		return nil, []*TimetableError{{field, CodeNeverRuns, detail}}
	}
	return c, nil
}

func (c *Calendar) readCron(refuse func(field, code, detail string)) {
	r, err := parseCron(c.Cron)
	if err != nil {
		refuse("cron", CodeCronInvalid, err.Error())
	}
	const twoKinds = "the cron expression says on which days it runs: leave the other days out"
	if len(c.DaysOfWeek) > 0 {
		refuse("days_of_week", CodeTwoKindsOfDays, twoKinds)
	}
	if len(c.DaysOfMonth) > 0 {
		refuse("days_of_month", CodeTwoKindsOfDays, twoKinds)
	}
	if r != nil {
		c.rule, c.Cron = *r, strings.Join(strings.Fields(c.Cron), " ")
	}
}

func (c *Calendar) readTime(refuse func(field, code, detail string)) {
	at, err := ParseTimeOfDay(c.ExecutionTime)
	if err != nil {
		refuse("execution_time", CodeTimeInvalid, err.Error())
	}
	c.ExecutionTime = at.String()
	c.rule.hours, c.rule.minutes, c.rule.seconds = setOf(at.Hour), setOf(at.Minute), setOf(at.Second)
	if len(c.DaysOfWeek) > 0 && len(c.DaysOfMonth) > 0 {
		refuse("days_of_month", CodeTwoKindsOfDays, "give days_of_week or days_of_month, and not both; a cron expression can have both")
		return
	}
	if len(c.DaysOfWeek) > 0 {
		c.readWeekdays(refuse)
	}
	if len(c.DaysOfMonth) > 0 {
		c.rule.monthDays = 0
		for _, day := range c.DaysOfMonth {
			if day < 1 || day > 31 {
				refuse("days_of_month", CodeMonthDay, "a day of the month is a number from 1 to 31")
				return
			}
			c.rule.monthDays |= setOf(day)
		}
		c.DaysOfMonth = c.rule.monthDays.numbers()
	}
}

func (c *Calendar) readWeekdays(refuse func(field, code, detail string)) {
	given := c.DaysOfWeek
	c.rule.weekdays, c.DaysOfWeek = 0, nil
	for _, name := range given {
		i := slices.Index(Weekdays, strings.ToUpper(name))
		if i < 0 {
			refuse("days_of_week", CodeWeekdayInvalid, "a day of the week is one of "+strings.Join(Weekdays, ", "))
			return
		}
		c.rule.weekdays |= setOf((i + 1) % 7) // Sunday is 0
	}
	for i, name := range Weekdays {
		if c.rule.weekdays.has((i + 1) % 7) {
			c.DaysOfWeek = append(c.DaysOfWeek, name)
		}
	}
}

func (c *Calendar) readDates(refuse func(field, code, detail string)) {
	read := func(field, text string, nextDay int) time.Time {
		if text == "" {
			return time.Time{}
		}
		day, err := time.Parse(dateLayout, text)
		if err != nil || day.Year() < firstYear || day.Year() > lastYear {
			refuse(field, CodeDateInvalid, fmt.Sprintf("there is no such day from %d to %d: write it as in 2026-04-01", firstYear, lastYear))
			return time.Time{}
		}
		if c.zone == nil {
			return day.AddDate(0, 0, nextDay)
		}
		return FirstMoment(day.Year(), day.Month(), day.Day()+nextDay, TimeOfDay{}, c.zone)
	}
	c.from, c.until = read("starts_on", c.StartsOn, 0), read("ends_on", c.EndsOn, 1)
	if !c.from.IsZero() && !c.until.IsZero() && !c.from.Before(c.until) {
		refuse("ends_on", CodeEndBeforeStart, "it ends before it starts: ends_on is the last day, and starts_on the first")
	}
}

// Zone is where its clocks are.
func (c *Calendar) Zone() *time.Location { return c.zone }

// Next lists the first n moments after the one given at which it runs, in its zone; fewer where there
// are no more.
func (c *Calendar) Next(after time.Time, n int) []time.Time {
	var found []time.Time
	for moment := range c.after(after) {
		if found = append(found, moment); len(found) == n {
			break
		}
	}
	return found
}

// Between lists the moments at which it runs after one moment and until another, that one included.
func (c *Calendar) Between(after, until time.Time) []time.Time {
	var found []time.Time
	for moment := range c.after(after) {
		if moment.After(until) {
			break
		}
		found = append(found, moment)
	}
	return found
}

// Has reports whether it runs at the moment.
func (c *Calendar) Has(moment time.Time) bool {
	next := c.Next(moment.Add(-time.Nanosecond), 1)
	return next != nil && next[0].Equal(moment)
}

// Covers reports whether it would run at the moment if there were no first and no last day.
func (c *Calendar) Covers(moment time.Time) bool {
	unlimited := *c
	unlimited.from, unlimited.until = time.Time{}, time.Time{}
	return unlimited.Has(moment)
}

// after gives the moments at which it runs, in order, each once, from the one given on.
func (c *Calendar) after(start time.Time) iter.Seq[time.Time] {
	if start.IsZero() {
		start = time.Date(firstYear, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if c.from.After(start) {
		start = c.from.Add(-time.Nanosecond)
	}
	return func(yield func(time.Time) bool) {
		year, month, day := start.In(c.zone).AddDate(0, 0, -1).Date() // a moment may be moved to the next day
		times, last := c.rule.times(), start
		for days := 0; ; days++ {
			date := time.Date(year, month, day+days, 0, 0, 0, 0, time.UTC)
			if date.Year() > lastYear {
				return
			}
			if !c.rule.fits(date) {
				continue
			}
			for _, at := range times {
				moment := FirstMoment(date.Year(), date.Month(), date.Day(), at, c.zone)
				if !c.until.IsZero() && !moment.Before(c.until) {
					return
				}
				if !moment.After(last) { // several that are left out become one
					continue
				}
				last = moment
				if !yield(moment) {
					return
				}
			}
		}
	}
}

func (r rule) fits(date time.Time) bool {
	inMonth, inWeek := r.monthDays.has(date.Day()), r.weekdays.has(int(date.Weekday()))
	if r.eitherDay {
		return r.months.has(int(date.Month())) && (inMonth || inWeek)
	}
	return r.months.has(int(date.Month())) && inMonth && inWeek
}

// times lists the times of a day, the earliest first.
func (r rule) times() []TimeOfDay {
	var all []TimeOfDay
	for _, hour := range r.hours.numbers() {
		for _, minute := range r.minutes.numbers() {
			for _, second := range r.seconds.numbers() {
				all = append(all, TimeOfDay{hour, minute, second})
			}
		}
	}
	return all
}

// CalendarRule is what Temporal's calendar specs are made of: a moment fits when each part of what the
// clocks show then is among those listed.
type CalendarRule struct {
	Seconds, Minutes, Hours, MonthDays, Months, Weekdays []int // Sunday is 0
}

// Rules are those that together say when it runs, but for its limits, while the clocks are not changed.
func (c *Calendar) Rules() []CalendarRule {
	r := c.rule
	all := CalendarRule{Seconds: r.seconds.numbers(), Minutes: r.minutes.numbers(), Hours: r.hours.numbers(),
		MonthDays: r.monthDays.numbers(), Months: r.months.numbers(), Weekdays: r.weekdays.numbers()}
	if !r.eitherDay {
		return []CalendarRule{all}
	}
	byMonth, byWeek, every := all, all, everyDay()
	byMonth.Weekdays, byWeek.MonthDays = every.weekdays.numbers(), every.monthDays.numbers()
	return []CalendarRule{byMonth, byWeek}
}

// Limits are the first moment at which it may run and the first at which it may not; zero: none.
func (c *Calendar) Limits() (from, until time.Time) { return c.from, c.until }

// Exceptions are those of its runs, from one moment until another, that may not be found by looking for
// times which fit Rules: those near a change of the clocks. A time that the clocks leave out is never
// shown. Of one that they show twice Temporal's server takes sometimes both and sometimes the second
// only. And where it meets a time that is left out, it goes on looking from another one: by the size of
// the change later, or from the next full hour on, so that runs in between are lost.
func (c *Calendar) Exceptions(from, until time.Time) []time.Time {
	var found []time.Time
	for change := from.In(c.zone); ; {
		_, change = change.ZoneBounds()
		if change.IsZero() || change.After(until) {
			return found
		}
		change = change.In(c.zone)
		shift := (time.Duration(offset(change)-offset(change.Add(-time.Second))) * time.Second).Abs()
		if shift == 0 {
			continue // only the zone's name or its kind of time changes
		}
		after := change.Add(-shift - time.Nanosecond)
		if n := len(found); n > 0 && found[n-1].After(after) {
			after = found[n-1]
		}
		found = append(found, c.Between(after, change.Add(shift+time.Hour))...)
	}
}

// NearChange reports whether the clocks are changed so close to the moment that Temporal may take it for
// another one.
func NearChange(moment time.Time, zone *time.Location) bool {
	const near = 24 * time.Hour
	start, end := moment.In(zone).ZoneBounds()
	return !start.IsZero() && moment.Sub(start) < near || !end.IsZero() && end.Sub(moment) < near
}

// String says in words when it runs: at 10:30:00 on MON, FRI, Asia/Tokyo.
func (t Timetable) String() string {
	when := "cron " + t.Cron
	switch {
	case t.Cron != "":
	case len(t.DaysOfWeek) > 0:
		when = t.ExecutionTime + " on " + strings.Join(t.DaysOfWeek, ", ")
	case len(t.DaysOfMonth) > 0:
		when = t.ExecutionTime + " on day " + strings.Trim(strings.ReplaceAll(fmt.Sprint(t.DaysOfMonth), " ", ", "), "[]") + " of the month"
	default:
		when = t.ExecutionTime + " every day"
	}
	return when + ", " + t.Timezone
}
