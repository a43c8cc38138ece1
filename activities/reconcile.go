package activities

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/settlement"
	"github.com/todoku/todoku/store"
)

const (
	// ReconcileInterval is how often Reconcile runs.
	ReconcileInterval = 5 * time.Minute

	// overdueBy is how long a row's own workflow is given to ask the carrier before Reconcile does.
	overdueBy = 3 * time.Minute

	strayLimit = 10_000 // how many sends that no row has one run looks into at most
	foundLimit = 1000   // how many of them become rows at most
)

// Reconciled counts what one run has put right.
type Reconciled struct {
	Settled int // rows that the carrier was asked for and that are final now
	Found   int // sends of ours that no row had, even after they were offered to every row in doubt
	Missed  int `json:",omitempty"` // calls that came in while we could not be reached
}

// Reconcile puts right what nobody else does. It lists what was sent of late: whatever that shows is
// settled, whoever owns it, and a send of ours that no row has finds its row or becomes one. Then it
// asks for rows whose own workflow has not asked for them in time: because it is closed or gone,
// because a late receipt opened the row again, or because they have none. Of calls, it also records those that came in
// while we could not be reached.
func (a *Activities) Reconcile(ctx context.Context, channel notify.Channel) (Reconciled, error) {
	stopBeating := heartbeat(ctx)
	defer stopBeating()

	settled, found, listErr := a.reconcileRecent(ctx, channel)
	overdue, checkErr := a.check(ctx, func() ([]store.Unsettled, error) {
		return a.Store.Overdue(ctx, channel, a.Terms.StatusCheckDelay, overdueBy, checkLimit)
	})
	settled = append(settled, overdue...)
	done := Reconciled{Found: found}
	var missedErr error
	if channel == notify.Call {
		done.Missed, missedErr = a.findMissedCalls(ctx)
	}
	for _, s := range settled {
		if s.JustSettled() {
			done.Settled++
		}
	}
	if a.Workflows != nil {
		notifier := settlement.Notifier{Store: a.Store, Workflows: a.Workflows, Log: a.Log}
		notifier.Notify(ctx, settlement.JustFinal(settled)...)
	}
	return done, errors.Join(listErr, checkErr, missedErr)
}

// reconcileRecent lists what was sent of late, and returns what it settled and how many sends that no
// row had became rows.
func (a *Activities) reconcileRecent(ctx context.Context, channel notify.Channel) ([]store.Settled, int, error) {
	senders, err := a.Store.Senders(ctx)
	if err != nil {
		return nil, 0, err
	}
	var ours []store.Found
	settled, err := a.listInTurn(ctx, channel, a.recently, func(r carrier.Resource) {
		if found, ok := a.ours(senders, r); ok && len(ours) < strayLimit {
			ours = append(ours, found)
		}
	})
	if err != nil {
		return settled, 0, err
	}
	found, err := a.adopt(ctx, channel, ours)
	return settled, found, err
}

// recently is the time in which sends that no row has are looked for. It reaches back so far that
// each is still seen when it is old enough to be added, even if two runs fail.
func (a *Activities) recently(l store.Listing) (*store.Window, error) {
	return &store.Window{From: l.BeganAt.Add(-a.adoptionAge() - 3*ReconcileInterval), Until: l.BeganAt}, nil
}

// adoptionAge is how old a send that no row has must be before it becomes a row of its own: by then
// every request that may have made it is answered or looked up.
func (a *Activities) adoptionAge() time.Duration {
	return max(2*a.Terms.AmbiguityWindow, a.Terms.lease()+a.Terms.answerLimit())
}

// ours reports whether the carrier shows a send that was created through the API from one of our
// senders, and makes it ready for the ledger.
func (a *Activities) ours(senders []store.Sender, r carrier.Resource) (store.Found, bool) {
	i := slices.IndexFunc(senders, func(s store.Sender) bool { return s.Channel == r.Channel && fromSender(r, s.Address) })
	to, err := notify.ParsePhoneNumber(r.To, "")
	if !createdByUs(r) || i < 0 || err != nil {
		return store.Found{}, false
	}
	createdAt := r.CreatedAt
	if !createdAt.IsZero() {
		createdAt = a.atDatabase(createdAt)
	}
	return store.Found{SenderID: senders[i].ID, To: to, ToHash: to.Hash(a.Terms.PhoneHashKey), Body: r.Body,
		CreatedAt: createdAt, Receipt: r.Receipt}, true
}

