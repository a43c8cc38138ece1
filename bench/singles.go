package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/todoku/todoku/bench/rig"
)

// patience is how long nothing may settle before a run counts as failed.
const patience = time.Minute

// singlesBesidePeer runs rounds of the bare loop, the peer and ourselves in turn, so that what else
// the machine does hits all three alike.
func (s sizes) singlesBesidePeer(ctx context.Context, r *rig.Rig, report *Report) error {
	if s.rounds == 0 {
		return nil
	}
	var p *peer
	if s.peer {
		var err error
		if p, err = startPeer(ctx, r); err != nil {
			return err
		}
		defer func() {
			if p != nil {
				p.stop()
			}
		}()
	}
	if err := r.Simulator.Reset(ctx); err != nil {
		return err
	}
	if _, _, err := s.sendSingles(ctx, r, "warm-up of rounds", min(s.singles, 100)); err != nil {
		return err
	}
	var bare, peers, accepts, settles rates
	cpu := map[rig.Part]time.Duration{}
	lost := 0
	for round := range s.rounds {
		if err := r.Simulator.Reset(ctx); err != nil {
			return err
		}
		rate, err := bareLoop(ctx, r, s.singles, s.connections)
		if err != nil {
			return err
		}
		bare = append(bare, rate)
		if p != nil {
			if err := r.Simulator.Reset(ctx); err != nil {
				return err
			}
			run, err := p.send(ctx, s.singles)
			if err != nil {
				return err
			}
			peers = append(peers, float64(run.Count)/run.Settled)
			lost += s.singles - run.Count
		}
		if err := r.Simulator.Reset(ctx); err != nil {
			return err
		}
		before := r.CPU()
		accepted, settled, err := s.sendSingles(ctx, r, fmt.Sprint("round-", round), s.singles)
		if err != nil {
			return err
		}
		for part, used := range r.CPU() {
			cpu[part] += used - before[part]
		}
		accepts, settles = append(accepts, accepted), append(settles, settled)
		say("round %d of %d: bare loop %.0f, peer %.0f, ours %.0f a second", round+1, s.rounds, rate, peers.last(), settled)
	}
	single := figure{
		what: fmt.Sprintf("%d singles: POST accepted, sent and settled by webhook", s.singles), must: "more than the peer",
		measured: settles.String(), beside: "no peer", holds: settles.median() > peers.median(),
	}
	if p == nil {
		single.must = ""
	} else {
		single.measured += fmt.Sprintf(", %.2f × the peer", settles.median()/peers.median())
		single.beside = "peer " + peers.String()
		if lost > 0 {
			report.details = append(report.details, fmt.Sprintf(
				"Of the peer's %d notifications %d never settled: their status came before their row was there.", s.rounds*s.singles, lost))
		}
	}
	single.beside += ", bare loop " + bare.String()
	report.add(single)
	report.add(figure{what: "of these: POST answered 202, durable", measured: accepts.String()})
	if len(cpu) > 0 {
		report.add(figure{what: "of these: processor time of one", measured: shares(cpu, s.rounds*s.singles)})
	}
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

// shares tells how much of the processors one of n took, by part.
func shares(cpu map[rig.Part]time.Duration, n int) string {
	var total time.Duration
	var each []string
	for _, part := range rig.Parts {
		total += cpu[part]
		each = append(each, fmt.Sprintf("%s %.2f", part, milliseconds(cpu[part])/float64(n)))
	}
	return fmt.Sprintf("%.2f ms (%s)", milliseconds(total)/float64(n), strings.Join(each, ", "))
}
