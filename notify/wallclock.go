package notify

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"
)

// TimeOfDay is what a clock on the wall shows, in 24 hours.
type TimeOfDay struct{ Hour, Minute, Second int }

// ParseTimeOfDay reads 10:30:00 or 10:30.
func ParseTimeOfDay(text string) (TimeOfDay, error) {
	for _, layout := range []string{"15:04:05", "15:04"} {
		if at, err := time.Parse(layout, text); err == nil && len(text) == len(layout) {
			return TimeOfDay{at.Hour(), at.Minute(), at.Second()}, nil
		}
	}
	return TimeOfDay{}, errors.New("it is no time of a day: write it as in 09:30 or 09:30:00, from 00:00:00 to 23:59:59")
}

func (t TimeOfDay) String() string { return fmt.Sprintf("%02d:%02d:%02d", t.Hour, t.Minute, t.Second) }

// LoadZone finds a zone of the IANA database, such as Asia/Tokyo.
func LoadZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || !namesZone(name) {
		return nil, errors.New("it is no zone of the IANA database: write one such as Asia/Tokyo or UTC")
	}
	return zone, nil
}

// namesZone reports whether a name that can be loaded is that of a zone, everywhere. Go opens files
// below the machine's copy of the database, which has more than zones: what the machine itself is set
// to, and each zone with and without leap seconds. Another machine, such as Temporal's, may lack them.
func namesZone(name string) bool {
	switch top, _, _ := strings.Cut(name, "/"); top {
	case "", "Local", "localtime", "posixrules", "Factory", "posix", "right":
		return false
	}
	return path.Clean(name) == name // else Asia//Tokyo is another name of Asia/Tokyo
}

// FirstMoment is when the clocks of a zone first show a time of a day. A time that they show twice,
// because they are put back, is taken the first time. A time that they leave out, because they are
// put forward, becomes the first moment after it: that of the change.
func FirstMoment(year int, month time.Month, day int, at TimeOfDay, zone *time.Location) time.Time {
	// Where there is no such time, or two of them, Go takes one side of the change and does not say which.
	guess := time.Date(year, month, day, at.Hour, at.Minute, at.Second, 0, zone)
	wall := time.Date(year, month, day, at.Hour, at.Minute, at.Second, 0, time.UTC)
	start, end := guess.ZoneBounds()
	offsets := []int{offset(guess)}
	if !start.IsZero() {
		offsets = append(offsets, offset(start.Add(-time.Second)))
	}
	if !end.IsZero() {
		offsets = append(offsets, offset(end))
	}
	var first time.Time
	for _, seconds := range offsets {
		moment := wall.Add(-time.Duration(seconds) * time.Second).In(zone)
		if offset(moment) == seconds && (first.IsZero() || moment.Before(first)) {
			first = moment
		}
	}
	switch {
	case !first.IsZero():
		return first
	case wallClock(guess).After(wall): // it lies behind the change
		return start
	}
	return end
}

func offset(t time.Time) (seconds int) {
	_, seconds = t.Zone()
	return seconds
}

// wallClock is what the clocks show at a moment, written as if they were in UTC.
func wallClock(t time.Time) time.Time {
	return t.Add(time.Duration(offset(t)) * time.Second).UTC()
}

// FirstOfItsName is the first moment at which the clocks of a zone show what they show at the moment.
func FirstOfItsName(moment time.Time, zone *time.Location) time.Time {
	local := moment.In(zone)
	year, month, day := local.Date()
	return FirstMoment(year, month, day, TimeOfDay{local.Hour(), local.Minute(), local.Second()}, zone)
}

// LocalTime is what the clocks of a zone show at a moment: 2027-03-14T03:00:00. It names a run of a
// schedule, so that a time which comes twice has one name.
func LocalTime(t time.Time, zone *time.Location) string {
	return t.In(zone).Format("2006-01-02T15:04:05")
}
