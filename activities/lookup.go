package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// clockSkew is how far the carrier's creation times (in whole seconds) may lie from our clock.
const clockSkew = 5 * time.Second

// LookUp resolves a send whose answer was lost. Twilio has no idempotency key, so the notification
// is looked for before anything is posted again: a receipt settles it; else the carrier's complete
// list of what was sent to the number shows it; and only when two such lists, half an ambiguity
// window apart, and the whole window have passed without a sign of it, it may be sent again.
func (a *Activities) LookUp(ctx context.Context, ref Ref) (Next, error) {
	d, err := a.Store.TakeDoubtful(ctx, ref.ID, ref.WorkflowID, a.Terms.answerLimit())
	switch {
	case errors.Is(err, store.ErrNotFound):
		return Next{}, temporal.NewNonRetryableApplicationError("the ledger has no such notification", "NotFound", nil)
	case err != nil:
		return Next{}, err
	case d.Status == notify.Accepted:
		return Next{Action: Send, Status: d.Status}, nil
	case d.Token == nil:
		return a.unclaimed(ref, d.Claim)
	}
	found, err := a.search(ctx, d)
	if err != nil {
		if d.SinceFirst > a.Terms.SendDeadline+a.Terms.AmbiguityWindow {
			return a.doubt(ctx, ref, d, "the carrier could not be asked until the deadline")
		}
		return Next{}, fmt.Errorf("look for the send at the carrier: %w", err)
	}
	switch {
	case int64(len(found.same)) >= d.Twins:
		receipt := found.same[d.Place].Receipt
		receipt.NotificationID, receipt.Source = ref.ID.String(), notify.FromPoll
		return a.settle(ctx, ref, receipt)
	case len(found.same) > 0:
		return a.doubt(ctx, ref, d, "the carrier shows fewer sends than were attempted")
	case found.otherBody:
		return a.doubt(ctx, ref, d, "the carrier shows a send at that time with another text")
	}
	return a.notFound(ctx, ref, d)
}

// candidates are sends at the carrier that no row of the ledger owns and that may be the one we look for.
type candidates struct {
	same      []carrier.Resource // the same recipient, sender, text and time, the oldest first
	otherBody bool               // one that differs only in its text
}

// search reads the complete list of what was sent to the number. It is not narrowed by date:
// messages that wait in the carrier's queue have none.
func (a *Activities) search(ctx context.Context, d store.Doubtful) (candidates, error) {
	body, err := d.Body()
	if err != nil {
		return candidates{}, err
	}
	var near []carrier.Resource
	var sids []string
	for page, err := range a.Carrier.List(ctx, d.Channel, carrier.Filter{To: d.To, PageSize: 1000}) {
		if err != nil {
			return candidates{}, err
		}
		for _, r := range page {
			if fromSender(r, d.From) && r.To == d.To &&
				!r.CreatedAt.Before(d.ClaimedAt.Add(-clockSkew)) && !r.CreatedAt.After(d.Deadline.Add(a.Terms.answerLimit()+clockSkew)) {
				near, sids = append(near, r), append(sids, r.SID)
			}
		}
	}
	owned, err := a.Store.OwnedSIDs(ctx, sids)
	if err != nil {
		return candidates{}, err
	}
	var found candidates
	for _, r := range near {
		switch {
		case owned[r.SID]:
		case d.Channel == notify.Call || r.Body == body:
			found.same = append(found.same, r)
		default:
			found.otherBody = true
		}
	}
	slices.SortStableFunc(found.same, func(x, y carrier.Resource) int { return x.CreatedAt.Compare(y.CreatedAt) })
	return found, nil
}

func fromSender(r carrier.Resource, sender string) bool {
	return r.MessagingServiceSID == sender || r.MessagingServiceSID == "" && r.From == sender
}

// notFound counts an empty lookup and decides whether it is the proof that nothing was sent.
func (a *Activities) notFound(ctx context.Context, ref Ref, d store.Doubtful) (Next, error) {
	half := a.Terms.AmbiguityWindow / 2
	elapsed := d.SinceDeadline - a.Terms.answerLimit() // since the answer could last have come
	if elapsed >= a.Terms.AmbiguityWindow && d.EmptyLookups > 0 && d.SinceLookup >= half {
		return a.giveBackProved(ctx, ref, d)
	}
	if err := a.Store.NoteEmptyLookup(ctx, ref.ID, *d.Token); err != nil {
		return Next{}, err
	}
	wait := half
	if rest := a.Terms.AmbiguityWindow - elapsed; rest > half {
		wait = min(rest, half)
	}
	return Next{Action: LookUp, In: wait, Status: notify.Sending}, nil
}

func (a *Activities) giveBackProved(ctx context.Context, ref Ref, d store.Doubtful) (Next, error) {
	_, err := a.Store.GiveBack(ctx, ref.ID, *d.Token, store.Retry{
		Kind: store.EventNotAtCarrier, Detail: "two complete lists of the carrier do not show it", After: pause(d.Attempts),
	})
	if err != nil {
		return Next{}, err
	}
	return Next{Action: Send, In: pause(d.Attempts), Status: notify.Accepted}, nil
}

func (a *Activities) doubt(ctx context.Context, ref Ref, d store.Doubtful, why string) (Next, error) {
	held, err := a.Store.Doubt(ctx, ref.ID, *d.Token, store.Failure{Kind: store.EventExpired, FailureCode: notify.CodeAmbiguousSend,
		Message: notify.LedgerMessage(notify.CodeAmbiguousSend, d.Channel, ""), Detail: why})
	switch {
	case err != nil:
		return Next{}, err
	case !held:
		return a.LookUp(ctx, ref) // a receipt was faster: read what the row is now
	}
	return Next{Action: Done, Status: notify.Unknown}, nil
}
