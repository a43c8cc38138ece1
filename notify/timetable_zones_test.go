package notify

import (
	"archive/zip"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// temporalNext is how Temporal's server finds the next moment of a calendar spec
// (compiledCalendar.next in service/worker/scheduler/calendar.go of go.temporal.io/server v1.29.1), which
// cannot be imported here: it does not compile in one module with the SDK.
func temporalNext(r rule, ts time.Time, zone *time.Location) time.Time {
	ts = ts.In(zone)
	y, mo, d := ts.Date()
	h, m, s := ts.Clock()
	again := time.Duration(0)
	if ts.Add(-time.Hour).Hour() == h {
		again = time.Hour
	}
	s++
search:
	for y <= lastYear {
		if s >= 60 {
			m, s = m+1, 0
		}
		if m >= 60 {
			before := time.Date(y, mo, d, h, 0, 0, 0, zone)
			h, m = h+1, 0
			if again == 0 && time.Date(y, mo, d, h, 0, 0, 0, zone).Sub(before) > time.Hour {
				h, again = h-1, time.Hour
			} else {
				again = 0
			}
		}
		if h >= 24 {
			d, h = d+1, 0
		}
		if d > time.Date(y, mo+1, 0, 0, 0, 0, 0, time.UTC).Day() {
			mo, d = mo+1, 1
		}
		if mo > time.December {
			y, mo = y+1, time.January
		}
		switch {
		case !r.months.has(int(mo)):
			mo, d, h, m, s, again = mo+1, 1, 0, 0, 0, 0
		case !r.monthDays.has(d) || !r.weekdays.has(int(time.Date(y, mo, d, h, m, s, 0, zone).Weekday())):
			d, h, m, s, again = d+1, 0, 0, 0, 0
		case !r.hours.has(h):
			h, m, s, again = h+1, 0, 0, 0
		case !r.minutes.has(m):
			m, s = m+1, 0
		case !r.seconds.has(s):
			s++
		default:
			next := time.Date(y, mo, d, h, m, s, 0, zone)
			if next.Hour() != h {
				h, m, s = h+1, 0, 0
				continue search
			}
			return next.Add(again)
		}
	}
	return time.Time{}
}

// oddZones are one zone for each way in which clocks are changed in the two years.
func oddZones(t *testing.T, from, until time.Time) (zones []*time.Location) {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Skip("there is no go command to ask for its list of zones")
	}
	archive, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Skip("Go's list of zones is not there")
	}
	defer archive.Close()
	seen := map[string]bool{}
	for _, file := range archive.File {
		zone, err := LoadZone(file.Name)
		if err != nil || strings.HasSuffix(file.Name, "/") {
			continue
		}
		var changes string
		for _, change := range changesOf(zone, from, until) {
			changes += fmt.Sprint(change.Unix(), offset(change), offset(change.Add(-time.Second)), " ")
		}
		if !seen[changes] {
			seen[changes] = true
			zones = append(zones, zone)
		}
	}
	return zones
}

func changesOf(zone *time.Location, from, until time.Time) (changes []time.Time) {
	for at := from.In(zone); ; {
		_, at = at.ZoneBounds()
		if at.IsZero() || at.After(until) {
			return changes
		}
		at = at.In(zone)
		changes = append(changes, at)
	}
}

func TestTemporalFiresAtEveryPromisedMomentInAllZones(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	until := from.AddDate(2, 0, 0)
	crons := []string{"*/10 * * * *", "15,30 2 * * *", "*/15 1,2 * * *", "0,45 3 * * *", "0 * * * *", "29,31 * * * *",
		"30 0-3 * * sun", "59 23 * * *"}
	for hour := range 5 {
		for minute := 0; minute < 60; minute += 15 {
			crons = append(crons, fmt.Sprintf("%d %d * * *", minute, hour))
		}
	}
	for _, zone := range oddZones(t, from, until) {
		changes := changesOf(zone, from, until)
		for _, cron := range crons {
			c := read(t, Timetable{Cron: cron, Timezone: zone.String()})
			exceptions := c.Exceptions(from, until)
			for _, change := range changes {
				start, end := change.Add(-26*time.Hour), change.Add(26*time.Hour)
				fired := slices.DeleteFunc(slices.Clone(exceptions), func(at time.Time) bool {
					return !at.After(start) || at.After(end)
				})
				// Temporal looks from the moment of its last action on, whatever has caused that.
				for at := start; ; {
					next := temporalNext(c.rule, at, zone)
					i := slices.IndexFunc(exceptions, func(e time.Time) bool { return e.After(at) })
					if i >= 0 && (exceptions[i].Before(next) || next.IsZero()) {
						next = exceptions[i]
					}
					if next.IsZero() || next.After(end) {
						break
					}
					if !next.After(at) {
						t.Fatalf("%s in %s: Temporal does not get past %v", cron, zone, at)
					}
					fired, at = append(fired, next), next
				}
				taken := map[string]bool{}
				for _, moment := range fired {
					if first := FirstOfItsName(moment, zone); c.Has(first) {
						taken[LocalTime(moment, zone)] = true
					} else if !NearChange(moment, zone) {
						t.Errorf("%s in %s: Temporal fires at %v, which is near no change", cron, zone, moment)
					}
				}
				promised := c.Between(start, end)
				for _, moment := range promised {
					if !slices.ContainsFunc(fired, moment.Equal) {
						t.Errorf("%s in %s: nothing fires at %v, which is promised", cron, zone, moment.In(zone))
					}
					delete(taken, LocalTime(moment, zone))
				}
				if len(taken) > 0 {
					t.Errorf("%s in %s: runs at %v are taken and were not promised", cron, zone, taken)
				}
			}
		}
	}
}
