package store

import (
	"testing"
	"time"
)

// TestTheClockLearnsFromTheShortestWay holds what is made of a database's moment against the truth,
// after statements of which each took as long as it says before and after it read the clock.
func TestTheClockLearnsFromTheShortestWay(t *testing.T) {
	const ahead = -3 * time.Hour
	type statement struct{ before, after time.Duration }
	for name, test := range map[string]struct {
		statements []statement
		within     time.Duration
	}{
		"one statement":                     {[]statement{{time.Millisecond, time.Millisecond}}, time.Millisecond},
		"one that waited for a connection":  {[]statement{{time.Millisecond, time.Millisecond}, {300 * time.Millisecond, time.Millisecond}}, time.Millisecond + time.Millisecond},
		"one whose commit took long":        {[]statement{{time.Millisecond, time.Millisecond}, {time.Millisecond, 300 * time.Millisecond}}, time.Millisecond + time.Millisecond},
		"slow ones, each on its other side": {[]statement{{time.Millisecond, 200 * time.Millisecond}, {200 * time.Millisecond, time.Millisecond}}, time.Millisecond + time.Millisecond},
		"a long time after the last":        {[]statement{{time.Millisecond, time.Millisecond}, {time.Hour, time.Millisecond}}, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			var c clock
			now := time.Date(2026, 11, 29, 10, 30, 0, 0, time.UTC) // of the database
			for _, s := range test.statements {
				asked := now.Add(ahead)
				now = now.Add(s.before)
				read := now
				now = now.Add(s.after)
				c.learn(asked, read, now.Add(ahead))
			}
			slot := now.Add(time.Second)
			if off := c.here(slot).Sub(slot.Add(ahead)); off.Abs() > test.within {
				t.Errorf("a slot is met %v off, want at most %v", off, test.within)
			}
		})
	}
}

func TestTheClockFollowsOneThatWasSet(t *testing.T) {
	var c clock
	now := time.Date(2026, 11, 29, 10, 30, 0, 0, time.UTC)
	c.learn(now, now, now.Add(time.Millisecond))
	set := now.Add(-time.Hour) // the database's, an hour back
	c.learn(now, set, now.Add(time.Millisecond))
	if got := c.here(set); got.Sub(now).Abs() > time.Millisecond {
		t.Errorf("the database's %v is taken for %v, want about %v", set, got, now)
	}
}
