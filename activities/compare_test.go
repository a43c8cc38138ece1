package activities_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// sendBatch sends a batch of n SMS in one shard.
func (b *bench) sendBatch(n int) (store.Batch, activities.Ref) {
	b.t.Helper()
	body, next := "hello", 0
	batch, _, err := b.Store.AcceptBatch(b.t.Context(), store.NewBatch{
		ID: uuid.Must(uuid.NewV7()), Channel: notify.SMS, Message: &body, SenderID: b.sender[notify.SMS], ShardSize: n,
		Recipients: func() (store.BatchRecipient, bool, error) {
			next++
			to := notify.PhoneNumber{E164: batchNumber(next), National: "x"}
			return store.BatchRecipient{ID: uuid.Must(uuid.NewV7()), Row: next, To: to, ToHash: []byte(to.E164)}, next <= n, nil
		},
		Rejected: func() (int, []store.Rejected) { return 0, nil },
	})
	if err != nil {
		b.t.Fatal(err)
	}
	shard := activities.Ref{WorkflowID: notify.ShardWorkflowID(batch.ID, 0)}
	if _, err := b.Send(b.t.Context(), shard); err != nil {
		b.t.Fatal(err)
	}
	return batch, shard
}

func batchNumber(row int) string { return fmt.Sprintf("+1202555%04d", row) }

