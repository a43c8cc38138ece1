package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/notify"
)

const (
	queueLook     = 2 * time.Second
	queuePatience = 10 * time.Second // without a callback, before the carrier is asked what is still queued
	queueListing  = 30 * time.Second // between two such questions, over all workers
)

// CarrierQueues keeps the limit of the carrier's queue from holding up what has left that queue, while callbacks do
// not say so: it asks the carrier. Every worker runs one; they share the work.
type CarrierQueues struct {
	Activities *activities.Activities
	Log        *slog.Logger
}

// Run goes on until ctx ends.
func (q *CarrierQueues) Run(ctx context.Context) {
	repeat(ctx, q.Log, "carrier queues", queueLook, "what waits for room in Twilio's queue waits until the database and Twilio answer again", q.look)
}

func (q *CarrierQueues) look(ctx context.Context) error {
	var errs []error
	for _, channel := range []notify.Channel{notify.SMS, notify.Call} {
		errs = append(errs, q.lookAt(ctx, channel))
	}
	return errors.Join(errs...)
}

func (q *CarrierQueues) lookAt(ctx context.Context, channel notify.Channel) error {
	limit := q.Activities.Terms.QueueLimit(channel)
	if limit.Singles == 0 {
		return nil
	}
	stalled, err := q.Activities.Store.StalledQueues(ctx, channel, limit, queuePatience, queueListing)
	errs := []error{err}
	for _, queue := range stalled {
		if err := q.Activities.ListQueue(ctx, channel, queue.Window); err != nil {
			errs = append(errs, err)
			continue
		}
		off, err := q.Activities.Store.UnlimitQueue(ctx, queue.SenderID, limit, queuePatience)
		if off {
			q.Log.WarnContext(ctx, "no status callbacks come: what Twilio may have queued has no limit until one comes",
				"sender_id", queue.SenderID, "channel", channel)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
