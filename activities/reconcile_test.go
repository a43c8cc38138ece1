package activities_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/settlement"
	"github.com/todoku/todoku/store"
)

// told notes which workflows were told that what they carry is final.
type told struct {
	mu        sync.Mutex
	workflows []string
}

func (w *told) Settled(_ context.Context, workflowID string, _ notify.Status) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.workflows = append(w.workflows, workflowID)
	return nil
}

// sendShard sends so many SMS of one workflow, whose callbacks are lost, and makes them look as if
// they were sent a while ago.
func (b *bench) sendShard(size int, ago time.Duration) activities.Ref {
	b.t.Helper()
	shard, rows := b.acceptShard(notify.SMS, size)
	if _, err := b.Send(b.t.Context(), shard); err != nil {
		b.t.Fatal(err)
	}
	if err := b.Store.MarkStarted(b.t.Context(), store.Owner{WorkflowID: shard.WorkflowID}); err != nil {
		b.t.Fatal(err)
	}
	if row := b.row(rows[0]); row.Status != notify.Pending {
		b.t.Fatalf("after sending a row is %s", row.Status)
	}
	b.execute(`UPDATE notifications SET sent_at = sent_at - $2::interval WHERE workflow_id = $1`, shard.WorkflowID, ago)
	return shard
}

// await waits until the carrier has so many messages with that word, and starts to count what it is
// asked for.
func (b *bench) await(want int, word string) {
	b.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		n := 0
		for page, err := range b.Carrier.List(b.t.Context(), notify.SMS, carrier.Filter{}) {
			if err != nil {
				b.t.Fatal(err)
			}
			for _, r := range page {
				if r.Word == word {
					n++
				}
			}
		}
		if n == want {
			break
		}
		if time.Now().After(end) {
			b.t.Fatalf("%d messages are %s at the carrier, want %d", n, word, want)
		}
	}
	b.pages.Store(0)
	b.fetched.Store(0)
}

const lostCallbacks = `{"callback_delay_ms": 1, "callbacks": "lost"`

func TestFewRowsAreFetchedAndManyAreListed(t *testing.T) {
	for _, test := range []struct{ rows, fetched, pages int64 }{
		{10, 10, 0},
		{20, 20, 0},
		{21, 0, 1},
		{1200, 0, 2},
	} {
		t.Run(fmt.Sprint(test.rows), func(t *testing.T) {
			b := newBench(t)
			b.behave(lostCallbacks + `}`)
			shard := b.sendShard(int(test.rows), 5*time.Minute)
			b.await(int(test.rows), "delivered")
			// Sent five minutes ago, by the ledger; by the carrier just now, which is in the listing's window.
			next, err := b.CheckStatus(t.Context(), shard)
			if err != nil || next.Action != activities.Done && test.rows <= 1000 {
				t.Fatalf("the activity answers %+v, error %v", next, err)
			}
			if n := b.count(notify.Success); n != int(test.rows) {
				t.Errorf("%d rows are SUCCESS, want all %d", n, test.rows)
			}
			if fetched, pages := b.fetched.Load(), b.pages.Load(); fetched != test.fetched || pages != test.pages {
				t.Errorf("%d were fetched and %d pages read, want %d and %d", fetched, pages, test.fetched, test.pages)
			}
		})
	}
}

