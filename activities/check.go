package activities

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/panics"
	"github.com/todoku/todoku/store"
)

const (
	longestCheckPause = time.Hour // the longest wait between two status checks of one notification
	checkLimit        = 1000      // how many rows one run asks for by SID at most
	checksInFlight    = 8
	fewRows           = 20 // so many are asked for by SID; more are listed
)

// CheckStatus asks the carrier what became of the workflow's notifications whose time to be asked
// for has come, and writes the answers by the same statement as a webhook's. Past the channel's
// deadline, a notification of which the carrier still says nothing final is UNKNOWN.
func (a *Activities) CheckStatus(ctx context.Context, ref Ref) (Next, error) {
	stopBeating := heartbeat(ctx)
	defer stopBeating()

	_, err := a.check(ctx, func() ([]store.Unsettled, error) {
		return a.Store.Unsettled(ctx, ref.owner(), a.Terms.StatusCheckDelay, checkLimit)
	})
	if err != nil {
		return Next{}, err
	}
	return a.next(ctx, ref)
}

// check asks the carrier for the rows that due reads, which are of one channel, and returns what it
// settled, rows of others included. Few rows are fetched by SID. Many are listed, in a listing that
// all checks share which fall due together: it settles every row that it shows, whoever owns it.
// What a list cannot show (what still waits in the carrier's queue has no time of sending) is
// fetched by SID, before anything is called UNKNOWN.
func (a *Activities) check(ctx context.Context, due func() ([]store.Unsettled, error)) ([]store.Settled, error) {
	var settled []store.Settled
	for n := 0; ; n++ {
		rows, err := due()
		if err != nil || len(rows) == 0 {
			return settled, err
		}
		if canceled := slices.DeleteFunc(slices.Clone(rows), func(r store.Unsettled) bool { return !r.Cancel }); len(canceled) > 0 {
			some, err := a.fetch(ctx, canceled)
			if settled = append(settled, some...); err != nil {
				return settled, err
			}
			continue
		}
		many, err := a.many(ctx, rows)
		switch {
		case errors.Is(err, store.ErrNotFound):
			continue // another check was faster
		case err != nil:
			return settled, err
		case !many || n >= listingsPerRun:
			some, err := a.fetch(ctx, rows)
			return append(settled, some...), err
		}
		some, err := a.listDue(ctx, rows[0].Channel)
		settled = append(settled, some...)
		if err != nil {
			return settled, err
		}
	}
}

// many reports whether a listing is worth more than asking for each row: when there are many, or
// many more of others that were sent about when one of these was. A row that a listing has covered
// since its time came, and not shown, does not count.
func (a *Activities) many(ctx context.Context, rows []store.Unsettled) (bool, error) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r store.Unsettled) bool { return r.TwilioSID == nil || r.Listed })
	if len(rows) == 0 || len(rows) > fewRows {
		return len(rows) > 0, nil
	}
	return a.Store.DueTogether(ctx, rows[0].ID, a.Terms.StatusCheckDelay, listGap, fewRows)
}

// fetch asks for each row by its SID. An error of one keeps no other from being settled.
func (a *Activities) fetch(ctx context.Context, rows []store.Unsettled) ([]store.Settled, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	receipts, failures := make([]*notify.Receipt, len(rows)), make([]error, len(rows))
	g := panics.NewGroup()
	g.SetLimit(checksInFlight)
	for i, row := range rows {
		g.Go(func() error {
			receipts[i], failures[i] = a.ask(ctx, row)
			return nil
		})
	}
	_ = g.Wait() // the errors are in failures
	var told []notify.Receipt
	var asked []uuid.UUID
	for i, row := range rows {
		if receipts[i] != nil {
			told = append(told, *receipts[i])
		}
		if failures[i] == nil {
			asked = append(asked, row.ID)
		}
	}
	settled, err := a.settleRows(ctx, told...)
	if err == nil {
		var silent []store.Settled
		silent, err = a.stillPending(ctx, rows[0].Channel, asked)
		settled = append(settled, silent...)
	}
	return settled, errors.Join(errors.Join(failures...), err)
}

// ask fetches one row's message or call; nil when the carrier has none. While the carrier cannot be
// asked, the row waits for an hour past its deadline.
func (a *Activities) ask(ctx context.Context, row store.Unsettled) (*notify.Receipt, error) {
	if row.TwilioSID == nil {
		return nil, nil
	}
	resource, err := a.Carrier.Fetch(ctx, row.Channel, *row.TwilioSID)
	if err == nil && row.Cancel && resource.Word == "queued" {
		resource, err = a.Carrier.CancelCall(ctx, resource)
	}
	failure, ok := errors.AsType[*carrier.Error](err)
	switch {
	case err == nil:
		receipt := resource.Receipt
		receipt.NotificationID, receipt.Source = row.ID.String(), notify.FromPoll
		return &receipt, nil
	case ok && failure.NotFound(), row.SinceSent >= receiptDeadline(row.Channel)+longestCheckPause:
		return nil, nil
	}
	return nil, err
}

// stillPending puts off those rows of which the carrier, asked, said nothing final, or ends them.
func (a *Activities) stillPending(ctx context.Context, channel notify.Channel, ids []uuid.UUID) ([]store.Settled, error) {
	return a.Store.StillPending(ctx, ids, store.CheckTerms{
		Delay:        a.Terms.StatusCheckDelay,
		LongestPause: longestCheckPause,
		Deadline:     receiptDeadline(channel),
		Message:      notify.LedgerMessage(notify.CodeNoReceipt, channel, ""),
	})
}
