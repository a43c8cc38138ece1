package chaos

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/todoku/todoku/bench/rig"
)

// backWithin is how long after the database answers again every loop of a worker has come round.
const backWithin = 30 * time.Second

// TestADatabaseHostThatVanishes streams singles while the database's host is away without a word: connections stay and
// are not answered, or packets are dropped, where this machine lets us do that.
func TestADatabaseHostThatVanishes(t *testing.T) {
	n, away := 40, 16*time.Second // longer than a statement may take
	if *long {
		n, away = 600, 90*time.Second
	}
	for name, vanish := range map[string]func(*testing.T, *rig.Database) (back func()){
		"connections that are never answered": func(_ *testing.T, d *rig.Database) func() {
			d.Wire.Silence()
			return d.Wire.Restore
		},
		"packets that are dropped": func(t *testing.T, d *rig.Database) func() {
			return dropPackets(t, d.Wire.Address().Port)
		},
	} {
		t.Run(name, func(t *testing.T) {
			database, err := rig.StartDatabase(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(database.Stop)
			r := startWith(t, rig.Options{Database: database})
			var accepted []rig.Accepted
			var streaming sync.WaitGroup
			streaming.Go(func() { accepted = stream(t, r, n, away+10*time.Second) })
			time.Sleep(5 * time.Second)
			probes := outages{t: t, r: r, next: n}
			probes.during("the database's host is away", away, func(ctx context.Context) {
				back := vanish(t, database)
				defer back()
				<-ctx.Done()
			}, isUnavailable)
			loopsComeRound(t, r, time.Now())
			streaming.Wait()
			for _, request := range probes.refused {
				accepted = append(accepted, accept(t, r, request)...)
			}
			audit(t, r, append(accepted, probes.accepted...))
		})
	}
}

// dropPackets drops what is sent to or from a port of this machine, until back is called.
func dropPackets(t *testing.T, port int) (back func()) {
	t.Helper()
	rules := [][]string{
		{"INPUT", "-i", "lo", "-p", "tcp", "--dport", strconv.Itoa(port), "-j", "DROP"},
		{"INPUT", "-i", "lo", "-p", "tcp", "--sport", strconv.Itoa(port), "-j", "DROP"},
	}
	back = sync.OnceFunc(func() {
		for _, rule := range rules {
			// A rule that was not added is not there.
			_ = exec.Command("iptables", slices.Concat([]string{"-w", "-D"}, rule)...).Run()
		}
	})
	t.Cleanup(back)
	for _, rule := range rules {
		if out, err := exec.Command("iptables", slices.Concat([]string{"-w", "-I"}, rule)...).CombinedOutput(); err != nil {
			back()
			t.Skipf("packets cannot be dropped on this machine: %v %s", err, out)
		}
	}
	return back
}

// TestAFailOverToAStandby streams singles while the database turns read-only, its synchronous standby takes its place,
// and the old server goes on answering reads.
func TestAFailOverToAStandby(t *testing.T) {
	n, readOnly := 60, 5*time.Second
	if *long {
		n, readOnly = 600, 30*time.Second
	}
	database, err := rig.StartDatabase(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(database.Stop)
	r := startWith(t, rig.Options{Database: database})
	if err := database.AddStandby(t.Context()); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("this Postgres has no program to make a standby: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	var accepted []rig.Accepted
	var streaming sync.WaitGroup
	streaming.Go(func() { accepted = stream(t, r, n, readOnly+15*time.Second) })
	time.Sleep(5 * time.Second)
	if err := database.TurnReadOnly(t.Context()); err != nil {
		t.Fatal(err)
	}
	probes := outages{t: t, r: r, next: n}
	probes.during("the database is read-only", readOnly, func(ctx context.Context) { <-ctx.Done() }, isUnavailable)
	if err := database.FailOver(t.Context()); err != nil {
		t.Fatal(err)
	}
	taken := time.Now()
	await(t, backWithin, "the new server is written to", func(ctx context.Context) (bool, error) {
		request := single(probes.next)
		probes.next++
		one, err := r.API.Post(ctx, request)
		if err != nil {
			probes.refused = append(probes.refused, request)
			if !isUnavailable(err) {
				t.Errorf("after the fail-over the API answered a probe so: %v", err)
			}
			time.Sleep(500 * time.Millisecond)
			return false, err
		}
		probes.accepted = append(probes.accepted, one)
		return true, nil
	})
	t.Logf("the new server was written to after %s", time.Since(taken).Round(time.Millisecond))
	loopsComeRound(t, r, taken)
	streaming.Wait()
	database.StopPrimary() // the auditor's connections lead there
	for _, request := range probes.refused {
		accepted = append(accepted, accept(t, r, request)...)
	}
	audit(t, r, append(accepted, probes.accepted...))
}

// loopsComeRound waits until every loop of every worker has come round since a moment.
func loopsComeRound(t *testing.T, r *rig.Rig, since time.Time) {
	t.Helper()
	behind := ""
	await(t, time.Until(since.Add(backWithin)), "every loop has come round", func(ctx context.Context) (bool, error) {
		behind = ""
		for _, address := range r.Workers() {
			rounds, err := lastRounds(ctx, address)
			if err != nil {
				return false, err
			}
			for loop, at := range rounds {
				if at.Before(since) {
					behind = fmt.Sprintf("loop %s of %s", loop, address)
				}
			}
		}
		if behind != "" {
			return false, fmt.Errorf("%s has not", behind)
		}
		return true, nil
	})
	t.Logf("every loop came round within %s", time.Since(since).Round(100*time.Millisecond))
}

// lastRounds reads when each loop of a worker last came round.
func lastRounds(ctx context.Context, address string) (map[string]time.Time, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		return nil, err
	}
	rounds := map[string]time.Time{}
	for _, series := range families["todoku_loop_last_round_timestamp_seconds"].GetMetric() {
		for _, label := range series.GetLabel() {
			rounds[label.GetValue()] = time.UnixMicro(int64(series.GetGauge().GetValue() * 1e6))
		}
	}
	if len(rounds) == 0 {
		return nil, fmt.Errorf("%s tells of no loop", address)
	}
	return rounds, nil
}
