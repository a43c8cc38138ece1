package worker

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/todoku/todoku/starter"
	"github.com/todoku/todoku/store"
)

// The relay looks every second for notifications older than relayAge: by then whoever accepted
// them has started their workflows, or never will.
const (
	relayInterval = time.Second
	relayAge      = 2 * time.Second
	relayBatch    = 200
	relayStarts   = 16 // at the same time
)

// Relay starts workflows for accepted notifications that have none: because Temporal was away when
// they were accepted, or because the process that accepted them died. Every worker runs one; a
// notification that two of them start is started once.
type Relay struct {
	Store   *store.Store
	Starter *starter.Starter
	Log     *slog.Logger
}

// Run relays until ctx ends.
func (r *Relay) Run(ctx context.Context) {
	failing := false
	for {
		n, err := r.round(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			r.Log.Warn("relay waits: what is accepted is started when the database and Temporal answer again", "error", err)
		}
		if err == nil && failing {
			r.Log.Info("relay goes on")
		}
		if failing = err != nil; !failing && n == relayBatch {
			continue // more are waiting
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(relayInterval):
		}
	}
}

// round starts one batch and returns how many were waiting.
func (r *Relay) round(ctx context.Context) (int, error) {
	waiting, err := r.Store.Unstarted(ctx, relayAge, relayBatch)
	if err != nil || len(waiting) == 0 {
		return 0, err
	}
	started := make([]uuid.UUID, len(waiting))
	g, startCtx := errgroup.WithContext(ctx)
	g.SetLimit(relayStarts)
	for i, n := range waiting {
		g.Go(func() error {
			if err := r.Starter.StartNotification(startCtx, n.ID, n.Channel); err != nil {
				return err
			}
			started[i] = n.ID
			return nil
		})
	}
	startErr := g.Wait()
	done := make([]uuid.UUID, 0, len(started))
	for _, id := range started {
		if id != uuid.Nil {
			done = append(done, id)
		}
	}
	if err := r.Store.MarkStarted(ctx, done...); err != nil {
		return len(waiting), err
	}
	relayed.Add(float64(len(done)))
	return len(waiting), startErr
}
