package notify

import (
	"maps"
	"slices"
)

// taskEvents are the events of TaskRouter that are about tasks, and what each says of a call
// (https://www.twilio.com/docs/taskrouter/api/event/reference). TaskRouter is asked for these and no others. A canceled
// task's reason says more: see package carrier.
var taskEvents = map[string]InboundWord{
	"task.created":                 WordWaiting,
	"task.updated":                 WordNoted,
	"task.canceled":                WordNoted,
	"task.wrapup":                  WordWrapUp,
	"task.completed":               WordFinished,
	"task.deleted":                 WordNoted,
	"task.transfer-initiated":      WordNoted,
	"task.transfer-attempt-failed": WordNoted,
	"task.transfer-failed":         WordNoted,
	"task.transfer-canceled":       WordNoted,
	"task.transfer-completed":      WordNoted,
	"task-queue.entered":           WordWaiting,
	"task-queue.moved":             WordNoted,
	"task-queue.timeout":           WordNoted,
	"workflow.timeout":             WordTimedOut,
	"reservation.created":          WordReserved,
	"reservation.accepted":         WordAnswered,
	"reservation.rejected":         WordReleased,
	"reservation.timeout":          WordReleased,
	"reservation.canceled":         WordReleased,
	"reservation.rescinded":        WordReleased,
	"reservation.failed":           WordReleased,
	"reservation.wrapup":           WordFinished,
	"reservation.completed":        WordFinished,
}

// TaskEventWord is what an event of TaskRouter says of a call.
func TaskEventWord(kind string) InboundWord {
	if word, known := taskEvents[kind]; known {
		return word
	}
	return WordNoted
}

// TaskEvents lists the events that TaskRouter is asked for, in their order.
func TaskEvents() []string { return slices.Sorted(maps.Keys(taskEvents)) }
