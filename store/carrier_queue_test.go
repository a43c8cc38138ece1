package store_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// limited are the terms of a single whose paced sender may have so many notifications in the carrier's queue.
func limited(id uuid.UUID, limit int) store.ClaimTerms {
	t := terms(id)
	t.SMSInterval, t.CallInterval = time.Microsecond, time.Microsecond
	t.SMSQueue, t.CallQueue = store.NewQueueLimit(limit), store.NewQueueLimit(limit)
	return t
}

func TestConcurrentClaimsKeepTheLimitOfTheCarriersQueue(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	const limit, rows = 7, 40
	ids := make([]uuid.UUID, rows)
	for i := range ids {
		ids[i] = accept(t, s, notify.SMS, false)
	}
	claimAll := func() int {
		var claimed atomic.Int64
		var wg sync.WaitGroup
		for _, id := range ids {
			wg.Go(func() {
				claims, err := s.Claim(t.Context(), limited(id, limit))
				if err != nil {
					t.Error(err)
				}
				claimed.Add(int64(len(claims)))
			})
		}
		wg.Wait()
		return int(claimed.Load())
	}
	if n := claimAll(); n != limit {
		t.Fatalf("%d claims with a limit of %d", n, limit)
	}
	var queued []uuid.UUID
	for _, id := range ids {
		if read(t, s, id).Status == notify.Sending {
			queued = append(queued, id)
			settle(t, s, notify.Receipt{NotificationID: id.String(), Channel: notify.SMS, Word: "queued", Source: notify.FromCreate})
		}
	}
	if n := claimAll(); n != 0 {
		t.Fatalf("%d claims while the queue is full", n)
	}
	for _, id := range queued[:3] {
		settle(t, s, notify.Receipt{NotificationID: id.String(), Channel: notify.SMS, Word: "sent", Source: notify.FromWebhook})
	}
	if n := claimAll(); n != 3 {
		t.Errorf("%d claims after 3 left the queue, want 3", n)
	}
}

func TestACallLeavesTheCarriersQueueWhenItIsInitiated(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	first, second := accept(t, s, notify.Call, false), accept(t, s, notify.Call, false)
	if claims, err := s.Claim(t.Context(), limited(first, 1)); err != nil || len(claims) != 1 {
		t.Fatal(claims, err)
	}
	for _, word := range []string{"", "queued"} {
		if word != "" {
			settle(t, s, notify.Receipt{NotificationID: first.String(), Channel: notify.Call, Word: word, Source: notify.FromCreate})
		}
		if left := noClaim(t, s, limited(second, 1)); !left.Queued || left.Held {
			t.Fatalf("after %q what is left is %+v, want it to wait for the queue", word, left)
		}
	}
	settle(t, s, notify.Receipt{NotificationID: first.String(), Channel: notify.Call, Word: "initiated", Source: notify.FromWebhook})
	if claims, err := s.Claim(t.Context(), limited(second, 1)); err != nil || len(claims) != 1 {
		t.Errorf("claims %+v, error %v: want one", claims, err)
	}
}

func TestWhatWaitsForTheCarriersQueueIsHeld(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	first, second := accept(t, s, notify.SMS, false), accept(t, s, notify.SMS, false)
	if claims, err := s.Claim(t.Context(), limited(first, 1)); err != nil || len(claims) != 1 {
		t.Fatal(claims, err)
	}
	noClaim(t, s, limited(second, 1))
	if status := read(t, s, second).Status; status != notify.Held {
		t.Errorf("it reads %s, want HELD", status)
	}
	if held, _, err := s.Notifications(t.Context(), store.Filter{Statuses: []notify.Status{notify.Held}}, nil, 10); err != nil || len(held) != 1 || held[0].ID != second {
		t.Errorf("the list of what is HELD has %d, error %v: want it alone", len(held), err)
	}
	senders, err := s.Senders(t.Context())
	if err != nil || senders[0].Queued != 1 || senders[0].QueueFullAt == nil {
		t.Errorf("senders %+v, error %v: want one queued, and full", senders, err)
	}
	settle(t, s, notify.Receipt{NotificationID: first.String(), Channel: notify.SMS, Word: "delivered", Source: notify.FromWebhook})
	if claims, err := s.Claim(t.Context(), limited(second, 1)); err != nil || len(claims) != 1 {
		t.Fatal(claims, err)
	}
	if third := accept(t, s, notify.SMS, false); read(t, s, third).Status != notify.Accepted {
		t.Error("after a claim found room, another one reads HELD")
	}
}

