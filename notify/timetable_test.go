package notify

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

func read(t *testing.T, timetable Timetable) *Calendar {
	t.Helper()
	c, wrong := timetable.Calendar()
	if wrong != nil {
		t.Fatalf("%v: %v", timetable, wrong)
	}
	return c
}

// shown writes moments as the clocks of their zone show them.
func shown(moments []time.Time) string {
	var texts []string
	for _, m := range moments {
		texts = append(texts, m.Format("Mon 2006-01-02 15:04:05-07:00"))
	}
	return strings.Join(texts, "\n")
}

func TestNextRuns(t *testing.T) {
	for _, test := range []struct {
		name      string
		timetable Timetable
		after     string
		want      []string
	}{
		{"every day", Timetable{ExecutionTime: "10:30", Timezone: "Asia/Tokyo"}, "2027-03-30T01:29:59Z",
			[]string{"Tue 2027-03-30 10:30:00+09:00", "Wed 2027-03-31 10:30:00+09:00", "Thu 2027-04-01 10:30:00+09:00"}},
		{"not at the moment itself", Timetable{ExecutionTime: "10:30:00", Timezone: "Asia/Tokyo"}, "2027-03-30T01:30:00Z",
			[]string{"Wed 2027-03-31 10:30:00+09:00", "Thu 2027-04-01 10:30:00+09:00", "Fri 2027-04-02 10:30:00+09:00"}},
		{"on days of the week", Timetable{ExecutionTime: "08:00:30", DaysOfWeek: []string{"fri", "MON", "FRI", "SUN"}, Timezone: "Asia/Tokyo"}, "2027-03-30T00:00:00Z",
			[]string{"Fri 2027-04-02 08:00:30+09:00", "Sun 2027-04-04 08:00:30+09:00", "Mon 2027-04-05 08:00:30+09:00"}},
		{"on days of the month, where there are such", Timetable{ExecutionTime: "08:00", DaysOfMonth: []int{31, 1}, Timezone: "Asia/Tokyo"}, "2027-01-31T00:00:00Z",
			[]string{"Mon 2027-02-01 08:00:00+09:00", "Mon 2027-03-01 08:00:00+09:00", "Wed 2027-03-31 08:00:00+09:00"}},
		{"from its first to its last day", Timetable{ExecutionTime: "00:00", Timezone: "Asia/Tokyo", StartsOn: "2027-04-01", EndsOn: "2027-04-02"}, "2027-01-01T00:00:00Z",
			[]string{"Thu 2027-04-01 00:00:00+09:00", "Fri 2027-04-02 00:00:00+09:00"}},
		{"on 29 February", Timetable{Cron: "0 9 29 2 *", Timezone: "UTC"}, "2027-01-01T00:00:00Z", []string{"Tue 2028-02-29 09:00:00+00:00", "Sun 2032-02-29 09:00:00+00:00", "Fri 2036-02-29 09:00:00+00:00"}},
		{"after a pause of many years", Timetable{Cron: "0 9 */31 2 mon", Timezone: "UTC"}, "2021-02-02T00:00:00Z", []string{"Mon 2027-02-01 09:00:00+00:00", "Mon 2038-02-01 09:00:00+00:00", "Mon 2044-02-01 09:00:00+00:00"}},
		{"until the last year that Temporal knows", Timetable{Cron: "0 9 31 12 *", Timezone: "UTC"}, "2099-01-01T00:00:00Z", []string{"Thu 2099-12-31 09:00:00+00:00", "Fri 2100-12-31 09:00:00+00:00"}},
		{"on either day of a cron expression", Timetable{Cron: "0 9 13 * fri", Timezone: "UTC"}, "2027-01-09T00:00:00Z",
			[]string{"Wed 2027-01-13 09:00:00+00:00", "Fri 2027-01-15 09:00:00+00:00", "Fri 2027-01-22 09:00:00+00:00"}},
		{"by a cron expression", Timetable{Cron: "*/20  9-10 * * 1-5", Timezone: "Asia/Tokyo"}, "2027-04-02T01:30:00Z",
			[]string{"Fri 2027-04-02 10:40:00+09:00", "Mon 2027-04-05 09:00:00+09:00", "Mon 2027-04-05 09:20:00+09:00"}},
		{"at a time that is left out", Timetable{ExecutionTime: "02:30", Timezone: "America/New_York"}, "2027-03-13T12:00:00Z",
			[]string{"Sun 2027-03-14 03:00:00-04:00", "Mon 2027-03-15 02:30:00-04:00", "Tue 2027-03-16 02:30:00-04:00"}},
		{"at a time that comes twice", Timetable{ExecutionTime: "01:30", Timezone: "America/New_York"}, "2027-11-06T12:00:00Z",
			[]string{"Sun 2027-11-07 01:30:00-04:00", "Mon 2027-11-08 01:30:00-05:00", "Tue 2027-11-09 01:30:00-05:00"}},
		{"several times that are left out are one", Timetable{Cron: "*/30 2,3 * * *", Timezone: "America/New_York"}, "2027-03-14T04:00:00Z",
			[]string{"Sun 2027-03-14 03:00:00-04:00", "Sun 2027-03-14 03:30:00-04:00", "Mon 2027-03-15 02:00:00-04:00"}},
		{"several times that come twice", Timetable{Cron: "*/30 1 * * *", Timezone: "America/New_York"}, "2027-11-07T05:29:00Z",
			[]string{"Sun 2027-11-07 01:30:00-04:00", "Mon 2027-11-08 01:00:00-05:00", "Mon 2027-11-08 01:30:00-05:00"}},
		{"at a midnight that is left out", Timetable{ExecutionTime: "00:00", Timezone: "Asia/Beirut"}, "2027-03-27T00:00:00Z",
			[]string{"Sun 2027-03-28 01:00:00+03:00", "Mon 2027-03-29 00:00:00+03:00", "Tue 2027-03-30 00:00:00+03:00"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			after, err := time.Parse(time.RFC3339, test.after)
			if err != nil {
				t.Fatal(err)
			}
			if got := shown(read(t, test.timetable).Next(after, 3)); got != strings.Join(test.want, "\n") {
				t.Errorf("it runs at\n%s\nwant\n%s", got, strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestATimetableThatIsWrongSaysWhere(t *testing.T) {
	daily := func(change func(*Timetable)) Timetable {
		all := Timetable{ExecutionTime: "10:30", Timezone: "Asia/Tokyo"}
		change(&all)
		return all
	}
	cron := func(expression string) Timetable { return Timetable{Cron: expression, Timezone: "Asia/Tokyo"} }
	for _, test := range []struct {
		name      string
		timetable Timetable
		want      string
	}{
		{"nothing", Timetable{}, "timezone_unknown at timezone, execution_time_or_cron at execution_time"},
		{"25:00", daily(func(t *Timetable) { t.ExecutionTime = "25:00" }), "execution_time_invalid at execution_time"},
		{"10:30:61", daily(func(t *Timetable) { t.ExecutionTime = "10:30:61" }), "execution_time_invalid at execution_time"},
		{"no such zone", daily(func(t *Timetable) { t.Timezone = "Mars/Olympus" }), "timezone_unknown at timezone"},
		{"a time and cron", daily(func(t *Timetable) { t.Cron = "0 9 * * *" }), "execution_time_or_cron at execution_time"},
		{"no such day of the week", daily(func(t *Timetable) { t.DaysOfWeek = []string{"MON", "NEVER"} }), "days_of_week_invalid at days_of_week"},
		{"no such day of the month", daily(func(t *Timetable) { t.DaysOfMonth = []int{0} }), "days_of_month_invalid at days_of_month"},
		{"a huge day of the month", daily(func(t *Timetable) { t.DaysOfMonth = []int{1, 1 << 40} }), "days_of_month_invalid at days_of_month"},
		{"both kinds of days", daily(func(t *Timetable) { t.DaysOfWeek, t.DaysOfMonth = []string{"MON"}, []int{1} }), "days_of_week_or_month at days_of_month"},
		{"31 February", daily(func(t *Timetable) { t.StartsOn = "2027-02-31" }), "date_invalid at starts_on"},
		{"a date of another form", daily(func(t *Timetable) { t.EndsOn = "31.12.2027" }), "date_invalid at ends_on"},
		{"a year too far", daily(func(t *Timetable) { t.EndsOn = "9999-12-31" }), "date_invalid at ends_on"},
		{"a year that Temporal does not know", daily(func(t *Timetable) { t.StartsOn = "2101-01-01" }), "date_invalid at starts_on"},
		{"no such day in the years that Temporal knows", Timetable{Cron: "0 9 29 2 *", Timezone: "UTC", StartsOn: "2097-01-01"}, "schedule_never_runs at cron"},
		{"the end before the start", daily(func(t *Timetable) { t.StartsOn, t.EndsOn = "2027-04-02", "2027-04-01" }), "ends_before_it_starts at ends_on"},
		{"no such day between", daily(func(t *Timetable) { t.DaysOfWeek, t.StartsOn, t.EndsOn = []string{"MON"}, "2027-04-02", "2027-04-04" }), "schedule_never_runs at ends_on"},
		{"cron of six fields", cron("0 30 10 * * *"), "cron_invalid at cron"},
		{"cron of four fields", cron("30 10 * *"), "cron_invalid at cron"},
		{"cron of nothing", cron(" "), "cron_invalid at cron"},
		{"cron in words", cron("@daily"), "cron_invalid at cron"},
		{"cron with a minute too many", cron("60 * * * *"), "cron_invalid at cron"},
		{"cron with a range turned round", cron("0 17-9 * * *"), "cron_invalid at cron"},
		{"cron without a step", cron("*/0 * * * *"), "cron_invalid at cron"},
		{"cron with a sign", cron("*/+2 * * * *"), "cron_invalid at cron"},
		{"cron without an end", cron(strings.Repeat("1,", 500) + "1 * * * *"), "cron_invalid at cron"},
		{"cron on 31 February", cron("0 9 31 2 *"), "schedule_never_runs at cron"},
		{"cron with days beside it", Timetable{Cron: "0 9 * * *", Timezone: "UTC", DaysOfWeek: []string{"MON"}}, "days_of_week_or_month at days_of_week"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, wrong := test.timetable.Calendar()
			var got []string
			for _, w := range wrong {
				got = append(got, w.Code+" at "+w.Field)
			}
			if strings.Join(got, ", ") != test.want {
				t.Errorf("wrong is %q, want %q", strings.Join(got, ", "), test.want)
			}
		})
	}
}

func TestCronFields(t *testing.T) {
	for expression, want := range map[string]string{
		"5 4 * * *":           "[5] [4] 31 12 7",
		"0,30 8-10 1 jan sun": "[0 30] [8 9 10] 1 1 1",
		"*/25 22/1 * * 7":     "[0 25 50] [22 23] 31 12 1",
		"0 0 */10 * mon-fri":  "[0] [0] 4 12 5",
	} {
		r, err := parseCron(expression)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		got := fmt.Sprint(r.minutes.numbers(), r.hours.numbers(), len(r.monthDays.numbers()), len(r.months.numbers()), len(r.weekdays.numbers()))
		if got != want {
			t.Errorf("%s is %s, want %s", expression, got, want)
		}
	}
}

func TestATimetableHasOneForm(t *testing.T) {
	c := read(t, Timetable{ExecutionTime: "09:30", DaysOfWeek: []string{"sun", "Mon", "MON"}, Timezone: "Asia/Tokyo"})
	if got := c.String(); got != "09:30:00 on MON, SUN, Asia/Tokyo" {
		t.Errorf("it reads %q", got)
	}
	if c := read(t, Timetable{ExecutionTime: "09:30", DaysOfMonth: []int{31, 1, 31}, Timezone: "UTC"}); c.String() != "09:30:00 on day 1, 31 of the month, UTC" {
		t.Errorf("it reads %q", c)
	}
}

func TestACalendarKnowsItsMoments(t *testing.T) {
	c := read(t, Timetable{ExecutionTime: "01:30", Timezone: "America/New_York", EndsOn: "2027-11-08"})
	for moment, want := range map[string]bool{
		"2027-11-07T05:30:00Z": true, "2027-11-07T06:30:00Z": false, // the second time
		"2027-11-07T05:30:01Z": false, "2027-11-08T06:30:00Z": true, "2027-11-09T06:30:00Z": false, // it has ended
	} {
		at, err := time.Parse(time.RFC3339, moment)
		if err != nil {
			t.Fatal(err)
		}
		if c.Has(at) != want {
			t.Errorf("it runs at %s: %v", moment, !want)
		}
	}
	from := time.Date(2027, 11, 6, 5, 30, 0, 0, time.UTC)
	if got := c.Between(from, from.AddDate(0, 1, 0)); len(got) != 2 {
		t.Errorf("after its moment it runs at\n%s", shown(got))
	}
}

// What Temporal is given leads to the same moments as the calendar itself, even though its server may
// take the second of two moments of one name.
func TestRulesAndExceptionsLeadToTheSameMoments(t *testing.T) {
	from := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	until := from.AddDate(1, 0, 0)
	for _, zone := range []string{"Asia/Tokyo", "America/New_York", "Europe/London", "Australia/Lord_Howe", "America/Santiago", "Asia/Beirut", "Africa/Cairo"} {
		for _, timetable := range []Timetable{
			{Cron: "*/15 * * * *"}, {ExecutionTime: "00:00"}, {ExecutionTime: "02:15"}, {ExecutionTime: "01:30"}, {ExecutionTime: "02:30", DaysOfWeek: []string{"SUN"}},
			{Cron: "30 0-3 14 3 *"}, {Cron: "45 1 1-7 * sun"}, {ExecutionTime: "23:30"}, {ExecutionTime: "10:30"},
		} {
			timetable.Timezone = zone
			c := read(t, timetable)
			rules := c.Rules()
			fired := map[string]time.Time{} // by what the clocks show; the ledger has one run for each
			for moment := from; moment.Before(until); moment = moment.Add(15 * time.Minute) {
				if local := moment.In(c.Zone()); slices.ContainsFunc(rules, func(r CalendarRule) bool { return r.fits(local) }) {
					fired[LocalTime(moment, c.Zone())] = moment
				}
			}
			exceptions := c.Exceptions(from, until)
			for _, moment := range exceptions {
				fired[LocalTime(moment, c.Zone())] = moment
			}
			if zone == "Asia/Tokyo" && exceptions != nil {
				t.Errorf("%v has exceptions\n%s", timetable, shown(exceptions))
			}
			want := c.Between(from.Add(-time.Nanosecond), until.Add(-time.Nanosecond))
			got := slices.SortedFunc(maps.Values(fired), time.Time.Compare)
			if !slices.EqualFunc(got, want, time.Time.Equal) {
				t.Errorf("%v: it is fired at %d moments, want %d", timetable, len(got), len(want))
			}
		}
	}
}

// fits is what Temporal's server does with a calendar spec.
func (r CalendarRule) fits(t time.Time) bool {
	for _, part := range []struct {
		allowed []int
		shown   int
	}{
		{r.Seconds, t.Second()}, {r.Minutes, t.Minute()}, {r.Hours, t.Hour()}, {r.MonthDays, t.Day()},
		{r.Months, int(t.Month())}, {r.Weekdays, int(t.Weekday())},
	} {
		if !slices.Contains(part.allowed, part.shown) {
			return false
		}
	}
	return true
}
