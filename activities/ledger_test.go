package activities_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/devstack/devstacktest"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// sendAll runs Send for each notification as Temporal does: again while the database is away, and not
// before a pause has passed.
func (b *bench) sendAll(refs []activities.Ref) {
	b.t.Helper()
	for _, ref := range refs {
		_, err := b.Send(b.t.Context(), ref)
		for end := time.Now().Add(20 * time.Second); store.IsOutage(err) && time.Now().Before(end); {
			_, err = b.Send(b.t.Context(), ref)
		}
		if err != nil && !strings.Contains(err.Error(), "waits for its next try") {
			b.t.Fatal(err)
		}
	}
}

func (b *bench) acceptMany(n int) (refs []activities.Ref) {
	b.t.Helper()
	for i := range n {
		number := fmt.Sprintf("+1202555%04d", 100+i)
		refs = append(refs, b.accept(notify.SMS, number, "Your prescription is ready."))
	}
	return refs
}

// newLedgerBench has short windows, and finds what nobody asked for.
func newLedgerBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.Terms.PhoneHashKey = []byte("0123456789abcdef0123456789abcdef")
	b.Terms.Lease = time.Second
	b.behave(`{"callback_delay_ms": 1, "callbacks": "lost"}`)
	return b
}

// sendOutside sends an SMS from the usual sender of which the ledger knows nothing.
func (b *bench) sendOutside(number, body string) {
	b.t.Helper()
	if _, err := b.Carrier.Create(b.t.Context(), carrier.Create{Channel: notify.SMS, To: number, From: "+15005550006", Body: body,
		Deadline: time.Now().Add(time.Minute)}); err != nil {
		b.t.Fatal(err)
	}
}

// restart replaces the store by one that remembers nothing, as a worker's that has just started.
func (b *bench) restart() {
	b.t.Helper()
	s, err := store.Open(b.t.Context(), b.databaseURL)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(s.Close)
	b.Activities = &activities.Activities{Store: s, Carrier: b.Carrier, Log: slog.New(slog.DiscardHandler), Terms: b.Terms}
}

