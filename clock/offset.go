// Package clock compares the clocks that the product depends on: those of its processes, the database, Twilio and
// Temporal. What is stored is dated by the database; moments of other clocks are translated before they are compared.
package clock

import (
	"sync"
	"time"
)

// Clocks other than that of this process.
const (
	Database = "database"
	Twilio   = "twilio"
	Temporal = "temporal"
)

// Offset tells by how much the clock of this process is ahead of another one. What an answer says of the other
// clock is as old as the answer was long under way, so the shortest way counts. The zero value has learnt nothing,
// and takes the clocks for equal.
type Offset struct {
	Of string // the other clock; it names the metric, and an empty one has none

	mu          sync.Mutex
	least, most time.Duration // by so much this process is ahead, at least and at most
	learnt      time.Time
	told        time.Time // when the metric was last set
}

// drift is how fast two clocks may part: a millisecond a second, far more than those of machines do.
const drift = 1e-3

// tellEvery is how often the metric follows what is learnt.
const tellEvery = time.Second

// Learn takes in that the other clock read a moment from now on, and less than resolution after it, at some time
// between asked and answered.
func (o *Offset) Learn(asked, now time.Time, resolution time.Duration, answered time.Time) {
	least, most := asked.Sub(now)-resolution, answered.Sub(now)
	o.mu.Lock()
	parted := time.Duration(drift * float64(answered.Sub(o.learnt)))
	first := o.learnt.IsZero()
	o.least, o.most, o.learnt = max(least, o.least-parted), min(most, o.most+parted), answered
	if first || o.least > o.most { // one of the two was set meanwhile
		o.least, o.most = least, most
	}
	ahead, tell := (o.least+o.most)/2, o.Of != "" && answered.Sub(o.told).Abs() >= tellEvery
	if tell {
		o.told = answered
	}
	o.mu.Unlock()
	if tell {
		publish(o.Of, -ahead)
	}
}

// Ahead is by how much this process is ahead of the other clock.
func (o *Offset) Ahead() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return (o.least + o.most) / 2
}

// Here translates a moment of the other clock into one of this process's.
func (o *Offset) Here(moment time.Time) time.Time { return moment.Add(o.Ahead()) }

// There translates a moment of this process's clock into one of the other clock.
func (o *Offset) There(moment time.Time) time.Time { return moment.Add(-o.Ahead()) }

// Known reports whether anything was learnt.
func (o *Offset) Known() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.learnt.IsZero()
}

// stepped is by how much wall and monotonic clock may differ before the wall clock counts as set.
const stepped = 50 * time.Millisecond

// Fresh reports whether something was learnt within age, and the clock of this process was not set since.
func (o *Offset) Fresh(age time.Duration) bool {
	o.mu.Lock()
	learnt := o.learnt
	o.mu.Unlock()
	now := time.Now()
	passed, shown := now.Sub(learnt), now.Round(0).Sub(learnt.Round(0))
	return !learnt.IsZero() && passed < age && (passed-shown).Abs() < stepped
}
