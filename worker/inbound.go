package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/panics"
	"github.com/todoku/todoku/settlement"
	"github.com/todoku/todoku/starter"
	"github.com/todoku/todoku/store"
	"github.com/todoku/todoku/workflows"
)

const (
	inboundInterval = 100 * time.Millisecond
	inboundLimit    = 32 // calls that one look takes on
	inboundAtOnce   = 8  // starts and signals in flight
	figuresEvery    = 5 * time.Second
)

// Inbound is the relay of calls that come in: it starts their workflows and tells them what the ledger
// has learnt, many events at once where Temporal is slower than they come. Workflows that are closed or
// gone are replaced. It also measures the queue. Every worker runs one; they share the calls.
type Inbound struct {
	Store   *store.Store
	Starter *starter.Starter
	Log     *slog.Logger

	// CheckAfter is how long a call may be silent before the carrier is asked whether it goes on.
	CheckAfter time.Duration

	measured time.Time
}

// Run goes on until ctx ends.
func (i *Inbound) Run(ctx context.Context) {
	repeat(ctx, i.Log, "inbound", inboundInterval, "workflows of calls wait until the database and Temporal answer again", i.look)
}

// look tells until there is no more to tell.
func (i *Inbound) look(ctx context.Context) error {
	for {
		told, err := i.tell(ctx)
		if err = errors.Join(err, i.measure(ctx)); err != nil || told < inboundLimit {
			return err
		}
	}
}

// tell brings the news of some calls to their workflows, and returns of how many.
func (i *Inbound) tell(ctx context.Context) (int, error) {
	news, err := i.Store.TakeInboundNews(ctx, inboundLimit)
	if err != nil || len(news) == 0 {
		return 0, err
	}
	var mu sync.Mutex
	var told []store.InboundTold
	g, telling := panics.WithContext(ctx)
	g.SetLimit(inboundAtOnce)
	for _, n := range news {
		g.Go(func() error {
			workflowID, err := i.tellOne(telling, n)
			if err != nil || workflowID == "" {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			told = append(told, store.InboundTold{ID: n.ID, WorkflowID: workflowID, Version: n.Version})
			return nil
		})
	}
	err = g.Wait()
	return len(news), errors.Join(err, i.Store.MarkInboundTold(ctx, i.CheckAfter+activities.InboundPatience, told...))
}

// tellOne starts or tells the workflow of a call and returns its ID. It is empty where the workflow was
// gone: another one is started at the next look.
func (i *Inbound) tellOne(ctx context.Context, n store.InboundNews) (string, error) {
	workflowID := notify.InboundWorkflowID(n.ID)
	if n.WorkflowID != nil {
		workflowID = *n.WorkflowID
	}
	if n.State == notify.InboundAnswered || n.State == notify.InboundFinished {
		if err := i.withdraw(ctx, n.ID); err != nil {
			return "", err
		}
	}
	now := workflows.InboundMoment{State: n.State, Operator: n.Operator}
	if !n.Started {
		return workflowID, i.Starter.StartInbound(ctx, workflowID, workflows.InboundInput{ID: n.ID, Now: now, CheckAfter: i.CheckAfter})
	}
	alive, err := i.Starter.TellInbound(ctx, workflowID, now)
	if alive || err != nil {
		return workflowID, err
	}
	i.Log.Warn("replaced a call's workflow that is closed or gone", "workflow_id", workflowID)
	return "", i.Store.BequeathInbound(ctx, n.ID, workflowID)
}

// withdraw cancels what was to be done about earlier calls of somebody who speaks with an operator now.
func (i *Inbound) withdraw(ctx context.Context, id uuid.UUID) error {
	owners, err := i.Store.WithdrawFollowUps(ctx, id)
	notifier := settlement.Notifier{Store: i.Store, Workflows: i.Starter, Log: i.Log}
	notifier.Notify(ctx, settlement.Canceled(owners)...)
	return err
}

// measure keeps the gauges of the queue.
func (i *Inbound) measure(ctx context.Context) error {
	if time.Since(i.measured) < figuresEvery {
		return nil
	}
	i.measured = time.Now()
	policy, err := i.Store.InboundPolicy(ctx)
	if err != nil {
		return err
	}
	figures, err := i.Store.InboundFigures(ctx, time.Hour, policy.ServiceThreshold())
	if err != nil {
		return err
	}
	showFigures(figures)
	return nil
}