func TestBatchesLeaveATenthOfTheCarriersQueueToSingles(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	b := acceptBatch(t, s, 30, 30)
	claimed := 0
	for range 30 {
		terms := limited(uuid.Nil, 20)
		terms.Owner, terms.Limit = batchTerms(b, 0, 30).Owner, 30
		claims, err := s.Claim(t.Context(), terms)
		if err != nil {
			t.Fatal(err)
		}
		claimed += len(claims)
	}
	if claimed != 18 {
		t.Errorf("a batch has %d in the queue, want 18 of 20", claimed)
	}
	single := acceptFrom(t, s, notify.SMS, b.SenderID)
	if claims, err := s.Claim(t.Context(), limited(single, 20)); err != nil || len(claims) != 1 {
		t.Errorf("a single finds no room: %+v, error %v", claims, err)
	}
}

func TestTheQueueHasNoLimitWhileCallbacksDoNotCome(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	const limit, patience = 2, 50 * time.Millisecond
	var ids []uuid.UUID
	for range 5 {
		ids = append(ids, accept(t, s, notify.SMS, false))
	}
	sender := int64(0)
	for _, id := range ids[:limit] {
		claims, err := s.Claim(t.Context(), limited(id, limit))
		if err != nil || len(claims) != 1 {
			t.Fatal(claims, err)
		}
		sender = claims[0].SenderID
		settle(t, s, notify.Receipt{NotificationID: id.String(), Channel: notify.SMS, Word: "queued", Source: notify.FromCreate})
	}
	noClaim(t, s, limited(ids[2], limit))
	stalled := func() []store.FullQueue {
		t.Helper()
		full, err := s.StalledQueues(t.Context(), notify.SMS, store.NewQueueLimit(limit), patience, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return full
	}
	var full []store.FullQueue
	for end := time.Now().Add(10 * time.Second); len(full) == 0 && time.Now().Before(end); {
		full = stalled()
	}
	if len(full) != 1 || full[0].SenderID != sender || time.Since(full[0].Window.From) > time.Minute {
		t.Fatalf("full are %+v, want the sender with a window", full)
	}
	if again := stalled(); len(again) != 0 {
		t.Errorf("it is named again at once: %+v", again)
	}
	if off, err := s.UnlimitQueue(t.Context(), sender, store.NewQueueLimit(limit), patience); err != nil || off {
		t.Fatalf("the limit is off (%v, error %v) although the queue is full", off, err)
	}
	// The carrier's list shows that one has left the queue, of which no callback told.
	settle(t, s, notify.Receipt{NotificationID: ids[0].String(), Channel: notify.SMS, Word: "sent", Source: notify.FromPoll},
		notify.Receipt{NotificationID: ids[1].String(), Channel: notify.SMS, Word: "sent", Source: notify.FromPoll})
	if off, err := s.UnlimitQueue(t.Context(), sender, store.NewQueueLimit(limit), patience); err != nil || !off {
		t.Fatalf("the limit is on (%v, error %v) although no callbacks come", off, err)
	}
	for _, id := range ids[2:] {
		if claims, err := s.Claim(t.Context(), limited(id, limit)); err != nil || len(claims) != 1 {
			t.Errorf("claims %+v, error %v: want one", claims, err)
		}
	}
	// A callback turns it on again.
	if err := s.NoteCallbacks(t.Context(), sender); err != nil {
		t.Fatal(err)
	}
	last := accept(t, s, notify.SMS, false)
	if left := noClaim(t, s, limited(last, limit)); !left.Queued {
		t.Errorf("what is left is %+v, want it to wait for the queue", left)
	}
}

func TestASenderWithoutPacingHasNoLimitInTheCarriersQueue(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	for range 5 {
		unpaced := limited(accept(t, s, notify.SMS, false), 2)
		unpaced.SMSInterval = 0
		if claims, err := s.Claim(t.Context(), unpaced); err != nil || len(claims) != 1 {
			t.Fatal(claims, err)
		}
	}
}

func TestACallInTheCarriersQueueIsCanceledThere(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		word   string // after the wish
		status notify.Status
	}{
		{"canceled", notify.Canceled},
		{"completed", notify.Success},
		{"busy", notify.Failed},
	} {
		t.Run(test.word, func(t *testing.T) {
			t.Parallel()
			s := openStore(t)
			id := accept(t, s, notify.Call, false)
			claim(t, s, id)
			sid := fmt.Sprintf("CA%032x", 7)
			settle(t, s, notify.Receipt{NotificationID: id.String(), Channel: notify.Call, SID: sid, Word: "queued", Source: notify.FromCreate})
			for range 2 {
				if wish := cancel(t, s, id); wish.Status != notify.Pending || !wish.Queued {
					t.Fatalf("canceling = %+v, want a queued call", wish)
				}
			}
			due, err := s.Unsettled(t.Context(), terms(id).Owner, 5*time.Minute, 10)
			if err != nil || len(due) != 1 || !due[0].Cancel {
				t.Fatalf("due are %+v, error %v: want the call, to be canceled", due, err)
			}
			settle(t, s, notify.Receipt{NotificationID: id.String(), Channel: notify.Call, SID: sid, Word: test.word, Duration: seconds(9), Source: notify.FromPoll})
			if row := read(t, s, id); row.Status != test.status {
				t.Errorf("the row is %s, want %s", row.Status, test.status)
			}
		})
	}
}