func TestAPartOfAListThatCannotBeSettledLeavesTheListingToBeMadeAgain(t *testing.T) {
	b := newBench(t)
	b.behave(lostCallbacks + `}`)
	const rows = 5200 // two parts
	shard := b.sendShard(rows/2, 5*time.Minute)
	b.sendShard(rows/2, 5*time.Minute)
	b.await(rows, "delivered")
	b.execute(`ALTER TABLE notification_events ADD CONSTRAINT full_up CHECK (source <> 'poll') NOT VALID`)
	if _, err := b.CheckStatus(t.Context(), shard); err == nil || !strings.Contains(err.Error(), "full_up") {
		t.Fatalf("error %v: want the ledger's own", err)
	}
	b.execute(`ALTER TABLE notification_events DROP CONSTRAINT full_up`)
	if n := b.count(notify.Pending); n != rows {
		t.Fatalf("%d rows are PENDING, want all %d", n, rows)
	}
	b.pages.Store(0)
	if next, err := b.CheckStatus(t.Context(), shard); err != nil || next.Action != activities.Done {
		t.Fatalf("the activity answers %+v, error %v", next, err)
	}
	if settled, fetched, pages := b.count(notify.Success), b.fetched.Load(), b.pages.Load(); settled != rows || fetched != 0 || pages != 6 {
		t.Errorf("%d rows are SUCCESS, %d were fetched and %d pages read, want %d, none and 6", settled, fetched, pages, rows)
	}
}

func TestWhatAListCannotShowIsFetched(t *testing.T) {
	b := newBench(t)
	// One in 40 still waits in the carrier's queue, so it has no time of sending.
	b.behave(lostCallbacks + `, "outcomes": {"+12025550003": {"status": "queued"}, "+12025550007": {"status": "queued"}}}`)
	shard := b.sendShard(80, 5*time.Minute)
	b.await(78, "delivered")
	next, err := b.CheckStatus(t.Context(), shard)
	if err != nil || next.Action != activities.CheckStatus || next.In <= 0 {
		t.Fatalf("the activity answers %+v, error %v: want the queued ones to be asked for again", next, err)
	}
	if settled, waiting := b.count(notify.Success), b.count(notify.Pending); settled != 78 || waiting != 2 {
		t.Errorf("%d rows are SUCCESS and %d PENDING", settled, waiting)
	}
	if fetched, pages := b.fetched.Load(), b.pages.Load(); fetched != 2 || pages != 1 {
		t.Errorf("%d were fetched and %d pages read, want 2 and 1", fetched, pages)
	}
}

func TestChecksThatFallDueTogetherShareAListing(t *testing.T) {
	b := newBench(t)
	b.behave(lostCallbacks + `}`)
	shards := []activities.Ref{b.sendShard(60, 5*time.Minute), b.sendShard(60, 5*time.Minute), b.sendShard(60, 5*time.Minute)}
	b.await(180, "delivered")
	another := newProcess(b)
	var wg sync.WaitGroup
	for i, shard := range shards {
		process := []*activities.Activities{b.Activities, another}[i%2]
		wg.Go(func() {
			if next, err := process.CheckStatus(t.Context(), shard); err != nil || next.Action != activities.Done {
				t.Errorf("the activity answers %+v, error %v", next, err)
			}
		})
	}
	wg.Wait()
	if fetched, pages := b.fetched.Load(), b.pages.Load(); fetched != 0 || pages != 1 {
		t.Errorf("%d were fetched and %d pages read, want none and 1", fetched, pages)
	}
}

func TestSinglesThatFallDueTogetherShareAListing(t *testing.T) {
	b := newBench(t)
	b.behave(lostCallbacks + `}`)
	var singles []activities.Ref
	for range 40 {
		ref := b.accept(notify.SMS, recipient, "hello")
		next, err := b.Send(t.Context(), ref)
		b.want(ref, next, err, activities.CheckStatus, notify.Pending)
		singles = append(singles, ref)
	}
	b.execute(`UPDATE notifications SET sent_at = sent_at - interval '5 minutes'`)
	b.await(40, "delivered")
	another := newProcess(b)
	var wg sync.WaitGroup
	for i, ref := range singles {
		process := []*activities.Activities{b.Activities, another}[i%2]
		wg.Go(func() {
			if next, err := process.CheckStatus(t.Context(), ref); err != nil || next.Action != activities.Done || next.Status != notify.Success {
				t.Errorf("the activity answers %+v, error %v", next, err)
			}
		})
	}
	wg.Wait()
	if fetched, pages := b.fetched.Load(), b.pages.Load(); fetched != 0 || pages != 1 {
		t.Errorf("%d were fetched and %d pages read, want none and 1", fetched, pages)
	}
}