func (b *bench) stopCode() string {
	b.t.Helper()
	senders, err := b.Store.Senders(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	for _, s := range senders {
		if s.StopCode != nil {
			return *s.StopCode
		}
	}
	return ""
}

// reconcileLedger reconciles until nothing is too young.
func (b *bench) reconcileLedger() activities.LedgerReconciled {
	b.t.Helper()
	bound, err := b.Store.Bound(b.t.Context())
	if err != nil || bound.BehindSince == nil {
		b.t.Fatalf("the ledger is behind since %v, error %v", bound.BehindSince, err)
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		done, err := b.ReconcileLedger(b.t.Context(), *bound.BehindSince, true)
		if err != nil {
			b.t.Fatal(err)
		}
		if done.Young == 0 {
			return done
		}
		if time.Now().After(end) {
			b.t.Fatalf("it is still too early: %+v", done)
		}
	}
}

func TestAWorkerThatRemembersItsClaimsSendsNothingAgainOnAServerThatLostThem(t *testing.T) {
	t.Parallel()
	b := newLedgerBench(t)
	refs := b.acceptMany(5)
	stale := devstacktest.Snapshot(t, b.databaseURL)
	b.sendAll(refs)
	if n := b.creates(); n != 5 {
		t.Fatalf("%d creates, want 5", n)
	}
	devstacktest.FailOver(t, b.databaseURL, stale)
	b.sendAll(refs)
	if n := b.creates(); n != 5 {
		t.Errorf("%d creates after the fail-over, so %d people got two", n, n-5)
	}
	if code := b.stopCode(); code != store.CodeLedgerBehind {
		t.Errorf("the senders' stop code is %q", code)
	}
	for _, id := range b.sender {
		if _, err := b.Store.ResumeSender(t.Context(), id); !errors.Is(err, store.ErrLedgerBehind) {
			t.Errorf("resuming before the reconciliation: error %v", err)
		}
	}

	b.awaitListed(5)
	if done := b.reconcileLedger(); done.Waiting != 5 || done.Found != 0 {
		t.Errorf("the reconciliation found %+v, want 5 of waiting notifications", done)
	}
	if resumed, err := b.Store.CatchUp(t.Context()); err != nil || resumed != 2 {
		t.Errorf("%d senders were resumed, error %v", resumed, err)
	}
	more := b.accept(notify.SMS, "+12025550199", "one more")
	b.sendAll(append(refs, more))
	if n := b.creates(); n != 6 {
		t.Errorf("%d creates at the end, want those 5 and one more", n)
	}
}

func TestAServerThatHasEveryClaimIsWorkedOnWithoutAPause(t *testing.T) {
	t.Parallel()
	b := newLedgerBench(t)
	refs := b.acceptMany(3)
	b.sendAll(refs[:2])
	upToDate := devstacktest.Snapshot(t, b.databaseURL)
	devstacktest.FailOver(t, b.databaseURL, upToDate)
	b.sendAll(refs)
	if n, code := b.creates(), b.stopCode(); n != 3 || code != "" {
		t.Errorf("%d creates and stop code %q, want 3 and none", n, code)
	}
}

func TestAWorkerThatStartsOnAStaleCopyStopsBeforeItSends(t *testing.T) {
	t.Parallel()
	b := newLedgerBench(t)
	refs := b.acceptMany(4)
	stale := devstacktest.Snapshot(t, b.databaseURL)
	b.sendAll(refs)
	devstacktest.FailOver(t, b.databaseURL, stale)
	b.restart()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		err := b.CompareLedger(t.Context())
		if err == nil {
			break
		}
		if !errors.Is(err, activities.ErrTooYoung) || time.Now().After(end) {
			t.Fatal(err)
		}
	}
	b.sendAll(refs)
	if n, code := b.creates(), b.stopCode(); n != 4 || code != store.CodeLedgerBehind {
		t.Errorf("%d creates and stop code %q, want 4 and %s", n, code, store.CodeLedgerBehind)
	}
	b.pages.Store(0)
	if err := b.CompareLedger(t.Context()); err != nil || b.pages.Load() != 0 {
		t.Errorf("a second comparison on the same server reads %d pages, error %v", b.pages.Load(), err)
	}
}

func TestSendsOfOthersStopNobody(t *testing.T) {
	t.Parallel()
	b := newLedgerBench(t)
	refs := b.acceptMany(2)
	// Another program sends from the same number: another text, and a number that nothing waits for.
	b.sendOutside("+12025550100", "another text")
	b.sendOutside("+12025550177", "Your prescription is ready.")
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		reconciled, err := b.Reconcile(t.Context(), notify.SMS)
		if err != nil {
			t.Fatal(err)
		}
		if reconciled.Found > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the sends of others did not become rows")
		}
	}
	if err := b.CompareLedger(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.sendAll(refs)
	if n, code := b.creates(), b.stopCode(); n != 4 || code != "" {
		t.Errorf("%d creates and stop code %q, want 4 and none", n, code)
	}
}

func TestReconcileStopsTheSendersForASendWhoseNotificationStillWaits(t *testing.T) {
	t.Parallel()
	b := newLedgerBench(t)
	ref := b.accept(notify.SMS, "+12025550100", "hello")
	b.sendOutside("+12025550100", "hello")
	for end := time.Now().Add(30 * time.Second); b.stopCode() == ""; time.Sleep(100 * time.Millisecond) {
		if _, err := b.Reconcile(t.Context(), notify.SMS); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(end) {
			t.Fatal("the senders were not stopped")
		}
	}
	b.sendAll([]activities.Ref{ref})
	if n, code := b.creates(), b.stopCode(); n != 1 || code != store.CodeLedgerBehind {
		t.Errorf("%d creates and stop code %q", n, code)
	}
	var found int
	b.queryRow(&found, `SELECT count(*) FROM notifications WHERE found_at IS NOT NULL`)
	if found != 0 {
		t.Errorf("%d rows were made for it", found)
	}
	if done := b.reconcileLedger(); done.Waiting != 1 {
		t.Errorf("the reconciliation found %+v", done)
	}
	if row := b.row(ref); row.Status == notify.Accepted {
		t.Error("the notification waits still")
	}
}