// createdByUs reports whether it was created through the API, and is no answer to somebody and no part
// of a call.
func createdByUs(r carrier.Resource) bool { return r.Direction == "outbound-api" }

// adopt finds the rows of sends that the carrier shows and no row has. Each is first offered to the
// rows whose creates may have made it, by looking those up. What then still belongs to none and is
// old enough becomes a row that is marked as found. It returns how many did.
func (a *Activities) adopt(ctx context.Context, channel notify.Channel, ours []store.Found) (int, error) {
	if len(ours) == 0 {
		return 0, nil
	}
	awaited, err := a.offer(ctx, channel, ours)
	if err != nil {
		return 0, err
	}
	sids := make([]string, len(ours))
	for i, f := range ours {
		sids[i] = f.Receipt.SID
	}
	owned, err := a.Store.OwnedSIDs(ctx, sids)
	if err != nil {
		return 0, err
	}
	now := a.Store.Now(ctx)
	ours = slices.DeleteFunc(ours, func(f store.Found) bool {
		return owned[f.Receipt.SID] || awaited[f.To.E164] || f.CreatedAt.IsZero() || now.Sub(f.CreatedAt) < a.adoptionAge()
	})
	if ours, err = a.withoutWaiting(ctx, channel, ours); err != nil {
		return 0, err
	}
	ours = ours[:min(len(ours), foundLimit)]
	if len(ours) == 0 {
		return 0, nil
	}
	foundAtCarrier.Add(float64(len(ours)))
	a.Log.WarnContext(ctx, "the carrier shows sends from our senders that no notification asked for", "channel", channel, "count", len(ours))
	if a.Terms.PhoneHashKey == nil {
		return 0, nil
	}
	settled, err := a.Store.AddFound(ctx, ours...)
	return len(ours), errors.Join(err, settlement.Handle(ctx, a.Store, a.Log, settled...))
}

// withoutWaiting leaves out sends of notifications that are still ACCEPTED: the ledger went back, and
// they are given to these when it is reconciled. Until then every sender is stopped.
func (a *Activities) withoutWaiting(ctx context.Context, channel notify.Channel, ours []store.Found) ([]store.Found, error) {
	matches, err := a.match(ctx, channel, ours)
	if err != nil || len(matches) == 0 {
		return ours, err
	}
	if err := a.fallBehind(ctx, channel, matches); err != nil {
		return nil, err
	}
	matched := map[string]bool{}
	for _, m := range matches {
		matched[m.send.Receipt.SID] = true
	}
	return slices.DeleteFunc(ours, func(f store.Found) bool { return matched[f.Receipt.SID] }), nil
}

// offer looks up the rows in doubt that were sent to the same numbers, and returns the numbers to
// which a create may still be under way: nothing sent to them is anybody else's yet.
func (a *Activities) offer(ctx context.Context, channel notify.Channel, ours []store.Found) (awaited map[string]bool, err error) {
	numbers := make([]string, len(ours))
	for i, f := range ours {
		numbers[i] = f.To.E164
	}
	owners, err := a.Store.DoubtfulOwners(ctx, channel, numbers, a.Terms.answerLimit())
	if err != nil {
		return nil, err
	}
	lookedUp := map[string]bool{}
	for _, o := range owners {
		if o.RunOut && !lookedUp[o.WorkflowID] {
			lookedUp[o.WorkflowID] = true
			if _, err := a.LookUp(ctx, Ref{WorkflowID: o.WorkflowID}); err != nil {
				return nil, err
			}
		}
	}
	if owners, err = a.Store.DoubtfulOwners(ctx, channel, numbers, 0); err != nil {
		return nil, err
	}
	awaited = map[string]bool{}
	for _, o := range owners {
		awaited[o.To] = true
	}
	return awaited, nil
}
