package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/todoku/todoku/bench/rig"
)

const (
	latencyP50 = 80 * time.Millisecond
	latencyP99 = 250 * time.Millisecond

	mostEvents      = 16
	mostTransitions = 10
)

// surgePasses is longer than what comes after a surge is still carried as a part of it.
const surgePasses = 3 * time.Second

// singleLatency lets singles trickle in, five a second, and measures how long each takes from the
// start of its API call to the arrival of its create at the carrier, and what it cost in Temporal.
func (s sizes) singleLatency(ctx context.Context, r *rig.Rig, report *Report) error {
	if s.latency == 0 {
		return nil
	}
	const reference = "trickle"
	if _, _, err := s.sendSingles(ctx, r, "warm-up", 20); err != nil {
		return err
	}
	time.Sleep(surgePasses)
	if err := r.Simulator.Reset(ctx); err != nil {
		return err
	}
	var mu sync.Mutex
	var all []rig.Accepted
	var failed error
	var sending sync.WaitGroup
	began := time.Now()
	for i := range int(5 * s.latency.Seconds()) {
		time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / 5)))
		sending.Go(func() {
			accepted, err := r.API.Send(ctx, rig.Request{Channel: "SMS", To: rig.Number(i), Body: text, Reference: reference})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = err
			}
			all = append(all, accepted)
		})
	}
	sending.Wait()
	if failed != nil {
		return failed
	}
	if left, err := r.Ledger.AwaitSettled(ctx, reference, patience); err != nil || left > 0 {
		return fmt.Errorf("%d singles did not settle: %w", left, err)
	}
	creates, err := r.Simulator.ByNumber(ctx)
	if err != nil {
		return err
	}
	var took []time.Duration
	for _, accepted := range all {
		for _, create := range creates[accepted.To] {
			took = append(took, create.CreatedAt.Sub(accepted.BeganAt))
		}
	}
	slices.Sort(took)
	p50, p99 := quantile(took, 0.50), quantile(took, 0.99)
	report.add(figure{
		what: "a single at 5 a second: API call to create at the carrier", must: fmt.Sprintf("p50 %v, p99 %v", latencyP50, latencyP99),
		measured: fmt.Sprintf("p50 %s, p99 %s (%d singles)", inMS(p50), inMS(p99), len(took)),
		beside:   "answer to the call: p50 " + inMS(answered(all)),
		holds:    len(took) == len(all) && p50 <= latencyP50 && p99 <= latencyP99,
	})
	if open, err := r.Temporal.AwaitClosed(ctx, patience); err != nil || len(open) > 0 {
		return fmt.Errorf("%d workflows did not end: %w", len(open), err)
	}
	return happyCost(ctx, r, all, report)
}

func answered(all []rig.Accepted) time.Duration {
	var took []time.Duration
	for _, accepted := range all {
		took = append(took, accepted.Took)
	}
	slices.Sort(took)
	return quantile(took, 0.50)
}

// happyCost reads what the singles' workflows have written.
func happyCost(ctx context.Context, r *rig.Rig, all []rig.Accepted, report *Report) error {
	costs := map[rig.Cost]int{}
	var most rig.Cost
	for _, accepted := range all {
		cost, err := r.Temporal.Cost(ctx, "notification/"+accepted.ID.String())
		if err != nil {
			return err
		}
		costs[cost]++
		most.Events, most.Transitions = max(most.Events, cost.Events), max(most.Transitions, cost.Transitions)
	}
	var kinds []string
	for cost, n := range costs {
		kinds = append(kinds, fmt.Sprintf("%d with %d and %d", n, cost.Events, cost.Transitions))
	}
	slices.Sort(kinds)
	report.add(figure{
		what: "a happy single in Temporal: history events and state transitions", must: fmt.Sprintf("at most %d and %d", mostEvents, mostTransitions),
		measured: fmt.Sprintf("at most %d and %d (%s)", most.Events, most.Transitions, strings.Join(kinds, ", ")),
		holds:    most.Events <= mostEvents && most.Transitions <= mostTransitions,
	})
	return nil
}

// inMS shows a duration in whole milliseconds.
func inMS(d time.Duration) string { return fmt.Sprintf("%.0f ms", milliseconds(d)) }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
