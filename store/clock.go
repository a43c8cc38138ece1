package store

import (
	"sync"
	"time"
)

// clock tells by how much the clock of this process is ahead of the database's. Slots are reserved by
// the database's clock, and kept by all workers together, each by its own. What a statement says of
// the database's time is as old as its answer was long under way, so the shortest way counts. Its
// zero value has learnt nothing.
type clock struct {
	mu          sync.Mutex
	least, most time.Duration // by so much this process is ahead, at least and at most
	learnt      time.Time
}

// drift is how fast two clocks may part: a millisecond a second, far more than those of machines do.
const drift = 1e-3

// learn takes in that the database's clock said now at some moment between asked and answered.
func (c *clock) learn(asked, now, answered time.Time) {
	least, most := asked.Sub(now), answered.Sub(now)
	c.mu.Lock()
	defer c.mu.Unlock()
	parted := time.Duration(drift * float64(answered.Sub(c.learnt)))
	first := c.learnt.IsZero()
	c.least, c.most, c.learnt = max(least, c.least-parted), min(most, c.most+parted), answered
	if first || c.least > c.most { // one of the two was set meanwhile
		c.least, c.most = least, most
	}
}

// here translates a moment of the database's clock into one of this process's.
func (c *clock) here(moment time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return moment.Add((c.least + c.most) / 2)
}
