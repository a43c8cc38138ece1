package chaos

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/todoku/todoku/bench/rig"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/simulator"
)

// TestWorkersDieAroundACreate kills all workers when a notification is claimed and not yet posted,
// when it is posted and not answered, and right after the answer left the carrier.
func TestWorkersDieAroundACreate(t *testing.T) {
	// A second call waits for its slot for most of a second, under a claim.
	r := start(t, map[string]string{"CALL_SEND_INTERVAL": "900ms"})
	deaths := []struct {
		when      string
		channel   string
		sent      int // so many are sent at once
		behaviour func(*simulator.Behaviour)
		reached   func(context.Context) (bool, error)
	}{
		{"claimed, waiting for its slot", "CALL", 2, func(*simulator.Behaviour) {}, claimed(r)},
		{"posted, not answered", "SMS", 1, func(b *simulator.Behaviour) { b.LatencyMS = 3000 }, created(r, 2)},
		{"posted, not answered, callbacks lost", "SMS", 1, func(b *simulator.Behaviour) { b.LatencyMS, b.Callbacks = 3000, simulator.Lost }, created(r, 3)},
		{"posted, not answered, callbacks before the answer", "SMS", 1, func(b *simulator.Behaviour) { b.LatencyMS, b.Callbacks = 3000, simulator.BeforeAnswer }, created(r, 4)},
		{"call posted, not answered, callbacks lost", "CALL", 1, func(b *simulator.Behaviour) { b.LatencyMS, b.Callbacks = 3000, simulator.Lost }, created(r, 5)},
		{"answered", "SMS", 1, func(*simulator.Behaviour) {}, created(r, 6)},
		{"answered, callbacks lost", "SMS", 1, func(b *simulator.Behaviour) { b.Callbacks = simulator.Lost }, created(r, 7)},
	}
	var accepted []rig.Accepted
	for _, death := range deaths {
		behave(t, r, death.behaviour)
		for range death.sent {
			request := single(len(accepted))
			request.Channel = death.channel
			accepted = append(accepted, accept(t, r, request)...)
		}
		await(t, time.Minute, death.when, death.reached)
		killed := r.PIDs(rig.PartWorkers)
		r.Kill(killed...)
		t.Logf("killed all workers: %s", death.when)
		await(t, time.Minute, "the workers were replaced", func(context.Context) (bool, error) {
			return !slices.ContainsFunc(r.PIDs(rig.PartWorkers), func(pid int) bool { return slices.Contains(killed, pid) }), nil
		})
	}
	behave(t, r, func(*simulator.Behaviour) {})
	audit(t, r, accepted)
}

// claimed reports whether a notification is SENDING that the carrier has not got.
func claimed(r *rig.Rig) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		rows, err := r.Ledger.Rows(ctx, "")
		if err != nil {
			return false, err
		}
		at, err := r.Simulator.ByNumber(ctx)
		return slices.ContainsFunc(rows, func(row rig.Row) bool {
			return row.Status == notify.Sending && len(at[row.To]) == 0
		}), err
	}
}

// created reports whether the carrier has got the notification to a recipient.
func created(r *rig.Rig, recipient int) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		at, err := r.Simulator.ByNumber(ctx)
		return len(at[rig.Number(recipient)]) > 0, err
	}
}
