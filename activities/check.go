package activities

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

const (
	longestCheckPause = time.Hour // the longest wait between two status checks of one notification
	checkLimit        = 1000      // how many one run asks for at most
	checksInFlight    = 8
)

// CheckStatus asks the carrier by SID what became of the notifications whose time to be asked for
// has come, and writes the answers by the same statement as a webhook's. Past the channel's
// deadline, a notification of which the carrier still says nothing final is UNKNOWN.
func (a *Activities) CheckStatus(ctx context.Context, ref Ref) (Next, error) {
	stopBeating := heartbeat(ctx)
	defer stopBeating()

	rows, err := a.Store.Unsettled(ctx, ref.owner(), a.Terms.StatusCheckDelay, checkLimit)
	if err != nil {
		return Next{}, err
	}
	var g errgroup.Group
	g.SetLimit(checksInFlight)
	for _, row := range rows {
		g.Go(func() error { return a.check(ctx, row) })
	}
	if err := g.Wait(); err != nil {
		return Next{}, err
	}
	return a.next(ctx, ref)
}

// check asks for one notification. One that stays PENDING is asked for again later, or is UNKNOWN
// when its deadline has passed.
func (a *Activities) check(ctx context.Context, row store.Unsettled) error {
	expired := row.SinceSent >= receiptDeadline(row.Channel)
	if row.TwilioSID != nil {
		err := a.fetch(ctx, row)
		missing, ok := errors.AsType[*carrier.Error](err)
		if err != nil && !(ok && missing.NotFound()) && !expired {
			return err
		}
	}
	if expired {
		_, err := a.Store.Decide(ctx, row.ID, notify.Forsake, store.Failure{Kind: store.EventExpired,
			FailureCode: notify.CodeNoReceipt, Message: notify.LedgerMessage(notify.CodeNoReceipt, row.Channel, "")})
		return err
	}
	return a.Store.CheckAgain(ctx, row.ID, a.checkPause(row)) // changes nothing when the answer was final
}

func (a *Activities) fetch(ctx context.Context, row store.Unsettled) error {
	resource, err := a.Carrier.Fetch(ctx, row.Channel, *row.TwilioSID)
	if err != nil {
		return err
	}
	receipt := resource.Receipt
	receipt.NotificationID, receipt.Source = row.ID.String(), notify.FromPoll
	return a.settle(ctx, receipt)
}

// checkPause grows with the time since sending: each wait is as long as all before it, up to an
// hour, and the last one ends at the deadline.
func (a *Activities) checkPause(row store.Unsettled) time.Duration {
	pause := min(max(row.SinceSent, a.Terms.StatusCheckDelay), longestCheckPause)
	return max(min(pause, receiptDeadline(row.Channel)-row.SinceSent), time.Second)
}
