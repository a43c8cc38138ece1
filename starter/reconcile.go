package starter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/workflows"
)

// ReconcileScheduleID is the Temporal Schedule that runs Reconcile.
const ReconcileScheduleID = "todoku-reconcile"

// A run that could not be started in time is not made up for: the next one does its work.
const reconcileCatchup = time.Minute

// EnsureReconcileSchedule makes the schedule of Reconcile, or makes an existing one as it should be.
// Several workers may call it at the same time. A schedule that somebody has paused stays paused, also
// where that happens at the same moment: the next call mends what else there is.
func (s *Starter) EnsureReconcileSchedule(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	want := reconcileSchedule()
	_, err := s.client.ScheduleClient().Create(ctx, want)
	if err == nil {
		return nil
	}
	if !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return fmt.Errorf("create the schedule %s: %w", ReconcileScheduleID, err)
	}
	handle := s.client.ScheduleClient().GetHandle(ctx, ReconcileScheduleID)
	have, err := handle.Describe(ctx)
	if err != nil {
		return fmt.Errorf("describe the schedule %s: %w", ReconcileScheduleID, err)
	}
	if reconcileScheduleIsRight(&have.Schedule) {
		return nil
	}
	err = handle.Update(unlessChanged(ctx), client.ScheduleUpdateOptions{DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
		schedule := in.Description.Schedule
		if reconcileScheduleIsRight(&schedule) { // another worker was faster
			return nil, temporal.ErrSkipScheduleUpdate
		}
		schedule.Spec, schedule.Action = &want.Spec, want.Action
		schedule.Policy = &client.SchedulePolicies{Overlap: want.Overlap, CatchupWindow: want.CatchupWindow}
		return &client.ScheduleUpdate{Schedule: &schedule}, nil
	}})
	if err != nil {
		return fmt.Errorf("update the schedule %s: %w", ReconcileScheduleID, err)
	}
	return nil
}

func reconcileSchedule() client.ScheduleOptions {
	return client.ScheduleOptions{
		ID:   ReconcileScheduleID,
		Spec: client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: activities.ReconcileInterval}}},
		Action: &client.ScheduleWorkflowAction{
			ID:                       notify.ReconcileWorkflowID,
			Workflow:                 workflows.Reconcile,
			TaskQueue:                workflows.TaskQueue,
			WorkflowExecutionTimeout: workflows.ReconcileTimeout,
			StaticSummary:            "settles what nobody else does",
		},
		Overlap:       enums.SCHEDULE_OVERLAP_POLICY_SKIP,
		CatchupWindow: reconcileCatchup,
	}
}

// reconcileScheduleIsRight compares what matters: the server fills in and rewrites the rest.
func reconcileScheduleIsRight(have *client.Schedule) bool {
	action, ok := have.Action.(*client.ScheduleWorkflowAction)
	return ok && action.Workflow == "Reconcile" && action.TaskQueue == workflows.TaskQueue &&
		action.WorkflowExecutionTimeout == workflows.ReconcileTimeout &&
		have.Spec != nil && len(have.Spec.Intervals) == 1 && have.Spec.Intervals[0].Every == activities.ReconcileInterval &&
		len(have.Spec.Calendars) == 0 && len(have.Spec.Skip) == 0 &&
		have.Policy != nil && have.Policy.Overlap == enums.SCHEDULE_OVERLAP_POLICY_SKIP && have.Policy.CatchupWindow == reconcileCatchup
}
