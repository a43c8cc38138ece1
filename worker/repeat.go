package worker

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/todoku/todoku/panics"
)

// stalledAfter is how long after its last round a loop counts as stalled, besides its own pause. Every statement and
// every call that a pass makes has a limit well below it.
const stalledAfter = 5 * time.Minute

var lastRound = promauto.NewGaugeVec(prometheus.GaugeOpts{
	Name: "todoku_loop_last_round_timestamp_seconds",
	Help: "When each loop of the worker last came round without an error (Unix time).",
}, []string{"loop"})

// rounds remembers when each loop last came round, whether or not it succeeded.
type rounds struct {
	mu sync.Mutex
	by map[string]time.Time // the moment from which on the loop counts as stalled
}

var loops = &rounds{by: map[string]time.Time{}}

func (r *rounds) came(loop string, pause time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by[loop] = time.Now().Add(pause + stalledAfter)
}

func (r *rounds) ended(loop string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.by, loop)
}

// stalled names the loops that have not come round.
func (r *rounds) stalled() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for name, until := range r.by {
		if time.Now().After(until) {
			names = append(names, "loop "+name)
		}
	}
	slices.Sort(names)
	return names
}

// repeat does one thing again and again, with a pause after each time, until ctx ends. A failure is logged once, with
// what it means, and not again before a success. A panic is a failure like others: the loop goes on.
func repeat(ctx context.Context, log *slog.Logger, loop string, pause time.Duration, meaning string, do func(context.Context) error) {
	defer loops.ended(loop)
	failing := false
	for {
		loops.came(loop, pause)
		err := panics.Catch(func() error { return do(ctx) })
		if err == nil {
			lastRound.WithLabelValues(loop).SetToCurrentTime()
		}
		if err != nil && ctx.Err() == nil && !failing {
			log.Warn(meaning, "error", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
