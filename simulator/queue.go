package simulator

import "time"

// queue is where messages, or calls, of one sender wait until Twilio sends them.
type queue struct {
	account, sender string
	call            bool
}

// untilDrained is how long the record still waits in its sender's queue; 0 when it does not. Each record takes the
// next free moment once. The world is locked.
func (w *world) untilDrained(r *record) time.Duration {
	perSecond := r.behaviour.DrainPerSecond
	if perSecond <= 0 || r.drains || !leavesQueue(r.steps[0]) {
		return 0
	}
	_, isCall := r.kind.(*phoneCall)
	q := queue{r.account, r.sender, isCall}
	now := time.Now()
	at := w.drained[q]
	if at.Before(now) {
		at = now
	}
	w.drained[q] = at.Add(time.Duration(float64(time.Second) / perSecond))
	r.drains = true
	return at.Sub(now)
}

// leavesQueue reports whether a record leaves its sender's queue by the step.
func leavesQueue(s step) bool {
	switch s {
	case stepSent, stepFailed, callInitiated:
		return true
	}
	return false
}
