package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/panics"
	"github.com/todoku/todoku/starter"
	"github.com/todoku/todoku/store"
)

// The relay looks often for notifications without a workflow: what comes in a surge waits for it.
const (
	relayInterval = 100 * time.Millisecond
	relayStarts   = 8 // at the same time

	// Temporal starts a few dozen workflows a second on a small machine. When more singles of a sender
	// wait, they are carried in shards, each by one workflow that takes what waits until it is full. A
	// shard takes a moment to begin, so another one follows soon only when more waits than it can take;
	// and while somebody uses every slot of the sender, another one would only wait beside him.
	relaySingles  = 8
	shardPause    = 500 * time.Millisecond
	shardPatience = 10 * time.Second
)

// wakeAfter is how long a row that could be claimed may wait before its owner is woken, and how
// often the same owner is woken at most.
const (
	wakeAfter = 10 * time.Second
	wakeLook  = 2 * time.Second // between two looks
	wakeEvery = 30 * time.Second
	wakeLimit = 100
)

// Relay starts workflows for accepted notifications that have none: because Temporal was away when
// they were accepted, because the process that accepted them died, or because more came at once
// than are started one by one. It also wakes workflows that have something to do and do not know,
// and replaces those that are closed or gone. Every worker runs one; what two of them start is
// started once.
type Relay struct {
	Store   *store.Store
	Starter *starter.Starter
	Log     *slog.Logger

	// ShardSize is how many notifications one workflow carries at most.
	ShardSize int

	looked  time.Time // when wakeIdle last looked
	woken   map[string]time.Time
	sharded map[int64]time.Time // by sender: when its last shard was started
}

// Run relays until ctx ends.
func (r *Relay) Run(ctx context.Context) {
	r.woken, r.sharded = map[string]time.Time{}, map[int64]time.Time{}
	waits := false
	repeat(ctx, r.Log, "relay", relayInterval, "relay waits: what is accepted is started when the database and Temporal answer again", func(ctx context.Context) error {
		err := errors.Join(
			panics.Catch(func() error { return r.startWaiting(ctx) }),
			panics.Catch(func() error { return r.wakeIdle(ctx) }))
		if err == nil && waits {
			r.Log.Info("relay goes on")
		}
		waits = err != nil
		return err
	})
}

// startWaiting starts shards for what comes in a surge, and a workflow for each of the others.
func (r *Relay) startWaiting(ctx context.Context) error {
	waiting, err := r.Store.Waiting(ctx, 4*r.ShardSize)
	if err != nil {
		return err
	}
	var leaveOut []int64
	for _, w := range waiting {
		surging := w.Count > relaySingles && r.ShardSize > 1
		since := time.Since(r.sharded[w.SenderID])
		if surging || w.Stopped || since < shardPause { // the shard takes what comes now
			leaveOut = append(leaveOut, w.SenderID)
		}
		enough := w.Busy && since < shardPatience || w.Count < int64(r.ShardSize) && since < shardPause
		if !surging || w.Stopped || enough {
			continue
		}
		if err := r.startShard(ctx, w); err != nil {
			return err
		}
		r.sharded[w.SenderID] = time.Now()
	}
	return r.startUnstarted(ctx, leaveOut)
}

func (r *Relay) startShard(ctx context.Context, w store.Waiting) error {
	id, err := r.Store.NewShardID(ctx)
	if err != nil {
		return err
	}
	relayed.Inc()
	return r.Starter.StartShard(ctx, id, w.Channel, w.SenderID)
}

// startUnstarted starts the workflows of singles, those of surging and stopped senders excepted, and
// of heirs.
func (r *Relay) startUnstarted(ctx context.Context, leaveOut []int64) error {
	waiting, err := r.Store.Unstarted(ctx, leaveOut, relaySingles)
	if err != nil || len(waiting) == 0 {
		return err
	}
	var mu sync.Mutex
	var started []store.Owner
	g, startCtx := panics.WithContext(ctx)
	g.SetLimit(relayStarts)
	for _, w := range waiting {
		g.Go(func() (err error) {
			owner := store.Owner{Single: w.Single}
			if w.Single != nil {
				owner.WorkflowID = starter.NotificationWorkflowID(*w.Single)
				err = r.Starter.StartNotification(startCtx, *w.Single, w.Channel)
			} else {
				owner.WorkflowID = *w.Heir
				err = r.Starter.StartShard(startCtx, *w.Heir, w.Channel, 0)
			}
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			started = append(started, owner)
			return nil
		})
	}
	startErr := g.Wait()
	relayed.Add(float64(len(started)))
	return errors.Join(startErr, r.Store.MarkStarted(ctx, started...))
}

// wakeIdle wakes the owners of rows that could be claimed and were not. An owner whose workflow is
// closed or gone is replaced.
func (r *Relay) wakeIdle(ctx context.Context) error {
	if time.Since(r.looked) < wakeLook {
		return nil
	}
	r.looked = time.Now()
	for owner, at := range r.woken {
		if time.Since(at) > wakeEvery {
			delete(r.woken, owner)
		}
	}
	owners, err := r.Store.Idle(ctx, wakeAfter, activities.SlotAhead, wakeLimit)
	if err != nil {
		return err
	}
	for _, owner := range owners {
		if _, lately := r.woken[owner]; lately {
			continue
		}
		r.woken[owner] = time.Now() // one that fails keeps no other from being woken, and is tried again later
		alive, wakeErr := r.Starter.Wake(ctx, owner)
		if starter.Away(wakeErr) {
			return errors.Join(err, wakeErr)
		}
		if wakeErr != nil || alive {
			err = errors.Join(err, wakeErr)
			continue
		}
		n, replaceErr := r.Store.Bequeath(ctx, owner)
		if replaceErr != nil {
			err = errors.Join(err, replaceErr)
			continue
		}
		r.Log.Warn("replaced a workflow that is closed or gone", "workflow_id", owner, "notifications", n)
	}
	return err
}
