package simulator

import (
	"iter"
	"slices"
	"time"
)

// ledger holds what was created on one channel. The lock of its world guards it.
type ledger struct {
	accepted int
	bySID    map[string]*record
	created  []*record          // oldest first
	sent     []*record          // in the order in which they were sent; only messages have a date to be sorted by
	unsent   int                // how many are not among sent, deleted ones included
	latest   map[string]*record // the newest record to each number; its older ones follow
	paces    map[string]*pace   // by sender
}

// pace is how closely the creates of one sender followed each other.
type pace struct {
	last   time.Time
	minGap time.Duration
	gaps   int
}

func newLedger() *ledger {
	return &ledger{
		bySID:  make(map[string]*record),
		latest: make(map[string]*record),
		paces:  make(map[string]*pace),
	}
}

func (l *ledger) add(r *record) {
	l.accepted++
	l.unsent++
	l.bySID[r.sid] = r
	r.createdIndex = len(l.created)
	l.created = append(l.created, r)
	r.older = l.latest[r.to]
	l.latest[r.to] = r

	p, ok := l.paces[r.sender]
	if !ok {
		l.paces[r.sender] = &pace{last: r.createdAt}
		return
	}
	gap := r.createdAt.Sub(p.last).Abs() // two that arrive together may be taken in either order
	if p.gaps == 0 || gap < p.minGap {
		p.minGap = gap
	}
	p.gaps++
	if r.createdAt.After(p.last) {
		p.last = r.createdAt
	}
}

// find returns the account's record, nil when there is none.
func (l *ledger) find(account, sid string) *record {
	if r := l.bySID[sid]; r != nil && r.account == account {
		return r
	}
	return nil
}

// markSent gives a message its place among those that have a date to be sorted by.
func (l *ledger) markSent(r *record) {
	l.unsent--
	r.sentIndex = len(l.sent)
	l.sent = append(l.sent, r)
}

func (l *ledger) remove(r *record) {
	r.deleted = true
	delete(l.bySID, r.sid)
}

// newestFirst yields records as Twilio lists them: messages by the date they were sent, those without one first,
// and among those, and for calls, by creation; the last one first. With a number it yields those to it only.
//
// A page may end with a message that is sent before the next page is asked for. That page then goes on where
// the message stood among the unsent ones, so a walk from page to page may meet a message twice but misses none.
func (l *ledger) newestFirst(to string, after *record) iter.Seq[*record] {
	if to != "" {
		return l.newestTo(to, after)
	}
	return func(yield func(*record) bool) {
		created, sent := l.created, l.sent
		switch {
		case after == nil:
		case after.sentAt.IsZero() || after.pagedUnsent:
			created = created[:after.createdIndex]
		default:
			created, sent = nil, sent[:after.sentIndex]
		}
		left := l.unsent // so that a long list of sent ones is not searched for them
		for i := len(created) - 1; i >= 0 && left > 0; i-- {
			r := created[i]
			if !r.sentAt.IsZero() {
				continue
			}
			left--
			if !r.deleted && !yield(r) {
				return
			}
		}
		for _, r := range slices.Backward(sent) {
			if !r.deleted && !yield(r) {
				return
			}
		}
	}
}

// newestTo is newestFirst for one number.
func (l *ledger) newestTo(to string, after *record) iter.Seq[*record] {
	var records []*record
	for r := l.latest[to]; r != nil; r = r.older {
		records = append(records, r)
	}
	unsent := func(r *record) bool { return r.sentAt.IsZero() || r == after && r.pagedUnsent }
	slices.SortStableFunc(records, func(a, b *record) int {
		switch first, second := unsent(a), unsent(b); {
		case first && second:
			return 0 // the chain has the one created last first, and equals keep their order
		case first:
			return -1
		case second:
			return 1
		}
		return b.sentAt.Compare(a.sentAt)
	})
	return func(yield func(*record) bool) {
		started := after == nil
		for _, r := range records {
			if started && !r.deleted && !yield(r) {
				return
			}
			started = started || r == after
		}
	}
}
