package workflows

import (
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
)

// Search attributes, by which sends are found in Temporal's Web UI. They are set at the start,
// which costs no event. Like workflow IDs they are not encrypted: no personal data.
var (
	ChannelAttribute      = temporal.NewSearchAttributeKeyKeyword("TodokuChannel")
	NotificationAttribute = temporal.NewSearchAttributeKeyKeyword("TodokuNotificationId")
	BatchAttribute        = temporal.NewSearchAttributeKeyKeyword("TodokuBatchId")

	// ScheduleHashAttribute is of Schedules, and not of workflows: which ledger each is of,
	// and what the sync made it of.
	ScheduleHashAttribute = temporal.NewSearchAttributeKeyKeyword("TodokuScheduleHash")
	InboundAttribute      = temporal.NewSearchAttributeKeyKeyword("TodokuInboundCallId")
)

// SearchAttributes are the attributes that the namespace must have before a workflow can start.
var SearchAttributes = map[string]enums.IndexedValueType{
	ChannelAttribute.GetName():      enums.INDEXED_VALUE_TYPE_KEYWORD,
	NotificationAttribute.GetName(): enums.INDEXED_VALUE_TYPE_KEYWORD,
	BatchAttribute.GetName():        enums.INDEXED_VALUE_TYPE_KEYWORD,
	ScheduleHashAttribute.GetName(): enums.INDEXED_VALUE_TYPE_KEYWORD,
	InboundAttribute.GetName():      enums.INDEXED_VALUE_TYPE_KEYWORD,
}
