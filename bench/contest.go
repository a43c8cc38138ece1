package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/todoku/todoku/bench/rig"
)

// contestant is one way to do the work.
type contestant struct {
	name string
	run  func(context.Context) (perSecond float64, err error)
}

// The names of contestants.
const (
	bare      = "bare loop"
	peersJobs = "peer"
	peersLoop = "peer's bulk job"
	ours      = "ours"
)

// inRounds has the contestants do the same work in turn, so that what else the machine does hits all
// alike. Each begins with a carrier that remembers nothing.
func (s sizes) inRounds(ctx context.Context, r *rig.Rig, work string, contest []contestant) (map[string]rates, error) {
	took := map[string]rates{}
	for round := range s.rounds {
		var said []string
		for _, c := range contest {
			if err := r.Simulator.Reset(ctx); err != nil {
				return nil, err
			}
			rate, err := c.run(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", work, c.name, err)
			}
			took[c.name] = append(took[c.name], rate)
			said = append(said, fmt.Sprintf("%s %.0f", c.name, rate))
		}
		say("%s, round %d of %d: %s a second", work, round+1, s.rounds, strings.Join(said, ", "))
	}
	return took, nil
}

func (s sizes) bareContestant(r *rig.Rig, n int) contestant {
	return contestant{bare, func(ctx context.Context) (float64, error) { return bareLoop(ctx, r, n, s.connections) }}
}

// contestant has the peer send n messages, and adds to lost what of them never settled.
func (p *peer) contestant(n int, mode peerMode, lost *int) contestant {
	name := peersJobs
	if mode == peerBulk {
		name = peersLoop
	}
	return contestant{name, func(ctx context.Context) (float64, error) {
		run, err := p.send(ctx, n, mode)
		*lost += n - run.Count
		return float64(run.Count) / run.Settled, err
	}}
}

// besidePeers fills in how fast we were and how fast the others, of whom the faster peer counts: we must
// be more than so many times as fast.
func besidePeers(f figure, took map[string]rates, times float64) figure {
	f.measured, f.beside = took[ours].String(), "no peer"
	best := max(took[peersJobs].median(), took[peersLoop].median())
	if best > 0 {
		f.must = "more than the peer"
		if times > 1 {
			f.must = fmt.Sprintf("at least %g × the peer", times)
		}
		f.measured += fmt.Sprintf(", %.2f × the peer", took[ours].median()/best)
		f.holds = took[ours].median() > times*best
		f.beside = "peer " + took[peersJobs].String()
	}
	if loop := took[peersLoop]; len(loop) > 0 {
		f.beside += ", as one job that loops " + loop.String()
	}
	f.beside += ", bare loop " + took[bare].String()
	return f
}

// tellLost says what of the peer's notifications never settled.
func (r *Report) tellLost(work string, lost, of int) {
	if lost > 0 {
		r.details = append(r.details, fmt.Sprintf(
			"Of the peer's %d notifications in the rounds of %s %d never settled: their status came before their row was there.", of, work, lost))
	}
}

// usage is how much processor time the parts of the product have used in several rounds.
type usage map[rig.Part]time.Duration

// since adds what was used since before.
func (u *usage) since(r *rig.Rig, before map[rig.Part]time.Duration) {
	if *u == nil {
		*u = usage{}
	}
	for part, used := range r.CPU() {
		(*u)[part] += used - before[part]
	}
}

// figure tells how much of the processors one of n took, by part.
func (u usage) figure(n int) figure {
	f := figure{what: "of these: processor time of one", measured: "not measured"}
	if len(u) == 0 {
		return f
	}
	var total time.Duration
	var each []string
	for _, part := range rig.Parts {
		total += u[part]
		each = append(each, fmt.Sprintf("%s %.2f", part, milliseconds(u[part])/float64(n)))
	}
	f.measured = fmt.Sprintf("%.2f ms (%s)", milliseconds(total)/float64(n), strings.Join(each, ", "))
	return f
}
