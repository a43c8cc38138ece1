package main

import (
	"context"
	"fmt"
	"time"

	"github.com/todoku/todoku/bench/rig"
)

// patience is how long nothing may settle before a run counts as failed.
const patience = time.Minute

// singlesBesidePeer has the bare loop, the peer and ourselves send singles.
func (s sizes) singlesBesidePeer(ctx context.Context, r *rig.Rig, p *peer, report *Report) error {
	if s.rounds == 0 || s.singles == 0 {
		return nil
	}
	if err := r.Simulator.Reset(ctx); err != nil {
		return err
	}
	if _, _, err := s.sendSingles(ctx, r, "warm-up of rounds", min(s.singles, 100)); err != nil {
		return err
	}
	var accepts rates
	var used usage
	lost := 0
	contest := []contestant{s.bareContestant(r, s.singles)}
	if p != nil {
		contest = append(contest, p.contestant(s.singles, peerEach, &lost))
	}
	round := 0
	contest = append(contest, contestant{ours, func(ctx context.Context) (float64, error) {
		round++
		defer used.since(r, r.CPU())
		accepted, settled, err := s.sendSingles(ctx, r, fmt.Sprint("round-", round), s.singles)
		accepts = append(accepts, accepted)
		return settled, err
	}})
	took, err := s.inRounds(ctx, r, "singles", contest)
	if err != nil {
		return err
	}
	report.add(besidePeers(figure{what: fmt.Sprintf("%d singles: POST accepted, sent and settled by webhook", s.singles)}, took, 1))
	report.add(figure{what: "of these: POST answered 202, durable", measured: accepts.String()})
	report.add(used.figure(s.rounds * s.singles))
	report.tellLost("singles", lost, s.rounds*s.singles)
	return nil
}

// sendSingles sends n singles under a reference and waits until all are SUCCESS. It returns how many
// a second were accepted, and how many accepted, sent and settled.
func (s sizes) sendSingles(ctx context.Context, r *rig.Rig, reference string, n int) (accepted, settled float64, err error) {
	requests := make([]rig.Request, n)
	for i := range requests {
		requests[i] = rig.Request{Channel: "SMS", To: rig.Number(i), Body: text, Reference: reference, IdempotencyKey: fmt.Sprint(reference, "-", i)}
	}
	began := time.Now()
	answers, err := r.API.SendAll(ctx, s.connections, requests)
	if err != nil {
		return 0, 0, err
	}
	accepting := time.Since(began)
	left, err := r.Ledger.AwaitSettled(ctx, reference, patience)
	settling := time.Since(began)
	if err != nil {
		return 0, 0, err
	}
	if left > 0 || len(answers) != n {
		return 0, 0, fmt.Errorf("%d of %d singles were accepted, and %d did not settle", len(answers), n, left)
	}
	return float64(n) / accepting.Seconds(), float64(n) / settling.Seconds(), arrived(ctx, r, n)
}
