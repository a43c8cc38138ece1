package worker

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
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
	shardSize    = 500
)

// Relay starts workflows for accepted notifications that have none: because Temporal was away when
// they were accepted, because the process that accepted them died, or because more came at once
// than are started one by one. Every worker runs one; what two of them start is started once.
type Relay struct {
	Store   *store.Store
	Starter *starter.Starter
	Log     *slog.Logger
}

// Run relays until ctx ends.
func (r *Relay) Run(ctx context.Context) {
	failing := false
	for {
		err := r.round(ctx)
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

// round assigns a burst to shards and starts what has no workflow.
func (r *Relay) round(ctx context.Context) error {
	waiting, err := r.Store.Unstarted(ctx, relayAge, relaySingles+1)
	if err != nil {
		return err
	}
	if len(waiting) > relaySingles {
		for n := shardSize; n == shardSize; {
			if n, err = r.Store.AssignShard(ctx, relayAge, shardSize); err != nil {
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
	var singles []uuid.UUID
	var shards []string
	g, startCtx := errgroup.WithContext(ctx)
	g.SetLimit(relayStarts)
	for _, w := range waiting {
		g.Go(func() error {
			if w.Single != nil {
				if err := r.Starter.StartNotification(startCtx, *w.Single, w.Channel); err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				singles = append(singles, *w.Single)
				return nil
			}
			if err := r.Starter.StartShard(startCtx, *w.WorkflowID, w.Channel); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			shards = append(shards, *w.WorkflowID)
			return nil
		})
	}
	startErr := g.Wait()
	relayed.Add(float64(len(singles) + len(shards)))
	if err := r.Store.MarkStarted(ctx, singles, shards); err != nil {
		return err
	}
	return startErr
}
