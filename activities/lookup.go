package activities

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/panics"
	"github.com/todoku/todoku/store"
)

// clockSkew is how far the carrier's creation times (in whole seconds) may lie from what the measured clocks say.
const clockSkew = 5 * time.Second

// earlier is how long before a row was accepted a send is still a doubt: by so much clocks may be wrong that nobody
// has measured. Earlier sends of the same text are those of other days.
const earlier = 24 * time.Hour

// LookUp resolves sends whose answers were lost. Twilio has no idempotency key, so a notification
// is looked for before anything is posted again: a receipt settles it; else the carrier's complete
// list of what was sent to the number shows it; and only when two such lists, half an ambiguity
// window apart, and the whole window have passed without a sign of it, it may be sent again.
func (a *Activities) LookUp(ctx context.Context, ref Ref) (Next, error) {
	stopBeating := heartbeat(ctx)
	defer stopBeating()

	doubtful, err := a.Store.TakeDoubtful(ctx, ref.owner(), a.Terms.answerLimit())
	if err != nil {
		return Next{}, err
	}
	again, err := a.resolveAll(ctx, doubtful)
	if err != nil {
		return Next{}, err
	}
	next, err := a.next(ctx, ref)
	if err == nil && next.Action == LookUp {
		next.In = max(next.In, again)
	}
	return next, err
}

// lookUpsAtOnce is for how many numbers the carrier is asked at the same time: a shard may have been cut off
// from it with two thousand sends of which nobody knows.
const lookUpsAtOnce = 8

// resolveAll looks for sends, and returns after how long to look again; 0 when all are resolved. Those to
// one number are rivals, and are looked for one after the other: what is found for one is not another's.
// Of several errors it returns one.
func (a *Activities) resolveAll(ctx context.Context, doubtful []store.Doubtful) (again time.Duration, failure error) {
	byNumber := make(map[string][]store.Doubtful)
	for _, d := range doubtful {
		byNumber[d.To] = append(byNumber[d.To], d)
	}
	var mu sync.Mutex // for the results
	asking := panics.NewGroup()
	asking.SetLimit(lookUpsAtOnce)
	for _, rivals := range byNumber {
		asking.Go(func() error {
			for _, d := range rivals {
				var wait time.Duration
				err := panics.Catch(func() (err error) {
					wait, err = a.resolve(ctx, d)
					return err
				})
				mu.Lock()
				if err != nil {
					failure = err
				}
				if wait > 0 && (again == 0 || wait < again) {
					again = wait
				}
				mu.Unlock()
			}
			return nil
		})
	}
	_ = asking.Wait() // the error is in failure
	return again, failure
}

// resolve looks for one send, and returns after how long to look again; 0 when it is resolved.
func (a *Activities) resolve(ctx context.Context, d store.Doubtful) (time.Duration, error) {
	var found candidates
	err := panics.Catch(func() (err error) { // an error of ours ends at the deadline, as one of the carrier does
		found, err = a.search(ctx, d)
		return err
	})
	if err != nil {
		if d.SinceFirst > a.Terms.SendDeadline+a.Terms.AmbiguityWindow {
			return 0, a.doubt(ctx, d, "the carrier could not be asked until the deadline")
		}
		return 0, fmt.Errorf("look for the send at the carrier: %w", err)
	}
	switch {
	case (len(found.same) > 0 || found.otherBody) && found.rivals.InFlight > 0, found.otherBody && found.rivals.Others > 0:
		return rivalPause, nil // what the carrier shows may be a rival's: his own answer or lookup will tell
	case len(found.same) > 0 && int64(len(found.same)) >= found.rivals.Twins:
		receipt := found.same[found.rivals.Place].Receipt
		receipt.NotificationID, receipt.Source = d.ID.String(), notify.FromPoll
		return 0, a.settle(ctx, receipt)
	case len(found.same) > 0:
		return 0, a.doubt(ctx, d, "the carrier shows fewer sends than were attempted")
	case found.otherBody:
		return 0, a.doubt(ctx, d, "the carrier shows a send at that time with another text")
	case found.otherTime && !a.searched(d):
		return a.Terms.AmbiguityWindow / 2, nil // a receipt may come, or another row claim it
	case found.otherTime && found.rivals.InFlight > 0:
		return rivalPause, nil
	case found.otherTime:
		return 0, a.doubt(ctx, d, "the carrier shows this send at a time that the clocks do not explain")
	}
	return a.notFound(ctx, d)
}