// newProcess is another worker with the same ledger.
func newProcess(b *bench) *activities.Activities {
	b.t.Helper()
	s, err := store.Open(b.t.Context(), b.databaseURL)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(s.Close)
	return &activities.Activities{Store: s, Carrier: b.Carrier, Log: b.Log, Terms: b.Terms}
}

func TestReconcileSettlesWhatNobodyElseDoes(t *testing.T) {
	for _, test := range []struct {
		name    string
		rows    int
		ago     time.Duration
		word    string
		status  notify.Status
		fetched int64
	}{
		{"many whose callbacks were lost", 1200, time.Hour, "delivered", notify.Success, 0},
		{"few whose callbacks were lost", 10, time.Hour, "delivered", notify.Success, 0},
		{"many that still wait in the carrier's queue", 25, time.Hour, "queued", notify.Pending, 25},
		{"some that waited there until their deadline", 10, 10 * time.Hour, "queued", notify.Unknown, 10},
		{"many that were silent until their deadline", 25, 10 * time.Hour, "sent", notify.Unknown, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			b.behave(fmt.Sprintf(lostCallbacks+`, "default_outcome": {"status": %q}}`, test.word))
			shard := b.sendShard(test.rows, test.ago)
			b.await(test.rows, test.word)
			var owner told
			b.Workflows = &owner
			done, err := b.Reconcile(t.Context(), notify.SMS)
			if err != nil {
				t.Fatal(err)
			}
			if n := b.count(test.status); n != test.rows {
				t.Errorf("%d rows are %s, want all %d", n, test.status, test.rows)
			}
			if fetched := b.fetched.Load(); fetched != test.fetched {
				t.Errorf("%d were fetched, want %d", fetched, test.fetched)
			}
			want, wantTold := activities.Reconciled{}, []string(nil)
			if test.status.Final() {
				want.Settled, wantTold = test.rows, []string{shard.WorkflowID}
			}
			if done != want || !slices.Equal(owner.workflows, wantTold) {
				t.Errorf("it reports %+v and told %v, want %+v and %v", done, owner.workflows, want, wantTold)
			}
		})
	}
}

func TestReconcileTellsOnlyWorkflowsWithNothingLeftToWaitFor(t *testing.T) {
	b := newBench(t)
	b.behave(lostCallbacks + `, "outcomes": {"+12025550000": {"status": "queued"}}}`)
	b.sendShard(3, 5*time.Minute)
	b.await(2, "delivered")
	var owner told
	b.Workflows = &owner
	if done, err := b.Reconcile(t.Context(), notify.SMS); err != nil || done.Settled != 2 {
		t.Fatalf("it reports %+v, error %v: want two settled", done, err)
	}
	if len(owner.workflows) != 0 {
		t.Errorf("it told %v, which still waits for one", owner.workflows)
	}
}

func TestReconcileLeavesTheWorkflowsTheirTime(t *testing.T) {
	b := newBench(t)
	b.behave(lostCallbacks + `, "default_outcome": {"status": "queued"}}`)
	b.sendShard(2, 6*time.Minute) // due a minute ago
	b.fetched.Store(0)
	if _, err := b.Reconcile(t.Context(), notify.SMS); err != nil || b.fetched.Load() != 0 {
		t.Errorf("%d were fetched, error %v: want none yet", b.fetched.Load(), err)
	}
}

