package clock

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
			var c Offset
			now := time.Date(2026, 11, 29, 10, 30, 0, 0, time.UTC) // of the database
			for _, s := range test.statements {
				asked := now.Add(ahead)
				now = now.Add(s.before)
				read := now
				now = now.Add(s.after)
				c.Learn(asked, read, 0, now.Add(ahead))
			}
			slot := now.Add(time.Second)
			if off := c.Here(slot).Sub(slot.Add(ahead)); off.Abs() > test.within {
				t.Errorf("a slot is met %v off, want at most %v", off, test.within)
			}
		})
	}
}

func TestTheClockFollowsOneThatWasSet(t *testing.T) {
	var c Offset
	now := time.Date(2026, 11, 29, 10, 30, 0, 0, time.UTC)
	c.Learn(now, now, 0, now.Add(time.Millisecond))
	set := now.Add(-time.Hour) // the database's, an hour back
	c.Learn(now, set, 0, now.Add(time.Millisecond))
	if got := c.Here(set); got.Sub(now).Abs() > time.Millisecond {
		t.Errorf("the database's %v is taken for %v, want about %v", set, got, now)
	}
}

func TestAClockOfWholeSecondsIsLearntFromManyAnswers(t *testing.T) {
	const ahead = 10 * time.Second
	var c Offset
	now := time.Date(2026, 11, 29, 10, 30, 0, 0, time.UTC) // of the other clock
	for range 40 {
		now = now.Add(330 * time.Millisecond)
		asked := now.Add(ahead)
		c.Learn(asked, now.Truncate(time.Second), time.Second, asked.Add(10*time.Millisecond))
	}
	if off := c.There(now.Add(ahead)).Sub(now); off.Abs() > 200*time.Millisecond {
		t.Errorf("a moment is translated %v off", off)
	}
}

func TestAMeasurementIsStaleWhenItIsOldOrTheClockWasSet(t *testing.T) {
	t.Parallel()
	var c Offset
	if c.Fresh(time.Hour) || c.Known() {
		t.Error("nothing was learnt, and it counts as known")
	}
	now := time.Now()
	c.Learn(now, now, 0, now)
	if !c.Fresh(time.Hour) || c.Fresh(0) || !c.Known() {
		t.Error("what was just learnt counts as stale, or is fresh for ever")
	}
	c = Offset{}
	c.Learn(now, now, 0, now.Round(0).Add(-time.Minute)) // a minute by the wall clock alone
	if c.Fresh(time.Second) {
		t.Error("a clock that was set counts as fresh")
	}
}
