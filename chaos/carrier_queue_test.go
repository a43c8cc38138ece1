package chaos

import (
	"context"
	"testing"
	"time"

	"github.com/todoku/todoku/bench/rig"
	"github.com/todoku/todoku/simulator"
)

// queuedAtTwilio counts what the simulator has accepted and not yet sent on.
func queuedAtTwilio(ctx context.Context, r *rig.Rig) (queued, all int, err error) {
	creates, err := r.Simulator.Messages(ctx)
	for _, create := range creates {
		if create.Status == "queued" {
			queued++
		}
	}
	return queued, len(creates), err
}

// TestNoMoreWaitsInTwiliosQueueThanItsLimit lets Twilio send slower than it is posted to.
func TestNoMoreWaitsInTwiliosQueueThanItsLimit(t *testing.T) {
	const limit, n = 10, 40
	r := start(t, map[string]string{"SMS_SEND_INTERVAL": "20ms", "CARRIER_QUEUE_LIMIT": "10"})
	if err := r.Simulator.Behave(t.Context(), func(b *simulator.Behaviour) { b.DrainPerSecond = 8 }); err != nil {
		t.Fatal(err)
	}
	var accepted []rig.Accepted
	for i := range n {
		message := single(i)
		message.Channel = "SMS"
		accepted = append(accepted, accept(t, r, message)...)
	}
	most := 0
	await(t, 2*time.Minute, "all were sent", func(ctx context.Context) (bool, error) {
		queued, all, err := queuedAtTwilio(ctx, r)
		most = max(most, queued)
		return all == n, err
	})
	if most > limit {
		t.Errorf("%d waited in Twilio's queue, want at most %d", most, limit)
	}
	audit(t, r, accepted)
}

// TestTheLimitOfTwiliosQueueEndsWhenNoCallbacksCome loses every callback: what has left the queue is learnt by a list,
// and then the limit is off.
func TestTheLimitOfTwiliosQueueEndsWhenNoCallbacksCome(t *testing.T) {
	const n = 30
	r := start(t, map[string]string{"SMS_SEND_INTERVAL": "20ms", "CARRIER_QUEUE_LIMIT": "5", "STATUS_CHECK_DELAY": "20s"})
	if err := r.Simulator.Behave(t.Context(), func(b *simulator.Behaviour) { b.Callbacks = simulator.Lost }); err != nil {
		t.Fatal(err)
	}
	var accepted []rig.Accepted
	for i := range n {
		accepted = append(accepted, accept(t, r, single(i))...)
	}
	audit(t, r, accepted)
}
