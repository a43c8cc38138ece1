package starter

import (
	"context"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/todoku/todoku/workflows"
)

// StartInbound starts the workflow that follows a call. As with StartNotification, one that was started
// before is success; it does not hear the moment then.
func (s *Starter) StartInbound(ctx context.Context, workflowID string, in workflows.InboundInput) error {
	return s.start(ctx, client.StartWorkflowOptions{
		ID:                    workflowID,
		StaticSummary:         "one call that came in",
		TypedSearchAttributes: temporal.NewSearchAttributes(workflows.InboundAttribute.ValueSet(in.ID.String())),
	}, workflows.InboundCall, in)
}

// TellInbound tells the workflow of a call where it stands now. It reports whether there is such a
// workflow and it is open.
func (s *Starter) TellInbound(ctx context.Context, workflowID string, now workflows.InboundMoment) (alive bool, err error) {
	return s.signal(ctx, workflowID, workflows.InboundSignal, now)
}
