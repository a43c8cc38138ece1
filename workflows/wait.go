package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// waitForSignal waits for a signal, at most d, and returns its channel; nil: none came in time. The caller receives the
// signal. The timer is left to the closing workflow, since canceling it would cost an event: a workflow that goes on for
// long cancels the context instead.
func waitForSignal(ctx workflow.Context, d time.Duration, signals ...workflow.ReceiveChannel) (signaled workflow.ReceiveChannel) {
	if d <= 0 {
		return nil
	}
	for _, c := range signals {
		if c.Len() > 0 {
			return c
		}
	}
	selector := workflow.NewSelector(ctx).AddFuture(workflow.NewTimer(ctx, d), func(workflow.Future) {})
	for _, c := range signals {
		selector.AddReceive(c, func(workflow.ReceiveChannel, bool) { signaled = c })
	}
	selector.Select(ctx)
	return signaled
}

// drain receives every signal that has come, and reports whether there was one. The ledger has what they tell.
func drain(signals ...workflow.ReceiveChannel) (drained bool) {
	for _, c := range signals {
		for c.ReceiveAsync(nil) {
			drained = true
		}
	}
	return drained
}
