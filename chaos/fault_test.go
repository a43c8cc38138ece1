package chaos

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/todoku/todoku/bench/rig"
	"github.com/todoku/todoku/simulator"
)

// TestEveryFault lets each fault of the carrier hit creates, alone and with the callbacks lost, and
// each way in which callbacks arrive alone.
func TestEveryFault(t *testing.T) {
	const each = 4 // creates that one situation hits: three SMS and a call
	type situation struct {
		fault     simulator.FaultKind
		callbacks simulator.CallbackMode
	}
	var situations []situation
	for _, fault := range []simulator.FaultKind{
		simulator.AcceptThenDrop, simulator.Refuse, simulator.HTTP500AfterAccept, simulator.HTTP500,
		simulator.HTML503AfterAccept, simulator.HTML503, simulator.RateLimited,
	} {
		situations = append(situations, situation{fault, simulator.Ordered}, situation{fault, simulator.Lost})
	}
	for _, mode := range []simulator.CallbackMode{
		simulator.Reversed, simulator.Shuffled, simulator.Repeated, simulator.Lost, simulator.BeforeAnswer,
	} {
		situations = append(situations, situation{callbacks: mode})
	}

	r := start(t, nil)
	var accepted []rig.Accepted
	for i, s := range situations {
		t.Logf("%d: fault %s, callbacks %s", i, cmp.Or(s.fault, "none"), s.callbacks)
		behave(t, r, func(b *simulator.Behaviour) {
			b.Callbacks = s.callbacks
			if s.fault != "" {
				b.Fault = &simulator.Fault{Kind: s.fault, Count: new(each)}
			}
		})
		var these []rig.Request
		for n := range each {
			request := single(i*each + n)
			request.Channel = []string{"SMS", "SMS", "SMS", "CALL"}[n]
			these = append(these, request)
		}
		accepted = append(accepted, accept(t, r, these...)...)
		// Tries again come while later situations last, and may meet their faults: that is as it is
		// in life, so what each situation is held to is that its faults were met.
		await(t, time.Minute, "the fault has hit and everything was tried", func(ctx context.Context) (bool, error) {
			left, err := r.Simulator.FaultsLeft(ctx)
			if err != nil || left > 0 {
				return false, err
			}
			rows, err := r.Ledger.Rows(ctx, "")
			for _, row := range rows {
				if row.Status == "ACCEPTED" && row.Attempts == 0 && s.fault != simulator.RateLimited {
					return false, err
				}
			}
			return err == nil, err
		})
	}
	behave(t, r, func(*simulator.Behaviour) {})
	audit(t, r, accepted)
}

func behave(t *testing.T, r *rig.Rig, change func(*simulator.Behaviour)) {
	t.Helper()
	if err := r.Simulator.Behave(t.Context(), change); err != nil {
		t.Fatal(err)
	}
}
