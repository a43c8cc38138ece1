package worker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/notify"
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

// wakeAfter is how long a row that could be claimed may wait before its owner is woken.
const (
	wakeAfter = 10 * time.Second
	wakeLook  = 2 * time.Second // between two looks
	wakeLimit = 100
)

// An owner that was woken so often in vain, within defaultPatience, may be stuck. It is woken every 30 s.
const (
	wakesBeforeStuck = 3
	defaultPatience  = 2 * time.Minute
	stuckLimit       = 10
	stuckWithin      = time.Minute
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

	// Patience is how long an owner is woken in vain before Temporal is asked whether it is stuck; without it,
	// two minutes.
	Patience time.Duration

	looked   time.Time // when wakeIdle last looked
	woken    map[string]wakes
	replaced []time.Time         // when owners that were stuck were replaced lately
	sharded  map[int64]time.Time // by sender: when its last shard was started
}

// Run relays until ctx ends.
func (r *Relay) Run(ctx context.Context) {
	r.woken, r.sharded = map[string]wakes{}, map[int64]time.Time{}
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
// of successors.
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
				owner.WorkflowID = notify.NotificationWorkflowID(*w.Single)
				err = r.Starter.StartNotification(startCtx, *w.Single, w.Channel)
			} else {
				owner.WorkflowID = *w.Successor
				err = r.Starter.StartShard(startCtx, *w.Successor, w.Channel, 0)
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

// wakes are how often an owner was woken and did not go on.
type wakes struct {
	first, last time.Time
	times       int
}

// wakeIdle wakes the owners of rows that could be claimed and were not. An owner whose workflow is
// closed or gone is replaced, and so is one that goes on waking in vain because it is stuck.
func (r *Relay) wakeIdle(ctx context.Context) error {
	patience := cmp.Or(r.Patience, defaultPatience)
	if time.Since(r.looked) < min(wakeLook, patience/wakesBeforeStuck) {
		return nil
	}
	r.looked = time.Now()
	pause := patience / (wakesBeforeStuck + 1) // between two wakes of one owner
	var lately []string
	for owner, of := range r.woken {
		switch {
		case time.Since(of.last) > 3*pause: // it was not idle when it could have been woken again
			delete(r.woken, owner)
		case time.Since(of.last) < pause:
			lately = append(lately, owner)
		}
	}
	owners, err := r.Store.Idle(ctx, wakeAfter, activities.SlotAhead, lately, wakeLimit)
	if err != nil {
		return err
	}
	for _, owner := range owners {
		wakeErr := r.wake(ctx, owner, patience)
		err = errors.Join(err, wakeErr)
		if starter.Away(wakeErr) {
			return err
		}
	}
	if len(owners) == wakeLimit { // a sender with many was resumed: the others need not wait
		r.looked = time.Time{}
	}
	return err
}

// wake wakes one owner. Its error keeps no other from being woken, unless Temporal is away.
func (r *Relay) wake(ctx context.Context, owner string, patience time.Duration) error {
	of, known := r.woken[owner]
	if !known {
		of.first = time.Now()
	}
	of.last, of.times = time.Now(), of.times+1
	r.woken[owner] = of
	why := "closed or gone"
	stuck, err := r.isStuck(ctx, owner, of, patience) // before the next signal, with which Temporal counts anew
	switch {
	case err != nil:
		return err
	case stuck:
		why = "stuck"
		err = r.Starter.Terminate(ctx, owner, "its task failed again and again: another workflow takes over")
		if err != nil {
			return err
		}
	default:
		alive, err := r.Starter.Wake(ctx, owner)
		if err != nil || alive {
			return err
		}
	}
	n, err := r.Store.Bequeath(ctx, owner)
	if err != nil {
		return err
	}
	delete(r.woken, owner)
	r.Log.Warn("replaced a workflow", "workflow_id", owner, "was", why, "notifications", n)
	return nil
}

// isStuck asks Temporal about an owner that was woken in vain for long enough. At most stuckLimit in
// stuckWithin are said to be stuck: what fails for all of them is an error of this version, which
// successors would have as well.
func (r *Relay) isStuck(ctx context.Context, owner string, of wakes, patience time.Duration) (bool, error) {
	if of.times <= wakesBeforeStuck || time.Since(of.first) < patience {
		return false, nil
	}
	r.replaced = slices.DeleteFunc(r.replaced, func(at time.Time) bool { return time.Since(at) > stuckWithin })
	if len(r.replaced) >= stuckLimit {
		return false, nil
	}
	stuck, err := r.Starter.Stuck(ctx, owner)
	if err == nil && stuck {
		r.replaced = append(r.replaced, time.Now())
	}
	return stuck, err
}
