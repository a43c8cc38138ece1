package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/panics"
	"github.com/todoku/todoku/store"
)

// ShardStarter starts and wakes the workflows that carry the parts of a batch. One that was started
// before is success.
type ShardStarter interface {
	// StartBatchShard starts a shard; single is its notification where it has only one.
	StartBatchShard(ctx context.Context, workflowID string, channel notify.Channel, single *uuid.UUID) error
}

const (
	// CarryTurn is how long one run of CarryBatch takes at most, so that the batch's details in
	// Temporal's Web UI are as fresh.
	CarryTurn = 30 * time.Second

	// carryWindow is how many shards' rows are under way and not yet tried: the next ones are there when
	// a slot is free, and a pause, or a death, finds few of them.
	carryWindow = 4

	// While the window is full, it is looked at as often as a shard can be sent by 10,000 a second, and at
	// most as often as one after the other can be started.
	carryPoll    = 50 * time.Millisecond
	carryPollRow = 100 * time.Microsecond
)

// Carried says how far a batch has come, and after how long it wants to be looked at again.
type Carried struct {
	Done    bool // every notification is final
	In      time.Duration
	Details string // for people who look at the batch's workflow
}

// CarryBatch starts the shards of a batch, in order, in a window that moves as they send: a row that
// was tried once, or may not be tried now, is outside of it, so one that keeps failing holds up nobody.
// Where the batch stands is read from the ledger, so whoever takes over goes on there. It ends after the
// turn, at most, for its details to be shown; 0, of a workflow that gives none: CarryTurn.
func (a *Activities) CarryBatch(ctx context.Context, id uuid.UUID, turn time.Duration) (Carried, error) {
	stopBeating := heartbeat(ctx)
	defer stopBeating()
	var from int32 // where the first unsent row was
	turn = cmp.Or(turn, CarryTurn)
	for began := time.Now(); ; {
		c, err := a.Store.Carry(ctx, id, from, 2*CarryTurn)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return Carried{}, temporal.NewNonRetryableApplicationError("the ledger has no such batch", "NotFound", nil)
		case err != nil:
			return Carried{}, err
		case stopping(ctx):
			return Carried{}, retryAfter(0, "the worker stops: another one goes on")
		}
		from = c.From
		carried := Carried{Done: c.Finished(), Details: details(c)}
		if carried.In = rest(c); carried.Done || carried.In > 0 {
			// Whoever has to do something earlier wakes the workflow.
			_, err := a.Store.Carry(ctx, id, from, carried.In+CarryTurn)
			return carried, err
		}
		if time.Since(began) > turn {
			return carried, nil
		}
		if c.Unsent > (carryWindow-1)*c.ShardSize {
			if err := sleep(ctx, max(carryPoll, time.Duration(c.ShardSize)*carryPollRow)); err != nil {
				return carried, err
			}
			continue
		}
		if err := a.startShards(ctx, id, c); err != nil {
			return carried, err
		}
	}
}

// rest is how long there is nothing to start: what was sent is followed by its shards, and whoever
// resumes, cancels or finishes the batch wakes its workflow.
func rest(c store.Carry) time.Duration {
	switch {
	case c.WaitsFor > 0:
		return c.WaitsFor
	case c.Canceled, c.ShardsStarted >= c.Shards:
		return min(max(c.SinceShard, 10*time.Second), time.Hour)
	case c.Held:
		return heldRecheck
	}
	return 0
}

// startShards fills the window.
func (a *Activities) startShards(ctx context.Context, id uuid.UUID, c store.Carry) error {
	underWay := (c.Unsent + c.ShardSize - 1) / c.ShardSize
	until := min(c.ShardsStarted+carryWindow-underWay, c.Shards)
	g := panics.NewGroup()
	for n := c.ShardsStarted; n < until; n++ {
		g.Go(func() error { return a.startShard(ctx, id, c, int(n)) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if activity.IsActivity(ctx) {
		activity.RecordHeartbeat(ctx, until)
	}
	return a.Store.MarkShardsStarted(ctx, id, until)
}

func (a *Activities) startShard(ctx context.Context, id uuid.UUID, c store.Carry, n int) error {
	workflowID := notify.ShardWorkflowID(id, n)
	if c.ShardSize > 1 {
		return a.Shards.StartBatchShard(ctx, workflowID, c.Channel, nil)
	}
	member, err := a.Store.ShardMember(ctx, workflowID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil // it was canceled by itself, or another run has started it and it is final
	case err != nil:
		return err
	}
	return a.Shards.StartBatchShard(ctx, workflowID, c.Channel, &member)
}

// details is what the batch's workflow shows of it.
func details(c store.Carry) string {
	var text strings.Builder
	final := int64(c.Total) - c.Outstanding()
	fmt.Fprintf(&text, "%d of %d final (%.1f %%), %d of %d shards started", final, c.Total, 100*float64(final)/float64(c.Total), c.ShardsStarted, c.Shards)
	for _, part := range []struct {
		name string
		n    int64
	}{
		{"accepted", c.Accepted}, {"sending", c.Sending}, {"pending", c.Pending}, {"success", c.Success},
		{"failed", c.Failed}, {"unknown", c.Unknown}, {"skipped", c.Skipped}, {"canceled", c.Counts.Canceled},
	} {
		if part.n > 0 {
			fmt.Fprintf(&text, "\n- %s: %d", part.name, part.n)
		}
	}
	switch {
	case c.Canceled:
		text.WriteString("\n\nCanceled.")
	case c.Held:
		text.WriteString("\n\nPaused, or its sender is stopped.")
	}
	return text.String()
}
