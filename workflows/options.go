package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/notify"
)

const (
	// ReconcileTimeout is how long one run of Reconcile may take. While it runs the next ones are
	// skipped, so it must end even when no worker takes its activities.
	ReconcileTimeout = 15 * time.Minute

	// CarrierCheckTimeout is how long a check is tried for while the carrier cannot be listed.
	CarrierCheckTimeout = 2 * time.Hour

	// longHistory is how many events a history has when the workflow goes on in a new one. A signal that
	// came meanwhile is not missed: the new run begins by looking at the ledger.
	longHistory = 2000
)

// options are how one kind of activity runs. It is tried until it succeeds or its error says otherwise: again at once
// when its worker died, after growing pauses when it failed, or after what its error asks for.
type options struct {
	queue        string
	timeout      time.Duration // of one try
	heartbeat    bool          // a worker that died is noticed before the timeout
	pause        time.Duration // after the first try; each further one is twice as long
	longestPause time.Duration // 0: 100 times the first
	limit        time.Duration // of all tries together; 0: none
	tries        int32         // 0: no limit
}

// sendOptions and batchOptions have the queue of their channel.
func sendOptions(c notify.Channel) options {
	return options{queue: activities.SendQueue(c), timeout: 10 * time.Minute, heartbeat: true, pause: 2 * time.Second, longestPause: time.Minute}
}

func batchOptions(c notify.Channel) options {
	return options{queue: activities.SendQueue(c), timeout: 5 * time.Minute, heartbeat: true, pause: time.Second, longestPause: 30 * time.Second}
}

var (
	statusOptions = options{
		queue: activities.StatusCheckQueue, timeout: 10 * time.Minute, heartbeat: true,
		pause: 2 * time.Second, longestPause: 5 * time.Minute,
	}
	// The next run tries again.
	reconcileOptions = options{
		queue: activities.StatusCheckQueue, timeout: 10 * time.Minute, heartbeat: true,
		pause: 10 * time.Second, limit: ReconcileTimeout - time.Minute, tries: 3,
	}
	carrierCheckOptions = options{
		queue: activities.StatusCheckQueue, timeout: CarrierCheckTimeout, heartbeat: true,
		pause: 5 * time.Second, longestPause: time.Minute, limit: CarrierCheckTimeout,
	}
	giveUpOptions  = options{queue: activities.StatusCheckQueue, timeout: time.Minute, pause: time.Second, longestPause: time.Minute}
	inboundOptions = options{queue: activities.InboundQueue, timeout: time.Minute, pause: 2 * time.Second, longestPause: 5 * time.Minute}
	// A list may have a million members. A try that stalls leaves time for others in the catch-up window.
	scheduleOptions = options{
		queue: activities.ReminderQueue, timeout: 5 * time.Minute, heartbeat: true, pause: time.Second, longestPause: 15 * time.Second,
	}
	syncOptions = options{
		queue: activities.SyncQueue, timeout: 10 * time.Minute, heartbeat: true, pause: time.Second, longestPause: 30 * time.Second,
	}
	taskRouterOptions = options{
		queue: activities.TaskRouterQueue, timeout: 30 * time.Minute, heartbeat: true, pause: time.Second, longestPause: 30 * time.Second,
	}
)

// apply makes them the options of activities under the context.
func (o options) apply(ctx workflow.Context) workflow.Context {
	of := workflow.ActivityOptions{
		TaskQueue: o.queue, StartToCloseTimeout: o.timeout, ScheduleToCloseTimeout: o.limit,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: o.pause, BackoffCoefficient: 2, MaximumInterval: o.longestPause, MaximumAttempts: o.tries,
		},
	}
	if o.heartbeat {
		of.HeartbeatTimeout = activities.HeartbeatTimeout
	}
	return workflow.WithActivityOptions(ctx, of)
}
