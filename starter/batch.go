package starter

import (
	"context"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/workflows"
)

// StartBatch starts the workflow that carries a batch. As with StartNotification, one that was
// started before is success.
func (s *Starter) StartBatch(ctx context.Context, workflowID string, id uuid.UUID, channel notify.Channel) error {
	return s.start(ctx, client.StartWorkflowOptions{
		ID:            workflowID,
		StaticSummary: "a batch of " + channelNames[channel] + "s",
		Priority:      temporal.Priority{PriorityKey: batchPriority},
		TypedSearchAttributes: temporal.NewSearchAttributes(
			workflows.ChannelAttribute.ValueSet(string(channel)), workflows.BatchAttribute.ValueSet(id.String())),
	}, workflows.Batch, workflows.BatchInput{ID: id, Channel: channel})
}

// StartBatchShard starts the workflow that carries a part of a batch: the one notification that is
// given, or all that it owns in the ledger.
func (s *Starter) StartBatchShard(ctx context.Context, workflowID string, channel notify.Channel, single *uuid.UUID) error {
	attributes := []temporal.SearchAttributeUpdate{workflows.ChannelAttribute.ValueSet(string(channel))}
	if batch, ok := notify.BatchOfWorkflow(workflowID); ok {
		attributes = append(attributes, workflows.BatchAttribute.ValueSet(batch))
	}
	options := client.StartWorkflowOptions{ID: workflowID, Priority: temporal.Priority{PriorityKey: batchPriority}}
	if single == nil {
		options.StaticSummary = "a shard of a batch of " + channelNames[channel] + "s"
		options.TypedSearchAttributes = temporal.NewSearchAttributes(attributes...)
		return s.start(ctx, options, workflows.Shard, workflows.ShardInput{Channel: channel})
	}
	options.StaticSummary = "one " + channelNames[channel] + " of a batch"
	options.TypedSearchAttributes = temporal.NewSearchAttributes(append(attributes, workflows.NotificationAttribute.ValueSet(single.String()))...)
	return s.start(ctx, options, workflows.Notification, workflows.NotificationInput{ID: *single, Channel: channel})
}

// StartCarrierCheck starts the workflow of a check. As with StartNotification, one that was started
// before is success.
func (s *Starter) StartCarrierCheck(ctx context.Context, check, batch uuid.UUID) error {
	return s.start(ctx, client.StartWorkflowOptions{
		ID:                    notify.CarrierCheckWorkflowID(check),
		StaticSummary:         "checks a batch against the carrier's list",
		Priority:              temporal.Priority{PriorityKey: batchPriority},
		TypedSearchAttributes: temporal.NewSearchAttributes(workflows.BatchAttribute.ValueSet(batch.String())),
	}, workflows.CarrierCheck, workflows.CarrierCheckInput{ID: check})
}
