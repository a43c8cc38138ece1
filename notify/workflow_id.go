package notify

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// The workflow IDs, all of them except those of the relay's shards, which the ledger numbers (relay/1, relay/2 …). They
// are here because the ledger, which must know nothing of workflows, writes them too.
const (
	ScheduleSyncWorkflowID = "schedule-sync" // the one workflow that syncs schedules
	TaskRouterWorkflowID   = "taskrouter"    // the one workflow that writes to TaskRouter
	ReconcileWorkflowID    = "reconcile"     // Temporal adds the time of each run
)

// batchPrefix begins the ID of every workflow that carries a batch or a part of one.
const batchPrefix = "batch/"

// NotificationWorkflowID is the workflow that carries one notification.
func NotificationWorkflowID(id uuid.UUID) string { return "notification/" + id.String() }

// BatchWorkflowID is the workflow that carries a batch.
func BatchWorkflowID(id uuid.UUID) string { return batchPrefix + id.String() }

// ShardWorkflowID is the workflow that carries the n-th shard of a batch, from 0.
func ShardWorkflowID(batch uuid.UUID, n int) string {
	return fmt.Sprintf("%s%s/%d", batchPrefix, batch, n)
}

// BatchOfWorkflow is the id of the batch that a workflow carries, or a part of which; ok: there is one.
func BatchOfWorkflow(workflowID string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(workflowID, batchPrefix)
	id, _, _ = strings.Cut(rest, "/")
	return id, ok
}

// CarrierCheckWorkflowID is the workflow that makes a check.
func CarrierCheckWorkflowID(check uuid.UUID) string { return "carrier-check/" + check.String() }

// InboundWorkflowID is the workflow that follows one call that came in.
func InboundWorkflowID(id uuid.UUID) string { return "inbound/" + id.String() }

// SuccessorWorkflowID is the workflow that takes the place of one that is closed or gone: <id>/r1, then <id>/r2 and so on.
func SuccessorWorkflowID(workflowID string) string {
	if base, n, ok := strings.Cut(workflowID, "/r"); ok {
		if k, err := strconv.Atoi(n); err == nil {
			return fmt.Sprintf("%s/r%d", base, k+1)
		}
	}
	return workflowID + "/r1"
}

// SchedulePrefix begins the IDs of the Temporal Schedules of schedules, and so those of the runs that they start.
const SchedulePrefix = "schedule/"

// ScheduleID is the Temporal Schedule of a schedule.
func ScheduleID(id int64) string { return SchedulePrefix + strconv.FormatInt(id, 10) }

// ParseScheduleID says which schedule a Temporal Schedule belongs to, if to any.
func ParseScheduleID(temporalID string) (id int64, ok bool) {
	digits, ok := strings.CutPrefix(temporalID, SchedulePrefix)
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseInt(digits, 10, 64)
	return id, err == nil && ScheduleID(id) == temporalID
}