// rivalPause is how long a lookup waits for other sends to the same number.
const rivalPause = 2 * time.Second

// candidates are sends at the carrier that no row of the ledger owns and that may be the one we look for.
type candidates struct {
	same      []carrier.Resource // the same recipient, sender, text and time, the oldest first
	otherBody bool               // one that differs only in its text
	otherTime bool               // one that differs only in its time
	rivals    store.Rivals
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
			if r.To == d.To && fromSender(r, d.From) && a.createdLately(r, d) {
				near, sids = append(near, r), append(sids, r.SID)
			}
		}
	}
	rivals, err := a.Store.Rivals(ctx, d.ID, a.Terms.answerLimit())
	if err != nil {
		return candidates{}, err
	}
	owned, err := a.Store.OwnedSIDs(ctx, sids)
	if err != nil {
		return candidates{}, err
	}
	found := candidates{rivals: rivals}
	for _, r := range near {
		within, same := a.createdWithin(r, d), d.Channel == notify.Call || r.Body == body
		switch {
		case owned[r.SID]:
		case within && same:
			found.same = append(found.same, r)
		case within:
			found.otherBody = true
		case same:
			found.otherTime = true
		}
	}
	slices.SortStableFunc(found.same, func(x, y carrier.Resource) int { return x.CreatedAt.Compare(y.CreatedAt) })
	return found, nil
}

// fromSender compares both fields: Twilio may fill in messaging_service_sid where a number was asked
// for, and from where a service was.
func fromSender(r carrier.Resource, sender string) bool {
	return r.MessagingServiceSID == sender || r.From == sender
}

// createdWithin reports whether the clocks, as they are measured, say that the resource may come from the claim's
// request. One without a creation time may.
func (a *Activities) createdWithin(r carrier.Resource, d store.Doubtful) bool {
	at := a.atDatabase(r.CreatedAt)
	return r.CreatedAt.IsZero() ||
		!at.Before(d.ClaimedAt.Add(-clockSkew)) && !at.After(d.Deadline.Add(a.Terms.answerLimit()+clockSkew))
}

// createdLately reports whether the resource may come from the row at all, if any clock may be wrong.
func (a *Activities) createdLately(r carrier.Resource, d store.Doubtful) bool {
	since := d.AcceptedAt.Add(-earlier)
	return r.CreatedAt.IsZero() || !r.CreatedAt.Before(since) || !a.atDatabase(r.CreatedAt).Before(since)
}

// atDatabase translates a moment of the carrier's clock into one of the database's.
func (a *Activities) atDatabase(moment time.Time) time.Time {
	return a.Store.AtDatabase(a.Carrier.Here(moment))
}

// searched reports whether the send was looked for through the whole ambiguity window, which begins when its
// answer could last have come.
func (a *Activities) searched(d store.Doubtful) bool {
	return d.SinceDeadline-a.Terms.answerLimit() >= a.Terms.AmbiguityWindow
}

// notFound notes a list without the send, and gives the row back when it is the proof that nothing was sent.
func (a *Activities) notFound(ctx context.Context, d store.Doubtful) (time.Duration, error) {
	half := a.Terms.AmbiguityWindow / 2
	if a.searched(d) && d.Absent >= half {
		panicked, err := a.Store.Panics(ctx, d.ID)
		switch {
		case err != nil:
			return 0, err
		case panicked > 1:
			return 0, a.refuse(ctx, d.Claim, badRow)
		}
		return 0, a.giveBack(ctx, d.Claim, store.Retry{
			Kind: store.EventNotAtCarrier, Detail: "two complete lists of the carrier do not show it", After: pause(d.Attempts),
		})
	}
	if err := a.Store.NoteAbsent(ctx, d.ID, d.Token); err != nil {
		return 0, err
	}
	return half, nil
}

func (a *Activities) doubt(ctx context.Context, d store.Doubtful, why string) error {
	_, err := a.Store.Doubt(ctx, d.ID, d.Token, store.Failure{Kind: store.EventExpired, FailureCode: notify.CodeAmbiguousSend,
		Message: notify.LedgerMessage(notify.CodeAmbiguousSend, d.Channel, ""), Detail: why})
	return err
}
