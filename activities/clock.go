package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/todoku/todoku/clock"
	"github.com/todoku/todoku/store"
)

// temporalClock is Temporal's, as its tasks tell it. A process works for one Temporal.
var temporalClock = clock.Offset{Of: clock.Temporal}

// taskDelay is how long after Temporal has dated a task the activity begins, at most. A worker that is slower
// measures Temporal's clock as that much too far behind.
const taskDelay = time.Second

// learnTemporalClock takes in when Temporal started the activity.
func learnTemporalClock(ctx context.Context) {
	now := time.Now()
	temporalClock.Learn(now.Add(-taskDelay), activity.GetInfo(ctx).StartedTime, 0, now)
}

// longestTemporalBehind is how far Temporal's clock may be behind before what it starts counts as late.
const longestTemporalBehind = time.Minute

// TemporalBehind is how far Temporal's clock is behind the database's, up to a minute; 0 when it is ahead, about right
// or not known.
func TemporalBehind(ctx context.Context, s *store.Store) time.Duration {
	if !temporalClock.Known() {
		return 0
	}
	behind := s.Now(ctx).Sub(temporalClock.There(time.Now()))
	if behind < clock.Large {
		return 0
	}
	return min(behind, longestTemporalBehind)
}