func TestACallThatRingsIsNotCanceled(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	id := accept(t, s, notify.Call, false)
	claim(t, s, id)
	settle(t, s, notify.Receipt{NotificationID: id.String(), Channel: notify.Call, Word: "ringing", Source: notify.FromWebhook})
	if wish := cancel(t, s, id); wish.Status != notify.Pending || wish.Queued {
		t.Errorf("canceling = %+v", wish)
	}
	settle(t, s, notify.Receipt{NotificationID: id.String(), Channel: notify.Call, Word: "canceled", Source: notify.FromWebhook})
	if row := read(t, s, id); row.Status != notify.Failed {
		t.Errorf("canceled by nobody's wish, it is %s, want FAILED", row.Status)
	}
}

func TestQueuedCallsOfACanceledBatchAreAskedForOnce(t *testing.T) {
	t.Parallel()
	for name, claimTerms := range map[string]store.ClaimTerms{"with a pace": limited(uuid.Nil, 20), "without": terms(uuid.Nil)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			askForQueuedCalls(t, claimTerms)
		})
	}
}

func askForQueuedCalls(t *testing.T, claimTerms store.ClaimTerms) {
	s := openStore(t)
	b := acceptBatch(t, s, 4, 4, func(b *store.NewBatch) { b.Channel = notify.Call })
	claimTerms.Owner, claimTerms.Limit = batchTerms(b, 0, 4).Owner, 3
	claims, err := s.Claim(t.Context(), claimTerms)
	if err != nil || len(claims) != 3 {
		t.Fatal(claims, err)
	}
	for i, word := range []string{"queued", "ringing"} {
		settle(t, s, notify.Receipt{NotificationID: claims[i].ID.String(), Channel: notify.Call, SID: fmt.Sprintf("CA%032x", i), Word: word, Source: notify.FromCreate})
	}
	if owners, err := s.CancelQueuedCalls(t.Context()); err != nil || len(owners) != 0 {
		t.Fatalf("of a running batch: %v, error %v", owners, err)
	}
	done(t, s.CancelBatch, b.ID, true)
	if owners, err := s.CancelQueuedCalls(t.Context()); err != nil || len(owners) != 1 || owners[0] != claimTerms.Owner.WorkflowID {
		t.Fatalf("owners %v, error %v: want the shard", owners, err)
	}
	if owners, err := s.CancelQueuedCalls(t.Context()); err != nil || len(owners) != 0 {
		t.Fatalf("asked for again: %v, error %v", owners, err)
	}
	// One whose answer comes only now is asked for then.
	settle(t, s, notify.Receipt{NotificationID: claims[2].ID.String(), Channel: notify.Call, SID: fmt.Sprintf("CA%032x", 9), Word: "queued", Source: notify.FromCreate})
	if owners, err := s.CancelQueuedCalls(t.Context()); err != nil || len(owners) != 1 {
		t.Fatalf("owners %v, error %v: want the shard again", owners, err)
	}
}
