package chaos

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/todoku/todoku/bench/rig"
)

// TestOutages streams singles through an outage of the carrier, of Temporal and of Postgres, one
// after the other: the API goes on accepting without the first two and says 503 without the last.
func TestOutages(t *testing.T) {
	n, carrier, temporal, postgres := 150, 5*time.Second, 5*time.Second, 4*time.Second
	if *long {
		n, carrier, temporal, postgres = 1000, 30*time.Second, 30*time.Second, 20*time.Second
	}
	const between = 2 * time.Second
	r := start(t, nil)

	var accepted []rig.Accepted
	var streaming sync.WaitGroup
	streaming.Go(func() { accepted = stream(t, r, n, carrier+temporal+postgres+4*between) })
	probes := outages{t: t, r: r, next: n}
	time.Sleep(between)
	probes.during("the carrier hangs", carrier, with(r.Freeze, rig.PartSimulator), isAccepted)
	time.Sleep(between)
	probes.during("Temporal is down", temporal, with(r.KeepDown, rig.PartTemporal), isAccepted)
	time.Sleep(between)
	probes.during("Postgres is down", postgres, with(r.KeepDown, rig.PartPostgres), isUnavailable)
	streaming.Wait()
	for _, request := range probes.refused { // as the answer told
		accepted = append(accepted, accept(t, r, request)...)
	}
	audit(t, r, append(accepted, probes.accepted...))
}

// with breaks a part of the rig.
func with(broken func(context.Context, rig.Part), part rig.Part) func(context.Context) {
	return func(ctx context.Context) { broken(ctx, part) }
}

// outages sends a probe twice a second during each outage.
type outages struct {
	t        *testing.T
	r        *rig.Rig
	next     int
	accepted []rig.Accepted
	refused  []rig.Request
}

func (o *outages) during(what string, length time.Duration, broken func(context.Context), fits func(error) bool) {
	ctx, mend := context.WithTimeout(o.t.Context(), length)
	defer mend()
	var breaking sync.WaitGroup
	breaking.Go(func() { broken(ctx) })
	defer breaking.Wait()
	o.t.Logf("%s for %v", what, length)
	time.Sleep(500 * time.Millisecond)
	sent, slowest := 0, time.Duration(0)
	for ; ctx.Err() == nil; time.Sleep(500 * time.Millisecond) {
		request := single(o.next)
		o.next++
		accepted, err := o.r.API.Post(o.t.Context(), request)
		took := time.Since(accepted.BeganAt)
		if err == nil {
			o.accepted = append(o.accepted, accepted)
		} else {
			o.refused = append(o.refused, request)
		}
		if ctx.Err() != nil {
			break // it may be over already
		}
		sent, slowest = sent+1, max(slowest, took)
		if !fits(err) {
			o.t.Errorf("while %s, the API answered a probe so: %v", what, err)
		}
	}
	o.t.Logf("while %s: %d probes, the slowest answered within %v", what, sent, slowest.Round(time.Millisecond))
}

func isAccepted(err error) bool { return err == nil }

// isUnavailable wants the problem that tells a client when to try again.
func isUnavailable(err error) bool {
	refusal, answered := errors.AsType[*rig.Refusal](err)
	return answered && refusal.Status == http.StatusServiceUnavailable && refusal.RetryAfter > 0
}
