// Package workflows is workflow code only: deterministic, without I/O, SQL or Twilio. A workflow
// decides what comes next; activities do it, on the ledger.
package workflows

import (
	"errors"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/notify"
)

// TaskQueue is where workflow tasks run.
const TaskQueue = "workflows"

// Signals of the notification workflow. Both are sent to workflows that exist and never start one:
// on a closed workflow's id that would send the notification again.
const (
	SettledSignal = "settled" // the ledger has the final status; carries it as a notify.Status
	WakeSignal    = "wake"    // look at the ledger now: what the workflow waits for may have come
)

// NotificationInput names the notification to carry. Numbers and texts never enter a history.
type NotificationInput struct {
	ID      uuid.UUID
	Channel notify.Channel
}

// Notification carries one notification from ACCEPTED to its final status, which is its result: it
// sends it, waits for the webhook's signal, and asks the carrier when none comes. Where it looks again and again, because
// the carrier's queue stays full, it goes on in a new history.
func Notification(ctx workflow.Context, in NotificationInput) (notify.Status, error) {
	status, err := carry(ctx, in.Channel, activities.Ref{ID: &in.ID})
	if errors.Is(err, errLongHistory) {
		return status, workflow.NewContinueAsNewError(ctx, Notification, in)
	}
	return status, err
}

// ShardInput says what a shard carries: the notifications that have its workflow ID in the ledger
// and, where Adopt is not 0, singles of that sender which wait for the relay, until it is full.
type ShardInput struct {
	Channel notify.Channel
	Adopt   int64
}

// Shard carries many notifications of one sender by the same steps, at the cost of one workflow. Where
// those are many, because each waits for long at a slow pace, it goes on in a new history.
func Shard(ctx workflow.Context, in ShardInput) error {
	_, err := carry(ctx, in.Channel, activities.Ref{Adopt: in.Adopt})
	if errors.Is(err, errLongHistory) {
		return workflow.NewContinueAsNewError(ctx, Shard, in)
	}
	return err
}

var errLongHistory = errors.New("the history is long")

func carry(ctx workflow.Context, channel notify.Channel, ref activities.Ref) (notify.Status, error) {
	ref.WorkflowID = workflow.GetInfo(ctx).WorkflowExecution.ID
	n := notification{
		ref:     ref,
		channel: channel,
		settled: workflow.GetSignalChannel(ctx, SettledSignal),
		wake:    workflow.GetSignalChannel(ctx, WakeSignal),
	}
	defer drain(n.settled, n.wake) // what was signaled too late to matter
	return n.run(ctx)
}

// notification is the state machine that carries one notification, or one shard of them.
type notification struct {
	ref     activities.Ref
	channel notify.Channel
	settled workflow.ReceiveChannel
	wake    workflow.ReceiveChannel
}

func (n *notification) run(ctx workflow.Context) (notify.Status, error) {
	next, err := n.send(ctx)
	for err == nil && next.Action != activities.Done {
		if n.isLong(ctx) {
			return next.Status, errLongHistory
		}
		if status, settled := n.settledWithin(ctx, next.In); settled && n.ref.Adopt == 0 {
			return status, nil
		}
		// One that adopts looks at the ledger: since it was told, it may have adopted more.
		switch next.Action {
		case activities.Send:
			next, err = n.send(ctx)
		case activities.LookUp:
			next, err = n.lookUp(ctx)
		case activities.CheckStatus:
			next, err = n.checkStatus(ctx)
		}
	}
	return next.Status, err
}

// isLong reports whether the workflow should go on in a new history. A single of an older version stays in its
// own, however long it is.
func (n *notification) isLong(ctx workflow.Context) bool {
	if workflow.GetInfo(ctx).GetCurrentHistoryLength() <= longHistory {
		return false
	}
	return n.ref.ID == nil || workflow.GetVersion(ctx, "single-goes-on", workflow.DefaultVersion, 1) == 1
}

// settledWithin waits for the settled signal, at most d, and returns the status that it carries. A
// wake signal ends the wait too.
func (n *notification) settledWithin(ctx workflow.Context, d time.Duration) (status notify.Status, settled bool) {
	if n.settled.ReceiveAsync(&status) {
		return status, true
	}
	switch waitForSignal(ctx, d, n.settled, n.wake) {
	case n.settled:
		settled = n.settled.ReceiveAsync(&status)
	case n.wake:
		n.wake.ReceiveAsync(nil)
	}
	return status, settled
}

// send posts the notification. Its errors are safe to retry and say after how long; how often is
// counted in the ledger, which gives up at SEND_DEADLINE.
func (n *notification) send(ctx workflow.Context) (activities.Next, error) {
	return n.do(ctx, a.Send, sendOptions(n.channel))
}

// lookUp looks at the carrier for a send whose answer was lost.
func (n *notification) lookUp(ctx workflow.Context) (activities.Next, error) {
	return n.do(ctx, a.LookUp, statusOptions)
}

// checkStatus asks the carrier what became of the notification.
func (n *notification) checkStatus(ctx workflow.Context) (activities.Next, error) {
	return n.do(ctx, a.CheckStatus, statusOptions)
}

func (n *notification) do(ctx workflow.Context, activity any, how options) (next activities.Next, err error) {
	err = workflow.ExecuteActivity(how.apply(ctx), activity, n.ref).Get(ctx, &next)
	return next, err
}

// a names the activities: its methods are never called here.
var a *activities.Activities
