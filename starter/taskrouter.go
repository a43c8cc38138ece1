package starter

import (
	"context"
	"fmt"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/workflows"
)

// StartTaskRouter has the runs carried out that wait at TaskRouter. A workflow that does so already is success.
func (s *Starter) StartTaskRouter(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	_, err := s.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                       notify.TaskRouterWorkflowID,
		TaskQueue:                workflows.TaskQueue,
		WorkflowIDReusePolicy:    enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary:            "sets TaskRouter up",
		Priority:                 temporal.Priority{PriorityKey: singlePriority},
	}, workflows.TaskRouter)
	if err != nil {
		return fmt.Errorf("start the workflow of TaskRouter: %w", err)
	}
	return nil
}
