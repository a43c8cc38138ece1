package activities

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/panics"
	"github.com/todoku/todoku/settlement"
	"github.com/todoku/todoku/store"
)

const (
	listingsPerRun = 3       // how many listings one run makes at most
	listLimit      = 100_000 // how many messages or calls one listing reads at most
	listPart       = 5000    // how many are settled in one transaction: their rows are locked for that long
	partsInFlight  = 3       // so many parts are settled while the next is read

	// Rows that were sent with less than this between two of them are listed together. What is sent
	// later than this after we got its SID does not show in their listing, and is fetched.
	listGap = 10 * time.Minute

	turnPause = 250 * time.Millisecond // between two looks whether another process has finished its listing
)

// listDue lists the time in which most of what is to be asked for was sent; nothing when others have
// listed it in the meantime.
func (a *Activities) listDue(ctx context.Context, channel notify.Channel) ([]store.Settled, error) {
	return a.listInTurn(ctx, channel, func(store.Listing) (*store.Window, error) {
		return a.Store.DueWindow(ctx, channel, a.Terms.StatusCheckDelay, listGap, fewRows)
	}, func(carrier.Resource) {})
}

// listInTurn waits until no other listing of the channel runs, in any process, chooses what to list
// by what is known then, and lists it. unowned gets what the list shows and no row has.
func (a *Activities) listInTurn(ctx context.Context, channel notify.Channel, choose func(store.Listing) (*store.Window, error), unowned func(carrier.Resource)) ([]store.Settled, error) {
	listing, leave, err := a.takeTurn(ctx, channel)
	if err != nil {
		return nil, err
	}
	defer leave()
	window, err := choose(*listing)
	if err != nil || window == nil {
		return nil, errors.Join(err, a.Store.DropListing(detached(ctx), *listing))
	}
	settled, err := a.list(ctx, *listing, *window, unowned)
	if err != nil {
		err = errors.Join(err, a.Store.DropListing(detached(ctx), *listing))
	}
	return settled, err
}

// ListQueue lists what the carrier has sent of what it accepted in the window, and settles it: what is not in the list
// is still queued.
func (a *Activities) ListQueue(ctx context.Context, channel notify.Channel, window store.Window) error {
	_, err := a.listInTurn(ctx, channel, func(store.Listing) (*store.Window, error) { return &window, nil }, func(carrier.Resource) {})
	return err
}

// takeTurn waits until no other listing of the channel runs. Whoever has the turn ends or drops the
// listing, and leaves then.
func (a *Activities) takeTurn(ctx context.Context, channel notify.Channel) (_ *store.Listing, leave func(), err error) {
	turn := a.turn(channel)
	turn.Lock()
	for {
		listing, err := a.Store.BeginListing(ctx, channel)
		if err == nil && listing != nil {
			return listing, turn.Unlock, nil
		}
		if err == nil {
			err = sleep(ctx, turnPause)
		}
		if err != nil {
			turn.Unlock()
			return nil, nil, err
		}
	}
}

func (a *Activities) turn(channel notify.Channel) *sync.Mutex {
	if channel == notify.Call {
		return &a.listing.call
	}
	return &a.listing.sms
}

// list settles what the carrier's list shows of the window. When it is longer than the limit, the newest
// of it counts as listed, and the rest is left to another listing. While it reads on, the parts that it
// has read are settled. unowned is called one at a time.
func (a *Activities) list(ctx context.Context, listing store.Listing, window store.Window, unowned func(carrier.Resource)) ([]store.Settled, error) {
	var mu sync.Mutex // for settled, and for what unowned writes
	var settled []store.Settled
	settling, together := panics.WithContext(ctx)
	settling.SetLimit(partsInFlight)
	var readErr error
	for part, err := range a.parts(together, listing, &window) {
		if err != nil {
			readErr = err
			break
		}
		settling.Go(func() error {
			some, strays, err := a.settleListed(together, listing.Channel, part)
			mu.Lock()
			defer mu.Unlock()
			settled = append(settled, some...)
			for _, stray := range strays {
				unowned(stray)
			}
			return err
		})
	}
	if err := cmp.Or(settling.Wait(), readErr); err != nil { // a part that fails ends the reading too
		return settled, err
	}
	return settled, a.Store.EndListing(ctx, listing, window)
}

// parts reads the list of the window, part by part. When it ends at the limit, the window begins there.
func (a *Activities) parts(ctx context.Context, listing store.Listing, window *store.Window) iter.Seq2[[]carrier.Resource, error] {
	return func(yield func([]carrier.Resource, error) bool) {
		var part []carrier.Resource
		read := 0
		skew := a.atDatabase(window.From).Sub(window.From) // the carrier dates by its own clock
		filter := carrier.Filter{SentAfter: window.From.Add(-skew - clockSkew), SentBefore: window.Until.Add(listGap - skew)}
		for page, err := range a.Carrier.List(ctx, listing.Channel, filter) {
			if err == nil {
				err = a.Store.KeepListing(ctx, listing)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			part = append(part, page...)
			if read += len(page); read >= listLimit {
				window.From = page[len(page)-1].SentAt.Add(skew)
				break
			}
			if len(part) >= listPart {
				if !yield(part, nil) {
					return
				}
				part = nil
			}
		}
		if len(part) > 0 {
			yield(part, nil)
		}
	}
}

// settleListed settles the rows of one part of a list, and returns what of it no row has.
func (a *Activities) settleListed(ctx context.Context, channel notify.Channel, part []carrier.Resource) (settled []store.Settled, strays []carrier.Resource, err error) {
	receipts := make([]notify.Receipt, len(part))
	bySID := make(map[string]carrier.Resource, len(part))
	for i, resource := range part {
		receipts[i] = resource.Receipt
		bySID[resource.SID] = resource
	}
	listed, err := a.Store.SettleListed(ctx, receipts, a.Terms.StatusCheckDelay)
	if err != nil {
		return nil, nil, err
	}
	silent, err := a.stillPending(ctx, channel, listed.StillPending)
	settled = append(listed.Settled, silent...)
	if err := errors.Join(err, settlement.Handle(ctx, a.Store, a.Log, settled...)); err != nil {
		return settled, nil, err
	}
	for _, sid := range listed.Unowned {
		strays = append(strays, bySID[sid])
	}
	return settled, strays, nil
}
