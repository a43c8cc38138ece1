// Package owners tells workflows that they have nothing left to wait for.
package owners

import (
	"context"
	"log/slog"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/todoku/todoku/api/background"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

var untoldTotal = promauto.NewCounter(prometheus.CounterOpts{
	Name: "todoku_workflows_untold_total",
	Help: "Workflows that were not told of a final status and find it in the ledger at their next look.",
})

// Signaler tells a workflow that what it carries has a final status. A workflow that is closed or
// unknown is success.
type Signaler interface {
	Settled(ctx context.Context, workflowID string, status notify.Status) error
}

// Teller tells the owners of rows that became final, beside the requests. It never starts a workflow.
type Teller struct {
	Store     *store.Store
	Workflows Signaler
	Tasks     *background.Tasks // what finds no place is left to the workflows' own looks at the ledger
	Logger    *slog.Logger
}

// Final is a row that has just become final.
type Final struct {
	ID         uuid.UUID
	WorkflowID string // its owner
	Status     notify.Status
}

// Tell tells a notification's own workflow at once. An owner of many is told when the last of its
// rows is final: the signal ends it.
func (t *Teller) Tell(rows ...Final) {
	many := make(map[string]notify.Status)
	for _, row := range rows {
		if row.WorkflowID == notify.NotificationWorkflowID(row.ID) {
			t.submit(func(ctx context.Context) { t.signal(ctx, row.WorkflowID, row.Status) })
		} else {
			many[row.WorkflowID] = row.Status
		}
	}
	if len(many) > 0 {
		t.submit(func(ctx context.Context) { t.tellFinished(ctx, many) })
	}
}

func (t *Teller) tellFinished(ctx context.Context, many map[string]notify.Status) {
	owners := make([]string, 0, len(many))
	for owner := range many {
		owners = append(owners, owner)
	}
	finished, err := t.Store.Finished(ctx, owners)
	if err != nil {
		t.untold(ctx, len(owners), err)
		return
	}
	for _, owner := range finished {
		t.signal(ctx, owner, many[owner])
	}
}

func (t *Teller) signal(ctx context.Context, owner string, status notify.Status) {
	if err := t.Workflows.Settled(ctx, owner, status); err != nil {
		t.untold(ctx, 1, err)
	}
}

func (t *Teller) submit(tell func(context.Context)) {
	if !t.Tasks.Submit(tell) {
		untoldTotal.Inc()
	}
}

func (t *Teller) untold(ctx context.Context, workflows int, err error) {
	untoldTotal.Add(float64(workflows))
	t.Logger.WarnContext(ctx, "workflows not told: they will look at the ledger by themselves", "workflows", workflows, "error", err)
}