func TestASendThatNoRowHasIsOfferedToARowInDoubt(t *testing.T) {
	for _, channel := range []notify.Channel{notify.SMS, notify.Call} {
		t.Run(string(channel), func(t *testing.T) {
			b := newBench(t)
			b.Terms.PhoneHashKey = []byte("a key of more than thirty-two characters")
			b.behave(`{"callback_delay_ms": 1, "fault": {"kind": "accept_then_drop", "count": 1}}`)
			ref := b.accept(channel, recipient, "hello")
			next, err := b.Send(t.Context(), ref)
			b.want(ref, next, err, activities.LookUp, notify.Sending)
			time.Sleep(500 * time.Millisecond) // the claim runs out, and the send leaves the carrier's queue
			done, err := b.Reconcile(t.Context(), channel)
			if err != nil || done.Found != 0 {
				t.Fatalf("it reports %+v, error %v: want none found that belongs to no row", done, err)
			}
			if row := b.row(ref); row.TwilioSID == nil || row.Status == notify.Sending {
				t.Errorf("the row is %s with the SID %v", row.Status, shown(row.TwilioSID))
			}
		})
	}
}

func TestASendOfOursThatBelongsToNoRowBecomesOne(t *testing.T) {
	b := newBench(t)
	b.Terms.Lease, b.Terms.PhoneHashKey = 50*time.Millisecond, []byte("a key of more than thirty-two characters")
	b.behave(lostCallbacks + `}`)
	ours, err := b.Carrier.Create(t.Context(), carrier.Create{Channel: notify.SMS, To: recipient, From: "+15005550006", Body: "lost", Deadline: time.Now().Add(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Carrier.Create(t.Context(), carrier.Create{Channel: notify.SMS, To: recipient, From: "+15005550010", Body: "of another program", Deadline: time.Now().Add(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	b.await(2, "delivered")
	young := b.Terms
	b.Terms.AmbiguityWindow = time.Minute
	if done, err := b.Reconcile(t.Context(), notify.SMS); err != nil || done.Found != 0 {
		t.Errorf("it reports %+v, error %v: want it left alone while a row may still ask for it", done, err)
	}
	b.Terms = young
	time.Sleep(1500 * time.Millisecond) // the carrier tells whole seconds
	for run, found := range []int{1, 0} {
		if done, err := b.Reconcile(t.Context(), notify.SMS); err != nil || done.Found != found {
			t.Errorf("run %d reports %+v, error %v: want %d found", run, done, err, found)
		}
	}
	owned, err := b.Store.OwnedSIDs(t.Context(), []string{ours.SID})
	if err != nil || !owned[ours.SID] || b.count(notify.Success) != 1 {
		t.Errorf("owned are %v and %d rows are SUCCESS, error %v: want the one send of ours", owned, b.count(notify.Success), err)
	}
}

func TestAnErrorOfTheSenderThatAPollTellsStopsIt(t *testing.T) {
	b := newBench(t)
	b.behave(lostCallbacks + `, "default_outcome": {"status": "undelivered", "error_code": 30034}}`)
	ref := b.accept(notify.SMS, recipient, "hello")
	next, err := b.Send(t.Context(), ref)
	b.want(ref, next, err, activities.CheckStatus, notify.Pending)
	time.Sleep(200 * time.Millisecond) // the simulator's own steps
	b.checkNow(ref)
	next, err = b.CheckStatus(t.Context(), ref)
	b.want(ref, next, err, activities.Done, notify.Failed)
	waiting := b.accept(notify.SMS, recipient, "hello")
	if row := b.row(waiting); row.Status != notify.Held {
		t.Errorf("another notification of the sender is %s, want HELD", row.Status)
	}
	if _, err := b.Store.ResumeSender(t.Context(), b.sender[notify.SMS]); err != nil {
		t.Fatal(err)
	}
	again, err := b.Store.Settle(t.Context(), notify.Receipt{NotificationID: ref.ID.String(), Channel: notify.SMS, Word: "undelivered", ErrorCode: "30034", Source: notify.FromWebhook})
	if err != nil {
		t.Fatal(err)
	}
	if err := settlement.Handle(t.Context(), b.Store, b.Log, again...); err != nil {
		t.Fatal(err)
	}
	if row := b.row(waiting); row.Status != notify.Accepted {
		t.Errorf("a repeat has stopped the resumed sender: the other notification is %s", row.Status)
	}
}
