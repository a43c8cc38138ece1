package workflows

import "go.temporal.io/sdk/workflow"

// taskRouterRuns is how many runs one history carries out.
const taskRouterRuns = 100

// TaskRouter carries out the runs that wait at TaskRouter, one after the other, and ends when none does. There is one
// of it at a time, so that no two runs write to Twilio together. What is written is in the ledger: files have numbers in
// them.
func TaskRouter(ctx workflow.Context) error {
	ctx = taskRouterOptions.apply(ctx)
	for range taskRouterRuns {
		var more bool
		if err := workflow.ExecuteActivity(ctx, a.CarryOutTaskRouter).Get(ctx, &more); err != nil || !more {
			return err
		}
	}
	return workflow.NewContinueAsNewError(ctx, TaskRouter)
}
