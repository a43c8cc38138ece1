package worker

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestALoopThatDoesNotComeRoundIsNamed(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	started := time.Now()
	repeat(ctx, slog.New(slog.DiscardHandler), "a loop that succeeds", time.Millisecond, "it waits", func(context.Context) error {
		families, err := prometheus.DefaultGatherer.Gather()
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				if family.GetName() != "todoku_loop_last_round_timestamp_seconds" || metric.GetLabel()[0].GetValue() != "a loop that succeeds" {
					continue
				}
				if last := metric.GetGauge().GetValue(); last > 0 {
					cancel()
					if last < float64(started.Unix()) {
						t.Errorf("it last came round at %v, before the test", last)
					}
				}
			}
		}
		return err
	})
	known := &rounds{by: map[string]time.Time{}}
	known.came("quick", 0)
	known.by["slow"] = time.Now().Add(-time.Second)
	if got := known.stalled(); len(got) != 1 || got[0] != "loop slow" {
		t.Errorf("stalled are %q", got)
	}
	known.ended("slow")
	if got := known.stalled(); len(got) != 0 {
		t.Errorf("stalled after its end are %q", got)
	}
}

func TestALoopGoesOnAfterAPanicAndLogsNoValue(t *testing.T) {
	t.Parallel()
	const secret = "+12025550143"
	ctx, cancel := context.WithCancel(t.Context())
	var said strings.Builder
	turns := 0
	repeat(ctx, slog.New(slog.NewTextHandler(&said, nil)), "a loop of a test", time.Millisecond, "the loop waits", func(context.Context) error {
		if turns++; turns == 3 {
			cancel()
			return nil
		}
		panic("a row to " + secret)
	})
	if turns != 3 || !strings.Contains(said.String(), "the loop waits") || strings.Contains(said.String(), secret) {
		t.Errorf("%d turns; it said %s", turns, said.String())
	}
}
