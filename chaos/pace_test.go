package chaos

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/todoku/todoku/bench/rig"
)

// TestAWorkerThatWokeKeepsThePace freezes the workers for so long that they miss several slots of a
// sender. What they have claimed for those must not go out all at once when they wake.
func TestAWorkerThatWokeKeepsThePace(t *testing.T) {
	// The interval is far longer than a busy machine keeps a process waiting.
	const interval, frozen, n = 400 * time.Millisecond, 2800 * time.Millisecond, 24
	r := start(t, map[string]string{"SMS_SEND_INTERVAL": interval.String()})
	var accepted []rig.Accepted
	for i := range n {
		accepted = append(accepted, accept(t, r, single(i))...)
	}
	await(t, time.Minute, "some were sent", func(ctx context.Context) (bool, error) {
		creates, err := r.Simulator.Messages(ctx)
		return len(creates) > 5, err
	})
	freeze, wake := context.WithTimeout(t.Context(), frozen)
	defer wake()
	r.Freeze(freeze, rig.PartWorkers)

	audit(t, r, accepted)
	creates, err := r.Simulator.Messages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(creates, func(a, b rig.Create) int { return a.CreatedAt.Compare(b.CreatedAt) })
	together := 0
	for i := 1; i < len(creates); i++ {
		if creates[i].CreatedAt.Sub(creates[i-1].CreatedAt) < interval/2 {
			together++
		}
	}
	t.Logf("of %d creates %d came less than half an interval after the one before", len(creates), together)
	if slots := int(frozen / interval); together > slots/2 {
		t.Errorf("%d creates came less than half an interval after the one before: the %d missed slots were used all at once", together, slots)
	}
}
