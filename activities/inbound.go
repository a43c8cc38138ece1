package activities

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"

	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// InboundQueue is the task queue on which calls that came in are followed up.
const InboundQueue = "inbound"

// How calls are looked after.
const (
	// InboundPatience is how much later than it said a call's workflow may look at it before it counts as gone.
	InboundPatience = 5 * time.Minute

	// inboundGrace is how long after its end a call may still turn out to have ended in another way: an
	// event came late. Somebody who is turned away hears a message first and may then press a key.
	inboundGrace   = 5 * time.Second
	turnedAwayTime = 60 * time.Second

	// callsAgainPause is between two looks at how another call of the same caller ends.
	callsAgainPause = 30 * time.Second
)

// InboundNext says where a call stands, and what its workflow does next.
type InboundNext struct {
	State    notify.InboundState
	Operator string                `json:",omitempty"` // the SID of the one who answered, or whose phone rings
	FollowUp notify.FollowUpAction `json:",omitempty"` // what was done about the caller
	Done     bool                  // nothing is left to be done
	In       time.Duration         // else: how long to wait for news
}

// FollowInbound looks at a call that came in. While it goes on and nothing was heard of it for
// STATUS_CHECK_DELAY, the carrier is asked whether it does. When it is over, and late events have had their time, it is decided
// what is done about a caller who spoke with nobody, once: an SMS or an automated call is accepted as any
// other notification, and a task for an operator is made at TaskRouter.
func (a *Activities) FollowInbound(ctx context.Context, id uuid.UUID) (InboundNext, error) {
	for {
		c, err := a.Store.InboundCall(ctx, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return InboundNext{}, temporal.NewNonRetryableApplicationError("the ledger has no such call", "NotFound", nil)
		case err != nil:
			return InboundNext{}, err
		}
		next := InboundNext{State: c.State}
		if c.Operator != nil {
			next.Operator = *c.Operator
		}
		switch {
		case c.ClosedAt != nil:
			next.Done = true
			if c.FollowUp != nil {
				next.FollowUp = notify.FollowUpAction(*c.FollowUp)
			}
			return next, nil
		case !c.State.Final():
			over, err := a.inboundIsOver(ctx, c)
			if err != nil {
				return InboundNext{}, err
			}
			if next.In = a.Terms.StatusCheckDelay; over {
				next.In = 0
				continue
			}
		case c.FollowUp == nil:
			// Twilio's clock may be ahead of ours, and the caller waits.
			if next.In = min(0, c.EndedAt.Sub(a.Store.Now(ctx))) + grace(c.State); next.In <= 0 {
				next.In = 0
				later, err := a.followUp(ctx, c)
				if err != nil {
					return InboundNext{}, err
				}
				if !later {
					continue
				}
				next.In = callsAgainPause
			}
		default: // a task, which is not made yet, or not canceled
			if next.In, err = a.callbackTask(ctx, c); err != nil {
				return InboundNext{}, err
			}
			if next.In == 0 {
				continue
			}
		}
		return next, a.Store.LookAtInbound(ctx, id, next.In+InboundPatience)
	}
}

// grace is how long after its end a call may still turn out to have ended otherwise.
func grace(state notify.InboundState) time.Duration {
	if state == notify.InboundTurnedAway || state == notify.InboundTimedOut {
		return turnedAwayTime
	}
	return inboundGrace
}

// inboundIsOver asks the carrier for a call of which nothing was heard for long, and reports whether it
// has learnt that the call is over.
func (a *Activities) inboundIsOver(ctx context.Context, c store.InboundCall) (bool, error) {
	if a.Store.Now(ctx).Sub(c.UpdatedAt) < a.Terms.StatusCheckDelay {
		return false, nil
	}
	found, err := a.Carrier.Fetch(ctx, notify.Call, c.CallSID)
	var failed *carrier.Error
	gone := errors.As(err, &failed) && failed.NotFound()
	if err != nil && !gone {
		return false, err
	}
	word := carrier.CallOver(found.Word)
	if gone {
		word = notify.WordHungUp // nobody will ever tell
	}
	if word != notify.WordHungUp {
		return false, nil
	}
	_, err = a.Store.RecordInbound(ctx, notify.InboundEvent{
		CallID: c.ID, CallSID: c.CallSID, Key: "found over", At: time.Now(), Kind: "poll " + found.Word, Word: word, Source: notify.FromPoll,
	})
	return err == nil, err
}

