package rig

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/todoku/todoku/starter"
)

// Temporal answers what the product's workflows cost and whether any is left.
type Temporal struct{ client client.Client }

func dialTemporal(address string) (*Temporal, error) {
	c, err := client.NewLazyClient(client.Options{HostPort: address, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		return nil, fmt.Errorf("prepare Temporal client: %w", err)
	}
	return &Temporal{c}, nil
}

// Cost is what a workflow has written so far.
type Cost struct{ Events, Transitions int64 }

// Cost reads what a workflow has cost.
func (t *Temporal) Cost(ctx context.Context, workflowID string) (Cost, error) {
	description, err := t.client.DescribeWorkflow(ctx, workflowID, "")
	if err != nil {
		return Cost{}, fmt.Errorf("describe workflow: %w", err)
	}
	info := description.RawResponse.WorkflowExecutionInfo
	return Cost{info.HistoryLength, info.StateTransitionCount}, nil
}

// Open names some of the workflows that carry notifications and have not ended.
func (t *Temporal) Open(ctx context.Context) ([]string, error) {
	answer, err := t.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		PageSize: 100,
		Query:    `ExecutionStatus = "Running" AND WorkflowType IN ("Notification", "Shard", "Batch")`,
	})
	if err != nil {
		return nil, fmt.Errorf("list open workflows: %w", err)
	}
	var open []string
	for _, execution := range answer.Executions {
		open = append(open, execution.Execution.WorkflowId)
	}
	return open, nil
}

// PauseReconcile keeps Reconcile from running by itself, as soon as the workers have made its Schedule.
func (t *Temporal) PauseReconcile(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		err := t.client.ScheduleClient().GetHandle(ctx, starter.ReconcileScheduleID).Pause(ctx, client.SchedulePauseOptions{})
		if err == nil {
			return nil
		}
		if _, missing := errors.AsType[*serviceerror.NotFound](err); !missing {
			return fmt.Errorf("pause the schedule %s: %w", starter.ReconcileScheduleID, err)
		}
		sleep(ctx, 100*time.Millisecond)
	}
}

// TriggerReconcile lets Reconcile run now, and not only when its time has come.
func (t *Temporal) TriggerReconcile(ctx context.Context) error {
	reconcile := t.client.ScheduleClient().GetHandle(ctx, starter.ReconcileScheduleID)
	if err := reconcile.Trigger(ctx, client.ScheduleTriggerOptions{}); err != nil {
		return fmt.Errorf("trigger the schedule %s: %w", starter.ReconcileScheduleID, err)
	}
	return nil
}

// AwaitClosed waits until no workflow that carries notifications is open, at most so long, and returns
// some of those that are.
func (t *Temporal) AwaitClosed(ctx context.Context, limit time.Duration) (open []string, err error) {
	for end := time.Now().Add(limit); time.Now().Before(end) && ctx.Err() == nil; sleep(ctx, 250*time.Millisecond) {
		if open, err = t.Open(ctx); err == nil && len(open) == 0 {
			break
		}
	}
	return open, err
}
