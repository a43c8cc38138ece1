// Bench measures the product as its users meet it, on this machine, each figure beside its reference
// in the same run: the same work done by a BullMQ pipeline (peer/) and by a bare loop of twilio-go,
// against the same simulator of Twilio and the same Postgres. It prints a table and writes
// docs/benchmarks.md.
//
//	go run ./bench                                      about fifteen minutes
//	go run ./bench -singles 500 -bulk 5000 -rounds 1    a quick look
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/todoku/todoku/bench/rig"
)

// sizes are how much is measured, and of what.
type sizes struct {
	singles     int
	bulk        int
	upload      int
	million     int
	listed      int
	rounds      int
	connections int
	workers     int
	latency     time.Duration
	slow        time.Duration
	pacing      time.Duration
	peer        bool
	packages    bool
	profiles    string
	out         string
}

func main() {
	rig.Main()
	var s sizes
	flag.IntVar(&s.singles, "singles", 5000, "how many single notifications a round sends; 0: none")
	flag.IntVar(&s.bulk, "bulk", 20_000, "how many recipients the batch of a round has; 0: none is sent")
	flag.IntVar(&s.upload, "upload", 100_000, "how many recipients the file has whose acceptance is measured; 0: none")
	flag.IntVar(&s.million, "million", 0, "how many recipients the batch has that runs while memory and answers are watched: 1000000 takes 6 minutes; 0: none")
	flag.IntVar(&s.listed, "listed", 100_000, "how many sends whose callbacks are lost the carrier's list settles; 0: none")
	flag.IntVar(&s.rounds, "rounds", 3, "how many rounds of singles and batches, peer and bare loop are run; their medians count")
	flag.IntVar(&s.connections, "connections", 100, "how many keep-alive connections the load comes over")
	flag.IntVar(&s.workers, "workers", 1, "how many workers carry singles and batches")
	flag.DurationVar(&s.latency, "latency", 30*time.Second, "how long singles trickle in, 5 a second, to measure their latency; 0: not at all")
	flag.DurationVar(&s.slow, "slow", 8*time.Second, "how long a batch takes that is sent while the carrier answers as slowly as Twilio does; 0: none is sent")
	flag.DurationVar(&s.pacing, "pacing", time.Minute, "how long the pace is watched; 0: not at all")
	flag.BoolVar(&s.peer, "peer", true, "measure the peer too")
	flag.BoolVar(&s.packages, "packages", true, "run the packages' own benchmarks too")
	flag.StringVar(&s.profiles, "profiles", "", "write CPU profiles of our processes into this `folder`")
	flag.StringVar(&s.out, "out", "docs/benchmarks.md", "write the report to this `file`; empty: to none")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := s.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// run measures everything in turn: only one thing has the machine at a time.
func (s sizes) run(ctx context.Context) error {
	report := newReport(ctx)
	for _, measure := range []func(context.Context, *Report) error{s.measureUnpaced, s.measureResponseTimes, s.measureMillion, s.measureListing, s.measurePacing, s.measurePackages} {
		if err := measure(ctx, report); err != nil {
			return err
		}
	}
	report.print(os.Stdout)
	if s.out == "" {
		return nil
	}
	if err := report.write(s.out); err != nil {
		return err
	}
	say("written to %s", s.out)
	return nil
}

var unpaced = map[string]string{"SMS_SEND_INTERVAL": "0s", "CALL_SEND_INTERVAL": "0s"}

// measureUnpaced measures what is limited by the machine alone.
func (s sizes) measureUnpaced(ctx context.Context, report *Report) error {
	say("starting the product without pacing, %d worker(s)", s.workers)
	r, err := rig.Start(ctx, rig.Options{Workers: s.workers, Profiles: s.profiles, Settings: unpaced})
	if err != nil {
		return err
	}
	defer r.Stop()
	version, err := r.Ledger.Version(ctx)
	if err != nil {
		return err
	}
	report.machine.versions = append(report.machine.versions, "Postgres "+version)
	if err := s.singleLatency(ctx, r, report); err != nil {
		return err
	}
	var p *peer
	if s.peer && s.rounds > 0 {
		if p, err = startPeer(ctx, r, peerConnections); err != nil {
			return err
		}
		defer p.stop()
	}
	if err := s.singlesBesidePeer(ctx, r, p, report); err != nil {
		return err
	}
	if err := s.bulkBesidePeer(ctx, r, p, report); err != nil {
		return err
	}
	return s.acceptance(ctx, r, report)
}

func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}