func TestASendOfARowInDoubtStopsNobody(t *testing.T) {
	t.Parallel()
	b := newLedgerBench(t)
	b.behave(`{"callbacks": "lost", "fault": {"kind": "accept_then_drop", "count": 1}}`)
	doubtful := b.accept(notify.SMS, "+12025550100", "hello")
	b.sendAll([]activities.Ref{doubtful}) // its answer is lost
	same := b.accept(notify.SMS, "+12025550100", "hello")
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		err := b.CompareLedger(t.Context())
		if err == nil {
			break
		}
		if !errors.Is(err, activities.ErrTooYoung) || time.Now().After(end) {
			t.Fatal(err)
		}
	}
	if code := b.stopCode(); code != "" {
		t.Errorf("the senders were stopped by %s", code)
	}
	if row := b.row(doubtful); row.Status == notify.Sending {
		t.Error("the row in doubt was not looked up")
	}
	b.sendAll([]activities.Ref{same})
	if n := b.creates(); n != 2 {
		t.Errorf("%d creates, want one for each", n)
	}
}

func TestACopyOfALedgerSendsNothingBeforeAPersonHasLooked(t *testing.T) {
	t.Parallel()
	b := newLedgerBench(t)
	refs := b.acceptMany(2)
	if err := b.CompareLedger(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.databaseURL = devstacktest.Snapshot(t, b.databaseURL)
	b.restart()
	if err := b.CompareLedger(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.sendAll(refs)
	if n, code := b.creates(), b.stopCode(); n != 0 || code != store.CodeLedgerBehind {
		t.Errorf("%d creates and stop code %q, want none and %s", n, code, store.CodeLedgerBehind)
	}
	if done := b.reconcileLedger(); done.Sends != 0 {
		t.Errorf("the reconciliation found %+v", done)
	}
	if _, err := b.Store.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.sendAll(refs)
	if n := b.creates(); n != 2 {
		t.Errorf("%d creates, want 2", n)
	}
}

func TestAWorkerThatLostNoClaimSendsNothingThatAnotherOneSent(t *testing.T) {
	t.Parallel()
	b := newLedgerBench(t)
	refs := b.acceptMany(3)
	stale := devstacktest.Snapshot(t, b.databaseURL)
	sender := b.Activities // it dies with the first server
	b.restart()
	b.Store.GuardClaims()
	if err := b.CompareLedger(t.Context()); err != nil {
		t.Fatal(err)
	}
	survivor := b.Activities
	b.Activities = sender
	b.sendAll(refs)
	b.Activities = survivor

	devstacktest.FailOver(t, b.databaseURL, stale)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if err := survivor.CompareLedger(t.Context()); err == nil {
				return
			}
		}
		t.Error("the ledger could not be compared")
	}()
	for end := time.Now().Add(40 * time.Second); ; {
		_, err := survivor.Send(t.Context(), refs[0])
		if err == nil || strings.Contains(err.Error(), "waits for its next try") || time.Now().After(end) {
			break
		}
		if !errors.Is(err, store.ErrClaimsHeld) && !store.IsOutage(err) {
			t.Fatal(err)
		}
	}
	<-done
	b.sendAll(refs)
	if n, code := b.creates(), b.stopCode(); n != 3 || code != store.CodeLedgerBehind {
		t.Errorf("%d creates and stop code %q, want 3 and %s", n, code, store.CodeLedgerBehind)
	}
}

// awaitListed waits until the carrier's list shows so many messages: it leaves out what is still queued.
func (b *bench) awaitListed(n int) {
	b.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		listed := 0
		for page, err := range b.Carrier.List(b.t.Context(), notify.SMS, carrier.Filter{SentAfter: time.Now().Add(-time.Hour)}) {
			if err != nil {
				b.t.Fatal(err)
			}
			listed += len(page)
		}
		if listed >= n {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("the carrier lists %d, want %d", listed, n)
		}
	}
}
