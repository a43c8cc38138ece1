package activities

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
	"github.com/todoku/todoku/taskrouter"
)

const (
	// missedListLag is how far the carrier's list of calls may be behind: so much of it is read once more.
	missedListLag = 10 * time.Minute

	// missedPart is how many calls are recorded in one transaction.
	missedPart = 500
)

// findMissedCalls records calls to our number of which nobody has told us, once each: they came in while the API was
// away, and a flow at the carrier has answered them. It returns how many there were.
func (a *Activities) findMissedCalls(ctx context.Context) (int, error) {
	listing, err := a.Store.InboundListing(ctx)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	}
	from := listing.From.Add(-missedListLag)
	if from.Before(listing.Since) {
		from = listing.Since
	}
	skew := a.atDatabase(from).Sub(from) // the carrier dates by its own clock
	var missed []carrier.Resource
	until := listing.Until
	filter := carrier.Filter{To: listing.Number, SentAfter: from.Add(-skew)}
	for page, err := range a.Carrier.List(ctx, notify.Call, filter) {
		if err != nil {
			return 0, err
		}
		over, open, err := a.unknownCalls(ctx, listing, page)
		if err != nil {
			return 0, err
		}
		missed = append(missed, over...)
		for _, c := range open { // they are looked for again
			if began := a.atDatabase(beganAt(c)); began.Before(until) {
				until = began
			}
		}
	}
	if len(missed) > 0 {
		ours, err := a.answersOurNumber(ctx, listing.Number)
		switch {
		case err != nil:
			return 0, err
		case !ours:
			a.Log.WarnContext(ctx, "calls that came in are not recorded: the number's webhook was changed since the last apply",
				"count", len(missed))
			missed = nil
		}
	}
	if err := a.recordMissed(ctx, missed); err != nil {
		return 0, err
	}
	return len(missed), a.Store.InboundListed(ctx, listing.Number, until)
}

// unknownCalls are the calls of a page that came in and that the ledger does not know: those that are over for so long
// that whoever would tell of them has done so, and the others.
func (a *Activities) unknownCalls(
	ctx context.Context, listing store.InboundListing, page []carrier.Resource,
) (over, open []carrier.Resource, err error) {
	ids := make([]uuid.UUID, len(page))
	for i, c := range page {
		ids[i] = notify.InboundID(c.SID)
	}
	unknown, err := a.Store.UnknownInbound(ctx, ids)
	if err != nil {
		return nil, nil, err
	}
	for i, c := range page {
		began := beganAt(c)
		switch {
		case !unknown[ids[i]], c.Direction != "inbound", c.To != listing.Number:
		case began.IsZero(), a.atDatabase(began).Before(listing.Since):
		case carrier.CallOver(c.Word) == notify.WordHungUp &&
			listing.Until.Sub(a.atDatabase(endedAt(c))) >= a.adoptionAge():
			over = append(over, c)
		default:
			open = append(open, c)
		}
	}
	return over, open, nil
}

func beganAt(c carrier.Resource) time.Time {
	if c.SentAt.IsZero() {
		return c.CreatedAt
	}
	return c.SentAt
}

func endedAt(c carrier.Resource) time.Time {
	ended := beganAt(c)
	if c.Duration != nil {
		ended = ended.Add(time.Duration(*c.Duration) * time.Second)
	}
	return ended
}

// answersOurNumber reports whether the number's webhook still is what an apply has set. Calls that somebody else
// answers were not missed.
func (a *Activities) answersOurNumber(ctx context.Context, number string) (bool, error) {
	numbers, err := a.Carrier.TaskRouter().List(ctx, taskrouter.Numbers, "", number)
	if err != nil {
		return false, err
	}
	made, err := a.Store.TaskRouterObjects(ctx)
	if err != nil {
		return false, err
	}
	const field = "VoiceUrl"
	for _, n := range numbers {
		is := n.Fields[field]
		if n.Name != number || is == "" {
			continue
		}
		if is == a.Terms.TaskRouterURLs.Voice {
			return true, nil
		}
		for _, m := range made {
			if m.Kind == taskrouter.Numbers && m.SID == n.SID && m.After[field] == is {
				return true, nil
			}
		}
	}
	return false, nil
}

// recordMissed adds the calls to the ledger. What is done about their callers follows as for others.
func (a *Activities) recordMissed(ctx context.Context, missed []carrier.Resource) error {
	for len(missed) > 0 {
		part := missed[:min(len(missed), missedPart)]
		missed = missed[len(part):]
		var events []notify.InboundEvent
		for _, c := range part {
			e := notify.InboundEvent{
				CallID: notify.InboundID(c.SID), CallSID: c.SID, Kind: "poll " + c.Word, Source: notify.FromPoll,
				From: c.From, To: c.To,
			}
			if caller, err := notify.ParseCaller(c.From); err == nil {
				e.FromHash = caller.Hash(a.Terms.PhoneHashKey)
			}
			came, went := e, e
			came.Key, came.Kind, came.At, came.Word = "found came in", "poll", beganAt(c), notify.WordReceived
			went.Key, went.At, went.Word = "found missed", endedAt(c), notify.WordMissed
			events = append(events, came, went)
		}
		if _, err := a.Store.RecordInbound(ctx, events...); err != nil {
			return err
		}
		missedCalls.Add(float64(len(part)))
		a.Log.WarnContext(ctx, "calls came in while Todoku could not be reached", "count", len(part))
	}
	return nil
}

// onlyEndKnown reports whether nothing of a call was told but that it is over.
func onlyEndKnown(c store.InboundCall) bool {
	return c.State == notify.InboundAbandoned &&
		c.ReceivedAt == nil && c.WaitingAt == nil && c.ReservedAt == nil && c.AnsweredAt == nil && c.TaskSID == nil
}

// markMissed records that a call was missed whose end was told to an API that was back by then.
func (a *Activities) markMissed(ctx context.Context, c store.InboundCall) error {
	_, err := a.Store.RecordInbound(ctx, notify.InboundEvent{
		CallID: c.ID, CallSID: c.CallSID, Key: "found missed", Kind: "poll", Word: notify.WordMissed, At: *c.EndedAt,
		Source: notify.FromPoll,
	})
	if err == nil {
		missedCalls.Inc()
	}
	return err
}