// followUp decides what is done about the caller, or reports that it is to be decided later.
func (a *Activities) followUp(ctx context.Context, c store.InboundCall) (later bool, err error) {
	decision := store.InboundFollowUp{Action: notify.FollowUpNone}
	policy, err := a.Store.InboundPolicy(ctx)
	if err != nil {
		return false, err
	}
	if policy.Asked && onlyEndKnown(c) {
		return false, a.markMissed(ctx, c) // the next look decides
	}
	if !policy.SetUp() && c.State != notify.InboundFinished {
		decision.Reason = "nothing is set up that says what is done about callers"
	}
	wanted := policy.FollowUps.For(c.State, valueOf(c.Reason))
	if wanted.Action != "" && wanted.Action != notify.FollowUpNone && a.tooLate(ctx, c) {
		decision.Reason, wanted = notify.FollowUpTooLate, notify.FollowUp{}
	}
	if wanted.Action != "" && wanted.Action != notify.FollowUpNone {
		if decision, err = a.reach(ctx, c, wanted); err != nil {
			return false, err
		}
	}
	if caller, err := notify.ParseCaller(valueOf(c.From)); err == nil {
		decision.CallerHash = caller.Hash(a.Terms.PhoneHashKey)
	}
	decision.Limits = a.Terms.Inbound.FollowUps
	// Where the call has changed meanwhile, or another run was faster, the next look tells.
	made, err := a.Store.DecideInboundFollowUp(ctx, c.ID, c.Version, decision)
	if made.Decided {
		followUps.WithLabelValues(string(c.State), string(made.Action)).Inc()
	}
	return made.Later, err
}

// tooLate reports whether a call was found so long after its end that nobody waits for an answer any more.
func (a *Activities) tooLate(ctx context.Context, c store.InboundCall) bool {
	return c.State == notify.InboundMissed && a.Store.Now(ctx).Sub(*c.EndedAt) > followUpUntil
}

// followUpUntil is how long after its end a missed call is followed up.
const followUpUntil = 24 * time.Hour

// reach finds a way to the caller: the one that is wanted or, to a number that no SMS can reach, a call.
// Somebody who showed no number cannot be reached.
func (a *Activities) reach(ctx context.Context, c store.InboundCall, wanted notify.FollowUp) (store.InboundFollowUp, error) {
	none := func(why string) (store.InboundFollowUp, error) {
		return store.InboundFollowUp{Action: notify.FollowUpNone, Reason: why}, nil
	}
	to, err := notify.ParseCaller(valueOf(c.From))
	if err != nil {
		return none("the caller showed no number that can be called")
	}
	if wanted.Action == notify.FollowUpTask { // an operator dials what a call of ours may dial
		if invalid, ok := errors.AsType[*notify.InvalidNumberError](to.Accepts(notify.Call, a.Terms.Inbound.Countries, a.Terms.NumberKinds...)); ok {
			return none(invalid.Code)
		}
		return store.InboundFollowUp{Action: notify.FollowUpTask}, nil
	}
	channels := []notify.Channel{notify.SMS, notify.Call}
	if wanted.Action == notify.FollowUpCall {
		channels = []notify.Channel{notify.Call}
	}
	reason := ""
	for _, channel := range channels {
		from := a.Terms.Inbound.From(channel)
		var unfit *notify.InvalidNumberError
		err := to.Accepts(channel, a.Terms.Inbound.Countries, a.Terms.NumberKinds...)
		switch {
		case errors.As(err, &unfit):
			reason = unfit.Code
			continue
		case err != nil:
			return store.InboundFollowUp{}, err
		case from == "":
			reason = "there is no number to send from"
			continue
		}
		n, err := a.draftFollowUp(ctx, c, channel, from, to, wanted.Body)
		return store.InboundFollowUp{Action: followUpBy[channel], Reason: reason, Notification: n}, err
	}
	return none(reason)
}

var followUpBy = map[notify.Channel]notify.FollowUpAction{notify.SMS: notify.FollowUpSMS, notify.Call: notify.FollowUpCall}

func (a *Activities) draftFollowUp(ctx context.Context, c store.InboundCall, channel notify.Channel, from string, to notify.PhoneNumber, body string) (*store.NewNotification, error) {
	sender, err := a.Store.EnsureSender(ctx, channel, from)
	if err != nil {
		return nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	reference := "inbound/" + c.ID.String()
	return &store.NewNotification{
		ID: id, Channel: channel, Reference: &reference, To: to, ToHash: to.Hash(a.Terms.PhoneHashKey), Message: &body, SenderID: sender,
		RequireHuman: channel == notify.Call && a.Terms.Inbound.RequireHuman,
	}, nil
}

func valueOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
