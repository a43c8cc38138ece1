package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/todoku/todoku/bench/rig"
)

const (
	mostMemory  = 300 << 20             // of a worker with a batch of a million
	readWithin  = 20 * time.Millisecond // how far such a batch has come
	millionRuns = time.Minute           // so long it is watched
	compared    = 20_000                // recipients of the batch that it is compared with
)

// measureMillion lets a very large batch run for a while, and watches what it takes of the workers'
// memory and how soon the API tells how far it has come. A smaller one runs before, to compare with.
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
	if _, err := sendBatch(ctx, r, small); err != nil {
		return err
	}
	_, before := r.Memory(rig.PartWorkers)

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

	var reads []time.Duration
	began = time.Now()
	for time.Since(began) < millionRuns && b.Open() > 0 {
		asked := time.Now()
		if b, err = r.API.Batch(ctx, b.ID); err != nil {
			return err
		}
		reads = append(reads, time.Since(asked))
		time.Sleep(50 * time.Millisecond)
	}
	settled := float64(b.Total-b.Open()) / time.Since(began).Seconds()
	slices.Sort(reads)
	p50, p99 := quantile(reads, 0.50), quantile(reads, 0.99)
	_, after := r.Memory(rig.PartWorkers)
	report.add(figure{
		what: fmt.Sprintf("a worker's memory with a batch of %d running", b.Total), must: fmt.Sprintf("under %s, no growth with the size", inMB(mostMemory)),
		measured: fmt.Sprintf("%s at most, while %.0f a second settled", inMB(after), settled), beside: fmt.Sprintf("%s with a batch of %d", inMB(before), small),
		holds: after < mostMemory && after-before <= flatMemory,
	})
	report.add(figure{
		what: "GET of that batch while it runs", must: "at most " + inMS(readWithin),
		measured: fmt.Sprintf("p50 %.1f ms, p99 %.1f ms (%d calls)", milliseconds(p50), milliseconds(p99), len(reads)), holds: p99 <= readWithin,
	})
	return nil
}