// compare has the batch checked, and returns what differs, by kind and row.
func (b *bench) compare(batch store.Batch) (store.CarrierCheck, map[string]store.CarrierDifference) {
	b.t.Helper()
	check, err := b.Store.RequestCarrierCheck(b.t.Context(), batch.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.CompareBatch(b.t.Context(), check.ID); err != nil {
		b.t.Fatal(err)
	}
	if check, err = b.Store.CarrierCheck(b.t.Context(), batch.ID); err != nil || check.EndedAt == nil || check.Failure != nil {
		b.t.Fatalf("the check is %+v, error %v", check, err)
	}
	found, err := b.Store.CarrierDifferences(b.t.Context(), batch.ID)
	if err != nil || len(found) != int(check.Differences()) {
		b.t.Fatalf("differences are %+v, error %v: want %d", found, err, check.Differences())
	}
	differences := map[string]store.CarrierDifference{}
	for _, d := range found {
		differences[fmt.Sprint(d.Kind, " ", d.Row)] = d
	}
	return check, differences
}

// delivered settles the rows of a batch, but for some, as callbacks would.
func (b *bench) delivered(batch store.Batch, except ...int32) {
	b.t.Helper()
	for row, err := range b.Store.BatchResults(b.t.Context(), batch.ID) {
		if err != nil {
			b.t.Fatal(err)
		}
		left := false
		for _, e := range except {
			left = left || e == row.Row
		}
		if left {
			continue
		}
		if _, err := b.Store.Settle(b.t.Context(), notify.Receipt{NotificationID: row.ID.String(), Channel: notify.SMS, Word: "delivered", Source: notify.FromWebhook}); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *bench) wantDifferences(got map[string]store.CarrierDifference, want ...string) {
	b.t.Helper()
	left := maps.Clone(got)
	for _, w := range want {
		if _, there := left[w]; !there {
			b.t.Errorf("%q is not found", w)
		}
		delete(left, w)
	}
	for w, d := range left {
		b.t.Errorf("%q is found: %+v", w, d)
	}
}

func TestABatchAgreesWithTheCarrier(t *testing.T) {
	b := newBench(t)
	b.behave(lostCallbacks + `, "outcomes": {"` + batchNumber(7) + `": {"status": "queued"}}}`)
	batch, _ := b.sendBatch(1100)
	b.await(1099, "delivered")
	b.delivered(batch, 7)
	check, differences := b.compare(batch)
	b.wantDifferences(differences)
	if check.Compared != 1100 || check.Listed != 1100 || check.Unverified != 0 {
		t.Errorf("the check is %+v", check)
	}
	if fetched, pages := b.fetched.Load(), b.pages.Load(); fetched != 1 || pages != 2 {
		t.Errorf("%d were fetched and %d pages read, want the queued one and 2", fetched, pages)
	}
}

func TestWhereABatchAndTheCarrierDifferIsTold(t *testing.T) {
	b := newBench(t)
	b.behave(lostCallbacks + `, "fault": {"kind": "accept_then_drop", "count": 1}}`)
	batch, shard := b.sendBatch(8)
	// The one whose answer was lost is sent again, as only a mistake would.
	b.execute(`UPDATE notifications SET status = 'ACCEPTED', claim_token = NULL, claim_deadline = NULL WHERE status = 'SENDING'`)
	var twice int32
	b.queryRow(&twice, `SELECT batch_row FROM notifications WHERE status = 'ACCEPTED'`)
	if _, err := b.Send(t.Context(), shard); err != nil {
		t.Fatal(err)
	}
	b.await(9, "delivered")
	others := []int32{1, 2, 3, 4}
	for i, row := range others {
		if row >= twice {
			others[i]++
		}
	}
	lost, second, forgotten, unheard := others[0], others[1], others[2], others[3]
	b.delivered(batch, unheard)
	// One has a SID that the carrier does not know, so that the send to it is nobody's.
	b.execute(`UPDATE notifications SET twilio_sid = $2 WHERE batch_row = $1`, lost, "SM"+strings.Repeat("a", 32))
	// A receipt has told of a second send.
	var id uuid.UUID
	b.queryRow(&id, `SELECT id FROM notifications WHERE batch_row = $1`, second)
	if _, err := b.Store.Settle(t.Context(), notify.Receipt{NotificationID: id.String(), Channel: notify.SMS, SID: "SM" + strings.Repeat("b", 32), Word: "sent", Source: notify.FromWebhook}); err != nil {
		t.Fatal(err)
	}
	// One was canceled by the ledger, which never heard of its send.
	b.execute(`UPDATE notifications SET status = 'CANCELED', twilio_sid = NULL, twilio_status = NULL, carrier_rank = 0 WHERE batch_row = $1`, forgotten)

	check, differences := b.compare(batch)
	b.wantDifferences(differences,
		fmt.Sprint("second_sid ", second), fmt.Sprint("extra_at_carrier ", twice), fmt.Sprint("extra_at_carrier ", lost),
		fmt.Sprint("extra_at_carrier ", forgotten), fmt.Sprint("missing_at_carrier ", lost), fmt.Sprint("status_differs ", unheard))
	if d := differences[fmt.Sprint("status_differs ", unheard)]; d.Status != notify.Pending || *d.CarrierStatus != "delivered" || d.CarrierCreatedAt == nil || d.To != batchNumber(int(unheard)) {
		t.Errorf("the one that was not heard of is told as %+v", d)
	}
	if check.Compared != 7 || check.Listed != 9 || check.SecondSIDs != 1 || check.Extra != 3 || check.Missing != 1 || check.StatusDiffers != 1 {
		t.Errorf("the check is %+v", check)
	}

	// A send that Reconcile has made a row of is nobody's still.
	b.Terms.Lease, b.Terms.PhoneHashKey = 50*time.Millisecond, []byte("a key of more than thirty-two characters")
	time.Sleep(1500 * time.Millisecond) // the carrier tells whole seconds
	if done, err := b.Reconcile(t.Context(), notify.SMS); err != nil || done.Found != 3 {
		t.Fatalf("reconciling reports %+v, error %v: want three found", done, err)
	}
	if again, _ := b.compare(batch); again.Extra != 3 || again.ID == check.ID {
		t.Errorf("after reconciling the check is %+v", again)
	}
}

func TestACheckOfWhatWasNotSentFindsNothing(t *testing.T) {
	b := newBench(t)
	b.execute(`UPDATE senders SET stopped_at = now(), stop_code = '20003'`)
	batch, _ := b.sendBatch(3)
	check, differences := b.compare(batch)
	b.wantDifferences(differences)
	if check.Compared != 0 || check.Listed != 0 || b.pages.Load() != 0 {
		t.Errorf("the check is %+v, after %d pages", check, b.pages.Load())
	}
}

func TestACheckThatWasReplacedOrGivenUpIsNotMade(t *testing.T) {
	b := newBench(t)
	b.behave(lostCallbacks + `}`)
	batch, _ := b.sendBatch(1)
	check, err := b.Store.RequestCarrierCheck(t.Context(), batch.ID)
	if err != nil {
		t.Fatal(err)
	}
	if same, err := b.Store.RequestCarrierCheck(t.Context(), batch.ID); err != nil || same.ID != check.ID {
		t.Errorf("asked twice, there is another check: %+v, error %v", same, err)
	}
	if err := b.GiveUpCarrierCheck(t.Context(), check.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.CompareBatch(t.Context(), check.ID); err == nil {
		t.Error("a check that was given up is made")
	}
	if ended, err := b.Store.CarrierCheck(t.Context(), batch.ID); err != nil || ended.Failure == nil {
		t.Errorf("the check is %+v, error %v: want to know why it failed", ended, err)
	}
}

func TestACheckWhoseListFailsSaysWhy(t *testing.T) {
	b := newBench(t)
	b.behave(lostCallbacks + `}`)
	batch, _ := b.sendBatch(2)
	check, err := b.Store.RequestCarrierCheck(t.Context(), batch.ID)
	if err != nil {
		t.Fatal(err)
	}
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"code": 20003, "message": "Authenticate", "status": 401}`))
	}))
	t.Cleanup(refuses.Close)
	broken, err := carrier.New(carrier.Options{AccountSID: testAccount, AuthToken: "wrong", APIURL: refuses.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broken.Close)
	works := b.Carrier
	b.Carrier = broken
	if err := b.CompareBatch(t.Context(), check.ID); err == nil {
		t.Error("the check was made though the list failed")
	}
	check, err = b.Store.CarrierCheck(t.Context(), batch.ID)
	if err != nil || check.EndedAt != nil || check.Failure == nil || !strings.Contains(*check.Failure, "20003") {
		t.Errorf("the check is %+v, error %v: want it to go on, with the last error", check, err)
	}
	b.Carrier = works
	if err := b.CompareBatch(t.Context(), check.ID); err != nil {
		t.Fatal(err)
	}
	if check, err = b.Store.CarrierCheck(t.Context(), batch.ID); err != nil || check.EndedAt == nil || check.Failure != nil {
		t.Errorf("the check is %+v, error %v: want it finished, without an error", check, err)
	}
}
