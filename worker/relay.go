package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/todoku/todoku/starter"
	"github.com/todoku/todoku/store"
)

// The relay looks twice a second for notifications older than relayAge: by then whoever accepted
// them has started their workflows, or never will.
const (
	relayInterval = 500 * time.Millisecond
	relayAge      = time.Second
	relayStarts   = 8 // at the same time

	// Temporal starts a few dozen workflows a second on a small machine. When more singles wait, they
	// are carried in shards, each by one workflow.
	relaySingles = 50
)

// wakeAfter is how long a row that could be claimed may wait before its owner is woken, and how
// often the same owner is woken at most.
const (
	wakeAfter = 10 * time.Second
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

	woken map[string]time.Time
}

// Run relays until ctx ends.
func (r *Relay) Run(ctx context.Context) {
	r.woken = map[string]time.Time{}
	failing := false
	for {
		err := errors.Join(r.startWaiting(ctx), r.wakeIdle(ctx))
		if err != nil && ctx.Err() == nil && !failing {
			r.Log.Warn("relay waits: what is accepted is started when the database and Temporal answer again", "error", err)
		}
		if err == nil && failing {
			r.Log.Info("relay goes on")
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-time.After(relayInterval):
		}
	}
}

// startWaiting assigns a burst to shards and starts what has no workflow.
func (r *Relay) startWaiting(ctx context.Context) error {
	waiting, err := r.Store.Unstarted(ctx, relayAge, relaySingles+1)
	if err != nil {
		return err
	}
	if len(waiting) > relaySingles {
		for n := r.ShardSize; n == r.ShardSize; {
			if n, err = r.Store.AssignShard(ctx, relayAge, r.ShardSize); err != nil {
				return err
			}
		}
		if waiting, err = r.Store.Unstarted(ctx, relayAge, relaySingles); err != nil {
			return err
		}
	}
	return r.start(ctx, waiting)
}

func (r *Relay) start(ctx context.Context, waiting []store.Unstarted) error {
	if len(waiting) == 0 {
		return nil
	}
	var mu sync.Mutex
	var started []store.Owner
	g, startCtx := errgroup.WithContext(ctx)
	g.SetLimit(relayStarts)
	for _, w := range waiting {
		g.Go(func() (err error) {
			owner := store.Owner{Single: w.Single}
			if w.Single != nil {
				owner.WorkflowID = starter.NotificationWorkflowID(*w.Single)
				err = r.Starter.StartNotification(startCtx, *w.Single, w.Channel)
			} else {
				owner.WorkflowID = *w.WorkflowID
				err = r.Starter.StartShard(startCtx, *w.WorkflowID, w.Channel)
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
	for owner, at := range r.woken {
		if time.Since(at) > wakeEvery {
			delete(r.woken, owner)
		}
	}
	owners, err := r.Store.Idle(ctx, wakeAfter, wakeLimit)
	if err != nil {
		return err
	}
	for _, owner := range owners {
		if _, lately := r.woken[owner]; lately {
			continue
		}
		alive, err := r.Starter.Wake(ctx, owner)
		if err != nil {
			return err
		}
		r.woken[owner] = time.Now()
		if alive {
			continue
		}
		n, err := r.Store.Bequeath(ctx, owner)
		if err != nil {
			return err
		}
		r.Log.Warn("replaced a workflow that is closed or gone", "workflow_id", owner, "notifications", n)
	}
	return nil
}
