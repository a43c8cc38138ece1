package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// longestCheckPause is the longest wait between two status checks of one notification.
const longestCheckPause = time.Hour

// CheckStatus asks the carrier by SID what became of a notification, and writes the answer by the
// same statement as a webhook's. Past the channel's deadline, a notification of which the carrier
// still says nothing final is UNKNOWN.
func (a *Activities) CheckStatus(ctx context.Context, ref Ref) (Next, error) {
	row, err := a.Store.Outstanding(ctx, ref.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return Next{}, temporal.NewNonRetryableApplicationError("the ledger has no such notification", "NotFound", nil)
	case err != nil:
		return Next{}, err
	case row.Status.Final():
		return Next{Action: Done, Status: row.Status}, nil
	case row.Status != notify.Pending:
		return Next{Action: Send, Status: row.Status}, nil
	}
	expired := row.SinceSent >= receiptDeadline(row.Channel)
	if row.TwilioSID != nil {
		next, err := a.fetch(ctx, ref, row)
		if missing, ok := errors.AsType[*carrier.Error](err); err != nil && !(ok && missing.NotFound()) && !expired {
			return Next{}, err
		}
		if err == nil && next.Action == Done {
			return next, nil
		}
	}
	if expired {
		_, err := a.Store.Decide(ctx, ref.ID, notify.Forsake, store.Failure{Kind: store.EventExpired,
			FailureCode: notify.CodeNoReceipt, Message: notify.LedgerMessage(notify.CodeNoReceipt, row.Channel, "")})
		if err != nil {
			return Next{}, err
		}
		return a.CheckStatus(ctx, ref) // final now, by us or by a receipt that was faster
	}
	return Next{Action: CheckStatus, In: a.checkPause(row), Status: notify.Pending}, nil
}

func (a *Activities) fetch(ctx context.Context, ref Ref, row store.Outstanding) (Next, error) {
	resource, err := a.Carrier.Fetch(ctx, row.Channel, *row.TwilioSID)
	if err != nil {
		return Next{}, err
	}
	receipt := resource.Receipt
	receipt.NotificationID, receipt.Source = ref.ID.String(), notify.FromPoll
	return a.settle(ctx, ref, receipt)
}

// checkPause grows with the time since sending: each wait is as long as all before it, up to an
// hour, and the last one ends at the deadline.
func (a *Activities) checkPause(row store.Outstanding) time.Duration {
	pause := min(max(row.SinceSent, a.Terms.StatusCheckDelay), longestCheckPause)
	return max(min(pause, receiptDeadline(row.Channel)-row.SinceSent), time.Second)
}
