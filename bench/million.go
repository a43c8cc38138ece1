package main

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"slices"
	"time"

	"github.com/todoku/todoku/bench/rig"
)

const (
	mostMemory   = 300 << 20             // of a worker with a batch of a million
	readWithin   = 20 * time.Millisecond // how far such a batch has come
	millionPaced = 15 * time.Second      // so long it runs at a pace, before nothing holds it up
	compared     = 20_000                // recipients of the batch that it is compared with
)

// measureMillion sends a very large batch, first at a pace and then as fast as it goes, and watches what it
// takes of the workers' memory and how soon the API tells how far it has come. A smaller one is sent before,
// to compare with.
func (s sizes) measureMillion(ctx context.Context, report *Report) error {
	if s.million == 0 {
		return nil
	}
	say("starting the product for a batch of %d", s.million)
	r, err := rig.Start(ctx, rig.Options{Workers: s.workers, Profiles: s.profiles, Settings: unpaced})
	if err != nil {
		return err
	}
	defer r.Stop()
	small := min(s.million, compared)
	smallRate, err := sendBatch(ctx, r, small)
	if err != nil {
		return err
	}
	_, before := r.Memory(rig.PartWorkers)
	if err := r.Simulator.Reset(ctx); err != nil {
		return err
	}

	r.ForgetPeaks(rig.PartAPI)
	held, _ := r.Memory(rig.PartAPI)
	file := rig.Recipients(0, s.million)
	began := time.Now()
	b, _, err := r.API.SendBatch(ctx, rig.BatchRequest{Query: url.Values{"channel": {"SMS"}, "body": {text}}, File: file})
	if err != nil {
		return err
	}
	_, peak := r.Memory(rig.PartAPI)
	report.add(figure{
		what:     fmt.Sprintf("a file of %d recipients accepted (durable, 202)", s.million),
		measured: fmt.Sprintf("%.1f s, the API took %s more than before", time.Since(began).Seconds(), inMB(peak-held)),
	})

	paced, _, err := carry(ctx, r, &b, smsInterval, millionPaced)
	if err != nil {
		return err
	}
	report.add(figure{
		what: fmt.Sprintf("GET of that batch while it runs at %v", smsInterval), must: "p99 at most " + inMS(readWithin),
		measured: quantiles(paced), holds: quantile(paced, 0.99) <= readWithin,
	})
	busy, rate, err := carry(ctx, r, &b, 0, forever)
	if err != nil {
		return err
	}
	report.add(figure{
		what: "GET of that batch while it has all processors busy", must: "p50 at most " + inMS(readWithin),
		measured: quantiles(busy), holds: quantile(busy, 0.50) <= readWithin,
	})
	report.add(figure{
		what:     fmt.Sprintf("a batch of %d, without pacing: each sent, recorded and settled by webhook", b.Total),
		measured: fmt.Sprintf("%.0f/s", rate), beside: fmt.Sprintf("a batch of %d: %.0f/s, its upload included", small, smallRate),
	})
	_, after := r.Memory(rig.PartWorkers)
	report.add(figure{
		what: fmt.Sprintf("a worker's memory with a batch of %d running", b.Total), must: fmt.Sprintf("under %s, no growth with the size", inMB(mostMemory)),
		measured: inMB(after) + " at most", beside: fmt.Sprintf("%s with a batch of %d", inMB(before), small),
		holds: after < mostMemory && after-before <= flatMemory,
	})
	return eachOnce(ctx, r, b)
}

// forever is longer than any batch takes.
const forever = time.Duration(math.MaxInt64)

// carry gives the batch a pace of its own (0: none), and reads how far it has come, 20 times a second for as
// long as said or until it is finished. It returns how long each answer took, the shortest first, and how many
// settled a second.
func carry(ctx context.Context, r *rig.Rig, b *rig.Batch, pace, length time.Duration) (reads []time.Duration, settled float64, err error) {
	began, open := time.Now(), b.Open()
	if *b, err = r.API.SetBatchPace(ctx, b.ID, pace); err != nil {
		return nil, 0, err
	}
	for left, changed := b.Open(), began; b.Open() > 0 && time.Since(began) < length; {
		time.Sleep(50 * time.Millisecond)
		asked := time.Now()
		if *b, err = r.API.Batch(ctx, b.ID); err != nil {
			return nil, 0, err
		}
		reads = append(reads, time.Since(asked))
		if b.Open() != left {
			left, changed = b.Open(), time.Now()
		} else if time.Since(changed) > patience {
			return nil, 0, fmt.Errorf("of a batch %d did not settle", left)
		}
	}
	slices.Sort(reads)
	return reads, float64(open-b.Open()) / time.Since(began).Seconds(), nil
}

func quantiles(sorted []time.Duration) string {
	return fmt.Sprintf("p50 %.1f ms, p99 %.1f ms (%d calls)", milliseconds(quantile(sorted, 0.50)), milliseconds(quantile(sorted, 0.99)), len(sorted))
}
