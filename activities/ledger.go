package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/settlement"
	"github.com/todoku/todoku/store"
)

// acceptedBefore is how much later than the carrier created a send its notification may have been accepted,
// by clocks that differ.
const acceptedBefore = time.Minute

// ErrTooYoung means that the carrier shows sends which notifications that still wait may have made, and
// that it is too early to tell.
var ErrTooYoung = errors.New("the carrier shows sends that may be those of waiting notifications, and it is too early to tell")

// CompareLedger looks, before anything is sent, whether the ledger lacks sends that the carrier has: the
// database may be a standby that took over or a backup. It does so once for each database server, over all
// processes: a server that was compared loses nothing while it runs. Sends of notifications that
// are still ACCEPTED stop every sender. The error is ErrTooYoung when it is to be called again.
func (a *Activities) CompareLedger(ctx context.Context) error {
	server, err := a.Store.Server(ctx)
	if err != nil {
		return err
	}
	compared, err := a.Store.ComparedOn(ctx)
	if err != nil {
		return err
	}
	if compared != server {
		if err := a.compareOn(ctx, server, compared); err != nil {
			return err
		}
	}
	a.Store.AllowClaims(server)
	return nil
}

func (a *Activities) compareOn(ctx context.Context, server, compared string) error {
	since, err := a.Store.NewestEvent(ctx)
	if err != nil {
		return err
	}
	if since == nil {
		return a.Store.MarkCompared(ctx, server) // nothing waits in it
	}
	if store.IsCopyOf(server, compared) {
		if err := a.doubtCopy(ctx, *since); err != nil {
			return err
		}
	}
	for _, channel := range []notify.Channel{notify.SMS, notify.Call} {
		if err := a.compareChannel(ctx, channel, *since, server); err != nil {
			return err
		}
	}
	return a.Store.MarkCompared(ctx, server)
}

// doubtCopy stops the senders of a ledger that was copied, or restored from a dump, with notifications that
// wait: where the database that it came from still runs, both would send them.
func (a *Activities) doubtCopy(ctx context.Context, since time.Time) error {
	open, err := a.Store.Unfinished(ctx)
	if err != nil || open.Waiting == 0 {
		return err
	}
	a.Log.ErrorContext(ctx, "the ledger was copied or restored to another database: every sender is stopped until `todoku ledger reconcile` has run", "waiting", open.Waiting)
	return a.Store.FallBehind(ctx, since, "the ledger was copied or restored to another database; if the former one still sends, stop one of the two")
}

func (a *Activities) compareChannel(ctx context.Context, channel notify.Channel, since time.Time, server string) error {
	strays, err := a.strays(ctx, channel, since, func() (bool, error) {
		compared, err := a.Store.ComparedOn(ctx)
		return compared == server, err
	})
	if err != nil || len(strays) == 0 {
		return err
	}
	matches, err := a.match(ctx, channel, strays)
	if err != nil || len(matches) == 0 {
		return err
	}
	awaited, err := a.offer(ctx, channel, strays)
	if err != nil {
		return err
	}
	matches, young, err := a.certain(ctx, matches, awaited)
	switch {
	case err != nil:
		return err
	case len(matches) > 0:
		return a.fallBehind(ctx, channel, matches)
	case young:
		return ErrTooYoung
	}
	return nil
}

// strays lists what was sent through the API from our senders since a moment, or still waits in the
// carrier's queue, and has no row. While another process lists the channel it waits; done says whether that
// one has done the work.
func (a *Activities) strays(ctx context.Context, channel notify.Channel, since time.Time, done func() (bool, error)) ([]store.Found, error) {
	listing, leave, err := a.takeTurn(ctx, channel)
	if err != nil {
		return nil, err
	}
	defer leave()
	found, err := a.readStrays(ctx, *listing, since.Add(-a.adoptionAge()-clockSkew), done)
	return found, errors.Join(err, a.Store.DropListing(detached(ctx), *listing))
}

// readStrays reads the list from its newest end. It is not narrowed by date: what waits in the carrier's
// queue has none.
func (a *Activities) readStrays(ctx context.Context, listing store.Listing, from time.Time, done func() (bool, error)) ([]store.Found, error) {
	if is, err := done(); is || err != nil {
		return nil, err
	}
	senders, err := a.Store.Senders(ctx)
	if err != nil {
		return nil, err
	}
	var strays []store.Found
	for page, err := range a.Carrier.List(ctx, listing.Channel, carrier.Filter{}) {
		if err == nil {
			err = a.Store.KeepListing(ctx, listing)
		}
		if err != nil {
			return nil, fmt.Errorf("list what the carrier has: %w", err)
		}
		sids := make([]string, len(page))
		older := true // all that was sent, and there is something
		for i, r := range page {
			sids[i] = r.SID
			older = older && !r.SentAt.IsZero() && r.SentAt.Before(from)
		}
		owned, err := a.Store.OwnedSIDs(ctx, sids)
		if err != nil {
			return nil, err
		}
		for _, r := range page {
			if owned[r.SID] || !r.CreatedAt.IsZero() && r.CreatedAt.Before(from) {
				continue
			}
			if found, ok := a.ours(senders, r); ok {
				strays = append(strays, found)
			}
		}
		if older {
			break
		}
	}
	return strays, nil
}

// match is a send at the carrier and the ACCEPTED notification that it may be of.
type match struct {
	send    store.Found
	waiting store.WaitingSend
}

