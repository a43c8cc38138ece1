// Package settlement does what follows once notifications have settled: it tells workflows that nothing is left to wait
// for, and stops the senders that the carrier refuses.
package settlement

import (
	"context"
	"log/slog"
	"sync"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/panics"
	"github.com/todoku/todoku/store"
)

var untoldTotal = promauto.NewCounter(prometheus.CounterOpts{
	Name: "todoku_workflows_untold_total",
	Help: "Workflows that were not told of a final status and find it in the ledger at their next look.",
})

// signalsInFlight is how many signals one call of Notify sends at the same time. When so many have failed, Temporal is
// away, and the rest is not tried.
const signalsInFlight = 8

// Signaler tells a workflow that what it carries has a final status. A workflow that is closed or unknown is success.
type Signaler interface {
	Settled(ctx context.Context, workflowID string, status notify.Status) error
}

// Notifier tells workflows that nothing is left for them to wait for. It never starts one. A workflow that it does not
// reach finds the status in the ledger at its next look.
type Notifier struct {
	Store     *store.Store
	Workflows Signaler
	Log       *slog.Logger

	// Submit runs a function beside the caller, or reports that it has no room for it. Nil: Notify waits until
	// everything is told.
	Submit func(func(context.Context)) bool
}

// Final is a row that has just become final.
type Final struct {
	ID         uuid.UUID
	WorkflowID string // its owner
	Status     notify.Status
}

// JustFinal selects the rows that have just become final and have an owner.
func JustFinal(settled []store.Settled) (final []Final) {
	for _, s := range settled {
		if s.JustSettled() && s.WorkflowID != nil {
			final = append(final, Final{s.ID, *s.WorkflowID, s.Status})
		}
	}
	return final
}

// Canceled stands for rows of these owners that were canceled.
func Canceled(owners []string) (final []Final) {
	for _, owner := range owners {
		final = append(final, Final{WorkflowID: owner, Status: notify.Canceled})
	}
	return final
}

// Notify tells a notification's own workflow at once, and an owner of many when the last of its rows is final, since the
// signal ends it. It reports whether Temporal has taken every signal that is due, as far as it waits for them.
func (n *Notifier) Notify(ctx context.Context, rows ...Final) bool {
	var own, shared []Final
	for _, row := range rows {
		if row.WorkflowID == notify.NotificationWorkflowID(row.ID) {
			own = append(own, row)
		} else {
			shared = append(shared, row)
		}
	}
	if n.Submit == nil {
		ownTold := n.signal(ctx, own)
		return n.signalFinished(ctx, shared) && ownTold
	}
	for _, row := range own {
		n.submit(func(ctx context.Context) { n.signal(ctx, []Final{row}) })
	}
	if len(shared) > 0 {
		n.submit(func(ctx context.Context) { n.signalFinished(ctx, shared) })
	}
	return true
}

func (n *Notifier) submit(do func(context.Context)) {
	if !n.Submit(do) {
		untoldTotal.Inc()
	}
}

// signalFinished signals the owners of the rows that have no other row left.
func (n *Notifier) signalFinished(ctx context.Context, rows []Final) bool {
	status := map[string]notify.Status{}
	var owners []string
	for _, row := range rows {
		if _, known := status[row.WorkflowID]; !known {
			owners = append(owners, row.WorkflowID)
		}
		status[row.WorkflowID] = row.Status
	}
	if len(owners) == 0 {
		return true
	}
	finished, err := n.Store.Finished(ctx, owners)
	if err != nil {
		n.untold(ctx, len(owners), err)
		return false
	}
	rows = nil
	for _, owner := range finished {
		rows = append(rows, Final{WorkflowID: owner, Status: status[owner]})
	}
	return n.signal(ctx, rows)
}

// signal signals the owner of each row.
func (n *Notifier) signal(ctx context.Context, rows []Final) bool {
	var mu sync.Mutex
	var errs []error
	away := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(errs) >= signalsInFlight
	}
	tried := 0
	g := panics.NewGroup()
	g.SetLimit(signalsInFlight)
	for _, row := range rows {
		if away() {
			break
		}
		tried++
		g.Go(func() error {
			err := n.Workflows.Settled(ctx, row.WorkflowID, row.Status)
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		n.untold(ctx, len(rows)-tried+len(errs), errs[0])
	}
	return len(errs) == 0
}

func (n *Notifier) untold(ctx context.Context, workflows int, err error) {
	untoldTotal.Add(float64(workflows))
	n.Log.WarnContext(ctx, "workflows not told: they will look at the ledger by themselves", "workflows", workflows, "error", err)
}
