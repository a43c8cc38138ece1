package notify

import (
	"testing"
	"time"
	_ "time/tzdata"
)

func TestTimesOfDay(t *testing.T) {
	for text, want := range map[string]string{
		"10:30": "10:30:00", "10:30:00": "10:30:00", "00:00": "00:00:00", "23:59:59": "23:59:59",
		"25:00": "", "24:00": "", "10:30:61": "", "10:60": "", "9:30": "", "10": "", "": "", "10:30:00.5": "", "10:30 PM": "", "１０:３０": "", "-1:00": "",
	} {
		at, err := ParseTimeOfDay(text)
		if err != nil && want != "" || err == nil && at.String() != want {
			t.Errorf("%q is read as %v, error %v", text, at, err)
		}
	}
}

func TestZonesAreThoseOfTheDatabase(t *testing.T) {
	for _, name := range []string{"Asia/Tokyo", "UTC", "America/Argentina/Buenos_Aires"} {
		if _, err := LoadZone(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "Local", "Mars/Olympus", "JST", "../etc/passwd", "Asia/Tokyo ", "+09:00",
		// Files that a machine may have beside the zones.
		"localtime", "posixrules", "Factory", "right/Asia/Tokyo", "posix/Asia/Tokyo", "Asia//Tokyo", "Asia/./Tokyo", "Asia/Tokyo/", "./UTC"} {
		if _, err := LoadZone(name); err == nil {
			t.Errorf("%q is a zone", name)
		}
	}
}

// The transitions are those of the IANA database: a time that is left out becomes the moment of the
// change, and one that comes twice is taken the first time.
func TestFirstMoment(t *testing.T) {
	for _, test := range []struct{ zone, local, want, utc string }{
		{"Asia/Tokyo", "2027-03-14T02:30:00", "2027-03-14T02:30:00+09:00", "2027-03-13T17:30:00Z"},
		{"UTC", "2027-03-14T02:30:00", "2027-03-14T02:30:00Z", "2027-03-14T02:30:00Z"},
		{"America/New_York", "2027-03-14T01:59:59", "2027-03-14T01:59:59-05:00", "2027-03-14T06:59:59Z"},
		{"America/New_York", "2027-03-14T02:00:00", "2027-03-14T03:00:00-04:00", "2027-03-14T07:00:00Z"},
		{"America/New_York", "2027-03-14T02:30:00", "2027-03-14T03:00:00-04:00", "2027-03-14T07:00:00Z"},
		{"America/New_York", "2027-03-14T03:00:00", "2027-03-14T03:00:00-04:00", "2027-03-14T07:00:00Z"},
		{"America/New_York", "2027-11-07T00:59:59", "2027-11-07T00:59:59-04:00", "2027-11-07T04:59:59Z"},
		{"America/New_York", "2027-11-07T01:00:00", "2027-11-07T01:00:00-04:00", "2027-11-07T05:00:00Z"},
		{"America/New_York", "2027-11-07T01:30:00", "2027-11-07T01:30:00-04:00", "2027-11-07T05:30:00Z"},
		{"America/New_York", "2027-11-07T02:00:00", "2027-11-07T02:00:00-05:00", "2027-11-07T07:00:00Z"},
		{"Europe/London", "2027-03-28T01:30:00", "2027-03-28T02:00:00+01:00", "2027-03-28T01:00:00Z"},
		{"Europe/London", "2027-10-31T01:30:00", "2027-10-31T01:30:00+01:00", "2027-10-31T00:30:00Z"},
		// Half an hour.
		{"Australia/Lord_Howe", "2027-10-03T02:15:00", "2027-10-03T02:30:00+11:00", "2027-10-02T15:30:00Z"},
		{"Australia/Lord_Howe", "2027-04-04T01:45:00", "2027-04-04T01:45:00+11:00", "2027-04-03T14:45:00Z"},
		// At midnight.
		{"America/Santiago", "2027-09-05T00:00:00", "2027-09-05T01:00:00-03:00", "2027-09-05T04:00:00Z"},
		{"America/Santiago", "2027-04-03T23:30:00", "2027-04-03T23:30:00-03:00", "2027-04-04T02:30:00Z"},
		{"Asia/Beirut", "2027-03-28T00:00:00", "2027-03-28T01:00:00+03:00", "2027-03-27T22:00:00Z"},
		{"Asia/Beirut", "2027-10-30T23:30:00", "2027-10-30T23:30:00+03:00", "2027-10-30T20:30:00Z"},
		{"Africa/Cairo", "2027-04-30T00:30:00", "2027-04-30T01:00:00+03:00", "2027-04-29T22:00:00Z"},
		{"Africa/Cairo", "2027-10-28T23:30:00", "2027-10-28T23:30:00+03:00", "2027-10-28T20:30:00Z"},
		// A whole day that never was.
		{"Pacific/Apia", "2011-12-30T10:30:00", "2011-12-31T00:00:00+14:00", "2011-12-30T10:00:00Z"},
	} {
		t.Run(test.zone+" "+test.local, func(t *testing.T) {
			zone, err := LoadZone(test.zone)
			if err != nil {
				t.Fatal(err)
			}
			local, err := time.Parse("2006-01-02T15:04:05", test.local)
			if err != nil {
				t.Fatal(err)
			}
			got := FirstMoment(local.Year(), local.Month(), local.Day(), TimeOfDay{local.Hour(), local.Minute(), local.Second()}, zone)
			if got.In(zone).Format(time.RFC3339) != test.want || got.UTC().Format(time.RFC3339) != test.utc {
				t.Errorf("it is %s, want %s", got.In(zone).Format(time.RFC3339), test.want)
			}
		})
	}
}

// It is compared with a search through the hours around each change of the clocks in several zones.
func TestFirstMomentIsTheFirstOneThatTheClocksShow(t *testing.T) {
	for _, name := range []string{"America/New_York", "Europe/London", "Australia/Lord_Howe", "America/Santiago", "Asia/Beirut", "Africa/Cairo", "Africa/Casablanca", "America/Havana", "Asia/Tokyo"} {
		zone, err := LoadZone(name)
		if err != nil {
			t.Fatal(err)
		}
		for change := time.Date(2027, 1, 1, 0, 0, 0, 0, zone); ; {
			if _, change = change.ZoneBounds(); change.IsZero() || change.Year() > 2028 {
				break
			}
			first := map[time.Time]time.Time{} // by what the clocks show, as if it were in UTC
			for moment := change.Add(-8 * time.Hour); moment.Before(change.Add(8 * time.Hour)); moment = moment.Add(5 * time.Minute) {
				if shown := wallClock(moment.In(zone)); first[shown].IsZero() {
					first[shown] = moment
				}
			}
			before := wallClock(change.Add(-6 * time.Hour).In(zone))
			for shown := before; shown.Before(before.Add(11 * time.Hour)); shown = shown.Add(5 * time.Minute) {
				want, ok := first[shown]
				if !ok {
					want = change
				}
				got := FirstMoment(shown.Year(), shown.Month(), shown.Day(), TimeOfDay{shown.Hour(), shown.Minute(), 0}, zone)
				if !got.Equal(want) {
					t.Errorf("%s: the clocks first show %v at %v, not at %v", name, shown.Format(time.DateTime), want.In(zone), got.In(zone))
				}
			}
		}
	}
}