// match finds for sends that no row has the notifications with the same recipient, sender and text that are
// still ACCEPTED, each for one send. Nobody may send these again before a person has looked.
func (a *Activities) match(ctx context.Context, channel notify.Channel, strays []store.Found) ([]match, error) {
	hashes := make([][]byte, len(strays))
	for i, s := range strays {
		hashes[i] = s.ToHash
	}
	waiting, err := a.Store.WaitingFor(ctx, channel, hashes)
	if err != nil {
		return nil, err
	}
	byNumber := map[string][]store.WaitingSend{}
	for _, w := range waiting {
		byNumber[w.To] = append(byNumber[w.To], w)
	}
	var matches []match
	for _, send := range strays {
		rows := byNumber[send.To.E164]
		for i, w := range rows {
			if mayHaveMade(channel, w, send) {
				matches = append(matches, match{send, w})
				byNumber[send.To.E164] = append(rows[:i:i], rows[i+1:]...)
				break
			}
		}
	}
	return matches, nil
}

func mayHaveMade(channel notify.Channel, w store.WaitingSend, send store.Found) bool {
	if w.SenderID != send.SenderID || !send.CreatedAt.IsZero() && w.CreatedAt.After(send.CreatedAt.Add(acceptedBefore)) {
		return false
	}
	body, err := w.Body()
	return err == nil && (channel == notify.Call || body == send.Body)
}

// certain keeps the matches whose sends are of no row in doubt and so old that every answer has come.
// young says that others may become certain.
func (a *Activities) certain(ctx context.Context, matches []match, awaited map[string]bool) (certain []match, young bool, err error) {
	sids := make([]string, len(matches))
	for i, m := range matches {
		sids[i] = m.send.Receipt.SID
	}
	owned, err := a.Store.OwnedSIDs(ctx, sids)
	if err != nil {
		return nil, false, err
	}
	for _, m := range matches {
		switch {
		case owned[m.send.Receipt.SID]:
		case awaited[m.send.To.E164], m.send.CreatedAt.IsZero(), time.Since(m.send.CreatedAt) < a.adoptionAge():
			young = true
		default:
			certain = append(certain, m)
		}
	}
	return certain, young, nil
}

func (a *Activities) fallBehind(ctx context.Context, channel notify.Channel, matches []match) error {
	since := matches[0].send.CreatedAt
	for _, m := range matches {
		if m.send.CreatedAt.Before(since) {
			since = m.send.CreatedAt
		}
	}
	a.Log.ErrorContext(ctx, "the carrier has sends whose notifications still wait to be sent: the ledger went back, and every sender is stopped until `todoku ledger reconcile` has run",
		"channel", channel, "count", len(matches), "since", since)
	return a.Store.FallBehind(ctx, since, "the carrier has sends whose notifications still wait to be sent")
}

// LedgerReconciled counts what ReconcileLedger found, and has put right where it was asked to.
type LedgerReconciled struct {
	Sends   int // at the carrier, which no row has
	Waiting int // of these, those of notifications that were still to be sent
	Found   int // the others: they become rows of their own
	Young   int // of which it is too early to tell; they are left alone
}

// ReconcileLedger gives the sends that the carrier has had since a moment, and no row has, to the
// notifications that still wait for the same recipient, sender and text; what then is left becomes rows that
// are marked as found. Without apply it only counts. The senders stay stopped.
func (a *Activities) ReconcileLedger(ctx context.Context, since time.Time, apply bool) (LedgerReconciled, error) {
	var done LedgerReconciled
	for _, channel := range []notify.Channel{notify.SMS, notify.Call} {
		some, err := a.reconcileChannel(ctx, channel, since, apply)
		if err != nil {
			return done, err
		}
		done.Sends += some.Sends
		done.Waiting += some.Waiting
		done.Found += some.Found
		done.Young += some.Young
	}
	return done, nil
}

func (a *Activities) reconcileChannel(ctx context.Context, channel notify.Channel, since time.Time, apply bool) (done LedgerReconciled, err error) {
	strays, err := a.strays(ctx, channel, since, func() (bool, error) { return false, nil })
	if err != nil || len(strays) == 0 {
		return done, err
	}
	awaited := map[string]bool{}
	if apply {
		if awaited, err = a.offer(ctx, channel, strays); err != nil {
			return done, err
		}
	}
	sids := make([]string, len(strays))
	for i, s := range strays {
		sids[i] = s.Receipt.SID
	}
	owned, err := a.Store.OwnedSIDs(ctx, sids)
	if err != nil {
		return done, err
	}
	var old []store.Found
	for _, s := range strays {
		switch {
		case owned[s.Receipt.SID]:
		case awaited[s.To.E164], s.CreatedAt.IsZero(), time.Since(s.CreatedAt) < a.adoptionAge():
			done.Young++
		default:
			old = append(old, s)
		}
	}
	matches, err := a.match(ctx, channel, old)
	if err != nil {
		return done, err
	}
	done.Sends, done.Waiting = len(old)+done.Young, len(matches)
	done.Found = len(old) - len(matches)
	if !apply {
		return done, nil
	}
	matched := map[string]bool{}
	var receipts []notify.Receipt
	for _, m := range matches {
		matched[m.send.Receipt.SID] = true
		receipt := m.send.Receipt
		receipt.NotificationID, receipt.Source = m.waiting.ID.String(), notify.FromPoll
		receipts = append(receipts, receipt)
	}
	if err := a.settle(ctx, receipts...); err != nil {
		return done, err
	}
	var others []store.Found
	for _, s := range old {
		if !matched[s.Receipt.SID] {
			others = append(others, s)
		}
	}
	settled, err := a.Store.AddFound(ctx, others...)
	return done, errors.Join(err, settlement.Handle(ctx, a.Store, a.Log, settled...))
}
