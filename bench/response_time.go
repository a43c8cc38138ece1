package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/todoku/todoku/bench/rig"
	"github.com/todoku/todoku/simulator"
)

// connectionsToCarrier is how many requests we, and the peer, have in flight in the measurements of real response times.
const connectionsToCarrier = 100

// mostOfConnections is the part of connections / response time that a worker must send at.
const mostOfConnections = 0.95

// measureResponseTimes measures batches while the carrier takes as long for an answer as Twilio does.
func (s sizes) measureResponseTimes(ctx context.Context, report *Report) error {
	if s.rounds == 0 || s.slow == 0 {
		return nil
	}
	say("starting the product for slow answers of the carrier, 1 worker")
	r, err := rig.Start(ctx, rig.Options{Workers: 1, Profiles: s.profiles, Settings: map[string]string{
		"SMS_SEND_INTERVAL": "0s", "CALL_SEND_INTERVAL": "0s", "CARRIER_CONNECTIONS": fmt.Sprint(connectionsToCarrier),
	}})
	if err != nil {
		return err
	}
	defer r.Stop()
	var p *peer
	if s.peer {
		if p, err = startPeer(ctx, r, connectionsToCarrier); err != nil {
			return err
		}
		defer p.stop()
	}
	if _, err := sendBatch(ctx, r, 1000); err != nil {
		return fmt.Errorf("warm-up of batches: %w", err)
	}
	for _, responseTime := range []time.Duration{50 * time.Millisecond, 200 * time.Millisecond} {
		if err := s.bulkAt(ctx, r, p, responseTime, report); err != nil {
			return err
		}
	}
	return nil
}

// bulkAt has the peer and ourselves send to as many as are sent in the time that s.slow says.
func (s sizes) bulkAt(ctx context.Context, r *rig.Rig, p *peer, responseTime time.Duration, report *Report) error {
	possible := connectionsToCarrier / responseTime.Seconds()
	n := int(possible * s.slow.Seconds())
	var sending rates
	lost := 0
	var contest []contestant
	if p != nil {
		contest = append(contest, p.contestant(n, peerEach, &lost))
	}
	contest = append(contest, contestant{ours, func(ctx context.Context) (float64, error) {
		rate, err := sendBatch(ctx, r, n)
		if err != nil {
			return 0, err
		}
		creates, err := r.Simulator.Messages(ctx)
		sending = append(sending, steadyRate(creates))
		return rate, err
	}})
	for i, c := range contest {
		contest[i].run = func(ctx context.Context) (float64, error) {
			err := r.Simulator.Behave(ctx, func(b *simulator.Behaviour) { b.LatencyMS = int(responseTime.Milliseconds()) })
			if err != nil {
				return 0, err
			}
			return c.run(ctx)
		}
	}
	took, err := s.inRounds(ctx, r, fmt.Sprintf("batches at %v", responseTime), contest)
	if err != nil {
		return err
	}
	used := sending.median() / possible
	f := figure{
		what:     fmt.Sprintf("a batch of %d, answers after %v, %d connections: creates a second", n, responseTime, connectionsToCarrier),
		must:     fmt.Sprintf("at least %.0f %% of connections / response time, and the peer's rate", 100*mostOfConnections),
		measured: fmt.Sprintf("%s, %.0f %% of %.0f/s; to the last receipt %s", sending, 100*used, possible, took[ours]),
		beside:   "no peer",
		holds:    used >= mostOfConnections && took[ours].median() >= took[peersJobs].median(),
	}
	if p != nil {
		f.beside = "peer, to the last receipt " + took[peersJobs].String()
	}
	report.add(f)
	report.tellLost(fmt.Sprintf("batches at %v", responseTime), lost, s.rounds*n)
	return nil
}

// steadyRate is how many creates a second there were, without the tenth at each end.
func steadyRate(creates []rig.Create) float64 {
	var at []time.Time
	for _, c := range creates {
		at = append(at, c.CreatedAt)
	}
	slices.SortFunc(at, time.Time.Compare)
	first, last := len(at)/10, len(at)-1-len(at)/10
	if last <= first {
		return 0
	}
	return float64(last-first) / at[last].Sub(at[first]).Seconds()
}
