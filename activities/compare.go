package activities

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"

	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/panics"
	"github.com/todoku/todoku/store"
)

// absentLimit is how many notifications that the carrier's list does not show are asked for one by one.
const absentLimit = 1000

// CompareBatch holds a batch against the carrier's own list, and writes down where they differ. It
// changes nothing of the batch: whatever the list shows is settled by Reconcile and by status checks.
func (a *Activities) CompareBatch(ctx context.Context, check uuid.UUID) error {
	stopBeating := heartbeat(ctx)
	defer stopBeating()

	err := a.compareBatch(ctx, check)
	if failure, ok := errors.AsType[*carrier.Error](err); ok { // shown until a later try succeeds
		err = errors.Join(err, a.Store.NoteCarrierCheckError(detached(ctx), check, failure.Error()))
	}
	return finalIfGone(err)
}

func (a *Activities) compareBatch(ctx context.Context, check uuid.UUID) error {
	c, err := a.Store.BeginComparison(ctx, check)
	if err != nil {
		return err
	}
	defer c.Close()
	var missing []string
	if c.Window != nil {
		for until := c.Window.Until.Add(listGap); !until.IsZero(); {
			if until, err = a.collect(ctx, c, until); err != nil {
				return err
			}
		}
		if missing, err = a.askForAbsent(ctx, c); err != nil {
			return err
		}
	}
	return c.End(ctx, missing)
}

// finalIfGone ends the activity for good when its check has ended, or another one has taken its place.
func finalIfGone(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return temporal.NewNonRetryableApplicationError("the check has ended, or another one has taken its place", "NotFound", nil)
	}
	return err
}

// collect takes the turn to list the channel, and collects what was sent in the comparison's window
// before until, the newest first. It returns before when the rest begins, so that others have their
// turn after so many; zero when nothing is left.
func (a *Activities) collect(ctx context.Context, c *store.Comparison, until time.Time) (rest time.Time, err error) {
	listing, leave, err := a.takeTurn(ctx, c.Channel)
	if err != nil {
		return rest, err
	}
	defer leave()
	defer func() { err = errors.Join(err, a.Store.DropListing(detached(ctx), *listing)) }()
	read := 0
	filter := carrier.Filter{SentAfter: c.Window.From.Add(-clockSkew), SentBefore: until}
	for page, err := range a.Carrier.List(ctx, c.Channel, filter) {
		if err == nil {
			err = errors.Join(a.Store.KeepListing(ctx, *listing), c.Add(ctx, sends(c, page)))
		}
		if err != nil {
			return rest, err
		}
		oldest := page[len(page)-1].SentAt
		if read += len(page); read >= listLimit && oldest.Before(until.Add(-time.Second)) { // bounds are whole seconds
			return oldest, nil
		}
	}
	return rest, nil
}

func sends(c *store.Comparison, page []carrier.Resource) []store.CarrierSend {
	all := make([]store.CarrierSend, len(page))
	for i, r := range page {
		all[i] = store.CarrierSend{SID: r.SID, Word: r.Word, To: r.To, Ours: createdByUs(r) && fromSender(r, c.From), CreatedAt: r.CreatedAt}
	}
	return all
}

// askForAbsent asks for each notification that the list does not show, collects what there is, and
// returns the SIDs that the carrier does not have.
func (a *Activities) askForAbsent(ctx context.Context, c *store.Comparison) (missing []string, err error) {
	sids, err := c.Absent(ctx, absentLimit)
	if err != nil || len(sids) == 0 {
		return nil, err
	}
	found, failures := make([]*carrier.Resource, len(sids)), make([]error, len(sids))
	g := panics.NewGroup()
	g.SetLimit(checksInFlight)
	for i, sid := range sids {
		g.Go(func() error {
			resource, err := a.Carrier.Fetch(ctx, c.Channel, sid)
			failure, answered := errors.AsType[*carrier.Error](err)
			switch {
			case err == nil:
				found[i] = &resource
			case !answered || !failure.NotFound():
				failures[i] = err
			}
			return nil
		})
	}
	_ = g.Wait() // the errors are in failures
	var there []carrier.Resource
	for i, resource := range found {
		switch {
		case resource != nil:
			there = append(there, *resource)
		case failures[i] == nil:
			missing = append(missing, sids[i])
		}
	}
	return missing, errors.Join(errors.Join(failures...), c.Add(ctx, sends(c, there)))
}

// GiveUpCarrierCheck ends a check that could not be made.
func (a *Activities) GiveUpCarrierCheck(ctx context.Context, check uuid.UUID) error {
	return a.Store.FailCarrierCheck(ctx, check, "the carrier could not be listed for hours: ask for the check again")
}
