package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// acceptBatch accepts n notifications to different numbers in shards of the size.
func acceptBatch(t testing.TB, s *store.Store, n, shardSize int, change ...func(*store.NewBatch)) store.Batch {
	t.Helper()
	accepted, _, err := s.AcceptBatch(t.Context(), newBatch(t, s, n, shardSize, change...))
	if err != nil {
		t.Fatal(err)
	}
	return accepted
}

func newBatch(t testing.TB, s *store.Store, n, shardSize int, change ...func(*store.NewBatch)) store.NewBatch {
	t.Helper()
	sender, err := s.EnsureSender(t.Context(), notify.SMS, "+15005550006")
	if err != nil {
		t.Fatal(err)
	}
	body, next := "Your prescription is ready.", 0
	batch := store.NewBatch{
		ID: uuid.Must(uuid.NewV7()), Channel: notify.SMS, Message: &body, SenderID: sender, ShardSize: shardSize,
		Recipients: func() (store.BatchRecipient, bool, error) {
			if next == n {
				return store.BatchRecipient{}, false, nil
			}
			next++
			number := notify.PhoneNumber{E164: fmt.Sprintf("+1202555%04d", next), National: "x"}
			return store.BatchRecipient{ID: uuid.Must(uuid.NewV7()), Row: next, To: number, ToHash: []byte(number.E164)}, true, nil
		},
		Rejected: func() (int, []store.Rejected) { return 0, nil },
	}
	for _, c := range change {
		c(&batch)
	}
	return batch
}

func batchTerms(b store.Batch, shard, limit int) store.ClaimTerms {
	return store.ClaimTerms{Owner: store.Owner{WorkflowID: notify.ShardWorkflowID(b.ID, shard)}, Limit: limit, Lease: 15 * time.Second, Ahead: time.Second}
}

func claimShard(t testing.TB, s *store.Store, b store.Batch, shard, limit, want int) []store.Claim {
	t.Helper()
	claims, err := s.Claim(t.Context(), batchTerms(b, shard, limit))
	if err != nil || len(claims) != want {
		t.Fatalf("%d claims, error %v: want %d", len(claims), err, want)
	}
	return claims
}

// wantCounts checks how many have each status, and that they add up to the total.
func wantCounts(t testing.TB, s *store.Store, id uuid.UUID, want store.Counts) store.Batch {
	t.Helper()
	b, err := s.Batch(t.Context(), id)
	if err != nil || b.Counts != want {
		t.Fatalf("counts are %+v, error %v: want %+v", b.Counts, err, want)
	}
	if sum := want.Accepted + want.Sending + want.Pending + want.Success + want.Failed + want.Unknown + want.Skipped + want.Canceled; sum != int64(b.Total) {
		t.Fatalf("the counts add up to %d, the total is %d", sum, b.Total)
	}
	return b
}

func done(t testing.TB, control func(context.Context, uuid.UUID) (bool, error), id uuid.UUID, want bool) {
	t.Helper()
	if did, err := control(t.Context(), id); err != nil || did != want {
		t.Fatalf("it was done: %v, error %v, want %v", did, err, want)
	}
}

func TestABatchIsCountedByEveryStatement(t *testing.T) {
	s := openStore(t)
	b := acceptBatch(t, s, 10, 4)
	if b.State() != store.BatchRunning || b.Total != 10 || b.WorkflowID != notify.BatchWorkflowID(b.ID) {
		t.Errorf("accepted is %+v", b)
	}
	claims := claimShard(t, s, b, 0, 10, 4)
	claims = append(claims, claimShard(t, s, b, 2, 10, 2)...)
	wantCounts(t, s, b.ID, store.Counts{Accepted: 4, Sending: 6})
	if text, err := claims[0].Body(); err != nil || text != "Your prescription is ready." {
		t.Errorf("the text is %q, error %v", text, err)
	}
	if ok, err := s.GiveBack(t.Context(), claims[0].ID, claims[0].Token, store.Retry{Kind: store.EventTryFailed}); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if ok, err := s.Refuse(t.Context(), claims[1].ID, claims[1].Token, store.Failure{Kind: store.EventRefused, ErrorCode: "21211"}); err != nil || !ok {
		t.Fatal(ok, err)
	}
	for i, word := range []string{"queued", "delivered", "undelivered"} {
		settle(t, s, notify.Receipt{NotificationID: claims[2+i].ID.String(), Channel: notify.SMS, Word: word, Source: notify.FromWebhook})
	}
	events, err := s.Events(t.Context(), claims[1].ID)
	if err != nil || len(events) != 2 || events[0].Kind != store.EventAccepted || *events[0].Status != "ACCEPTED" || events[1].Kind != store.EventRefused {
		t.Errorf("the timeline is %+v, error %v", events, err)
	}
	want := store.Counts{Accepted: 5, Sending: 1, Pending: 1, Success: 1, Failed: 2}
	wantCounts(t, s, b.ID, want)
	if n, err := s.FoldBatchMoves(t.Context(), 1000); err != nil || n == 0 {
		t.Fatalf("%d changes were folded, error %v", n, err)
	}
	wantCounts(t, s, b.ID, want)
	if n, err := s.FoldBatchMoves(t.Context(), 1000); err != nil || n != 0 {
		t.Fatalf("%d changes were folded twice, error %v", n, err)
	}
	page, err := s.Batches(t.Context(), nil, 10)
	if err != nil || len(page) != 1 || page[0].Counts != want {
		t.Errorf("the list is %+v, error %v", page, err)
	}
	place := b.Place()
	if page, err = s.Batches(t.Context(), &place, 10); err != nil || len(page) != 0 {
		t.Errorf("the next page is %+v, error %v", page, err)
	}
}

func TestNothingOfAPausedBatchIsClaimed(t *testing.T) {
	s := openStore(t)
	b := acceptBatch(t, s, 3, 1)
	pause := func(ctx context.Context, id uuid.UUID) (bool, error) { return s.PauseBatch(ctx, id, new("wrong text")) }
	waiting := func(want int64) {
		t.Helper()
		if senders, err := s.Senders(t.Context()); err != nil || len(senders) != 1 || senders[0].Waiting != want {
			t.Errorf("the senders are %+v, error %v: want %d to wait", senders, err, want)
		}
	}
	claimShard(t, s, b, 0, 1, 1)
	waiting(2)
	done(t, pause, b.ID, true)
	done(t, pause, b.ID, true)
	waiting(0)
	claimShard(t, s, b, 1, 1, 0)
	left, err := s.Outstanding(t.Context(), batchTerms(b, 1, 1).Owner, time.Minute, time.Second, time.Hour)
	if err != nil || !left.Held {
		t.Errorf("outstanding is %+v, error %v: want it held", left, err)
	}
	before, err := s.BatchInFlight(t.Context(), b.ID, nil)
	if err != nil || before.Rows != 1 {
		t.Errorf("%d are in flight, error %v", before.Rows, err)
	}
	seen := wantCounts(t, s, b.ID, store.Counts{Accepted: 2, Sending: 1})
	if seen.State() != store.BatchPaused || *seen.PauseReason != "wrong text" {
		t.Errorf("it is %s because of %q", seen.State(), *seen.PauseReason)
	}
	held, _, err := s.Notifications(t.Context(), store.Filter{BatchID: &b.ID, Statuses: []notify.Status{notify.Held}}, nil, 10)
	if err != nil || len(held) != 2 || held[0].Status != notify.Held || held[0].Message == nil {
		t.Errorf("held are %+v, error %v", held, err)
	}
	done(t, s.ResumeBatch, b.ID, true)
	done(t, s.ResumeBatch, b.ID, true)
	waiting(2)
	claimShard(t, s, b, 1, 1, 1)
	if since, err := s.BatchInFlight(t.Context(), b.ID, &before.Edge); err != nil || since != before {
		t.Errorf("of what was in flight then, %+v is, error %v: want %+v", since, err, before)
	}
}

func TestACanceledBatchIsWrittenDownInChunks(t *testing.T) {
	s := openStore(t)
	b := acceptBatch(t, s, 5, 1)
	claims := claimShard(t, s, b, 0, 1, 1)
	if err := s.MarkShardsStarted(t.Context(), b.ID, 2); err != nil {
		t.Fatal(err)
	}
	done(t, s.CancelBatch, b.ID, true)
	claimShard(t, s, b, 1, 1, 0)
	page, _, err := s.Notifications(t.Context(), store.Filter{BatchID: &b.ID}, nil, 10)
	if err != nil || page[0].Status != notify.Canceled {
		t.Errorf("an unsent row reads as %s, error %v", page[0].Status, err)
	}
	n, owners, err := s.CancelChunk(t.Context())
	if err != nil || n != 4 || !slices.Equal(owners, []string{notify.ShardWorkflowID(b.ID, 1)}) {
		t.Fatalf("%d rows of %v were canceled, error %v", n, owners, err)
	}
	if n, _, err = s.CancelChunk(t.Context()); err != nil || n != 0 {
		t.Fatalf("%d rows were canceled twice, error %v", n, err)
	}
	// What is given back afterwards is not sent either.
	if ok, err := s.GiveBack(t.Context(), claims[0].ID, claims[0].Token, store.Retry{Kind: store.EventTryFailed}); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if n, _, err = s.CancelChunk(t.Context()); err != nil || n != 1 {
		t.Fatalf("%d rows were canceled, error %v: want the one that was given back", n, err)
	}
	wantCounts(t, s, b.ID, store.Counts{Canceled: 5})
	finished, err := s.FinishBatches(t.Context())
	if err != nil || len(finished) != 1 || finished[0].ID != b.ID {
		t.Fatalf("finished are %+v, error %v", finished, err)
	}
	done(t, s.CancelBatch, b.ID, true)
	done(t, s.ResumeBatch, b.ID, false)
	done(t, func(ctx context.Context, id uuid.UUID) (bool, error) { return s.PauseBatch(ctx, id, nil) }, b.ID, false)
	if _, err := s.CancelBatch(t.Context(), uuid.New()); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("error %v: want that there is no such batch", err)
	}
}

// A worker marks a batch finished a moment after its last notification is final. Nobody who looks at it
// can tell the difference, and nothing about it can be changed from then on.
func TestABatchWithoutAnythingOutstandingIsNotControlled(t *testing.T) {
	s := openStore(t)
	b := acceptBatch(t, s, 1, 1)
	c := claimShard(t, s, b, 0, 1, 1)[0]
	settle(t, s, notify.Receipt{NotificationID: c.ID.String(), Channel: notify.SMS, Word: "delivered", Source: notify.FromWebhook})
	done(t, s.CancelBatch, b.ID, false)
	done(t, s.ResumeBatch, b.ID, false)
	done(t, func(ctx context.Context, id uuid.UUID) (bool, error) { return s.PauseBatch(ctx, id, nil) }, b.ID, false)
	done(t, func(ctx context.Context, id uuid.UUID) (bool, error) {
		return s.ChangeBatch(ctx, id, store.BatchChange{Pace: new(time.Second)})
	}, b.ID, false)
	if seen := wantCounts(t, s, b.ID, store.Counts{Success: 1}); seen.State() != store.BatchFinished || seen.FinishedAt != nil || seen.PausedAt != nil {
		t.Errorf("the batch is %+v", seen)
	}

	b = acceptBatch(t, s, 1, 1)
	one, _, err := s.Notifications(t.Context(), store.Filter{BatchID: &b.ID}, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Cancel(t.Context(), one[0].ID); err != nil {
		t.Fatal(err)
	}
	done(t, func(ctx context.Context, id uuid.UUID) (bool, error) {
		return s.ChangeBatch(ctx, id, store.BatchChange{SendAt: new(time.Now().Add(time.Hour))})
	}, b.ID, false)
}

// TestNoClaimIsCommittedAfterAPause pauses a batch while others claim from it, and looks at what was
// claimed when the pause returned, and later.
func TestNoClaimIsCommittedAfterAPause(t *testing.T) {
	s := openStore(t)
	b := acceptBatch(t, s, 400, 100)
	var workers sync.WaitGroup
	stop := make(chan struct{})
	for shard := range 4 {
		workers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := s.Claim(context.Background(), batchTerms(b, shard, 2)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 10 {
		time.Sleep(3 * time.Millisecond)
		if _, err := s.PauseBatch(t.Context(), b.ID, nil); err != nil {
			t.Fatal(err)
		}
		first, err := s.Batch(t.Context(), b.ID)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
		wantCounts(t, s, b.ID, first.Counts)
		if _, err := s.ResumeBatch(t.Context(), b.ID); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	workers.Wait()
}

func TestABatchKeepsItsOwnPace(t *testing.T) {
	s := openStore(t)
	b := acceptBatch(t, s, 5, 5)
	interval := 200 * time.Millisecond
	if ok, err := s.ChangeBatch(t.Context(), b.ID, store.BatchChange{Pace: &interval}); err != nil || !ok {
		t.Fatal(ok, err)
	}
	claimShard(t, s, b, 0, 5, 1)
	claimShard(t, s, b, 0, 5, 0)
	left, err := s.Outstanding(t.Context(), batchTerms(b, 0, 5).Owner, time.Minute, time.Second, time.Hour)
	if err != nil || left.SendIn <= 0 || left.SendIn > interval {
		t.Errorf("the next one is due in %v, error %v", left.SendIn, err)
	}
	time.Sleep(left.SendIn + 5*time.Millisecond)
	claimShard(t, s, b, 0, 5, 1)
	if ok, err := s.ChangeBatch(t.Context(), b.ID, store.BatchChange{Pace: new(time.Duration(0))}); err != nil || !ok {
		t.Fatal(ok, err)
	}
	claimShard(t, s, b, 0, 5, 3)
}

func TestTheRateOfABatchIsWhatWasSentSinceItWasLastChanged(t *testing.T) {
	s := openStore(t)
	b := acceptBatch(t, s, 10, 10)
	if err := s.MarkShardsStarted(t.Context(), b.ID, 1); err != nil {
		t.Fatal(err)
	}
	sends := func(what string, want bool) {
		t.Helper()
		if err := s.SampleBatches(t.Context()); err != nil {
			t.Fatal(err)
		}
		if seen, err := s.Batch(t.Context(), b.ID); err != nil || seen.SendsPerSecond > 0 != want {
			t.Errorf("%s: %v a second, error %v", what, seen.SendsPerSecond, err)
		}
	}
	sends("at first", false)
	claims := claimShard(t, s, b, 0, 3, 3)
	sends("what is under way is not sent yet", false)
	for _, c := range claims {
		settle(t, s, notify.Receipt{NotificationID: c.ID.String(), Channel: notify.SMS, Word: "queued", Source: notify.FromCreate})
	}
	sends("three were sent", true)
	pause := func(ctx context.Context, id uuid.UUID) (bool, error) { return s.PauseBatch(ctx, id, nil) }
	for _, change := range []struct {
		name string
		do   func(context.Context, uuid.UUID) (bool, error)
	}{
		{"paused", pause}, {"resumed", s.ResumeBatch},
		{"slowed down", func(ctx context.Context, id uuid.UUID) (bool, error) {
			return s.ChangeBatch(ctx, id, store.BatchChange{Pace: new(time.Millisecond)})
		}},
	} {
		done(t, change.do, b.ID, true)
		sends(change.name, false)
		if change.name == "paused" {
			continue
		}
		for _, c := range claimShard(t, s, b, 0, 1, 1) {
			settle(t, s, notify.Receipt{NotificationID: c.ID.String(), Channel: notify.SMS, Word: "queued", Source: notify.FromCreate})
		}
		sends(change.name+", and one was sent", true)
	}
}

func TestABatchWaitsForItsTimeWhichChangesUntilTheFirstClaim(t *testing.T) {
	s := openStore(t)
	later := time.Now().Add(time.Hour)
	b := acceptBatch(t, s, 2, 1, func(n *store.NewBatch) { n.SendAt = &later })
	if b.State() != store.BatchScheduled {
		t.Errorf("it is %s", b.State())
	}
	claimShard(t, s, b, 0, 1, 0)
	unstarted := func() int {
		waiting, err := s.UnstartedBatches(t.Context(), 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(waiting)
	}
	if n := unstarted(); n != 0 {
		t.Errorf("%d batches are to be started before their time", n)
	}
	if moved, err := s.ChangeBatch(t.Context(), b.ID, store.BatchChange{SendAt: new(time.Now())}); err != nil || !moved {
		t.Fatal(moved, err)
	}
	if n := unstarted(); n != 1 {
		t.Errorf("%d batches are to be started, want 1", n)
	}
	if err := s.MarkBatchStarted(t.Context(), b.ID, b.WorkflowID); err != nil {
		t.Fatal(err)
	}
	if err := s.MarkShardsStarted(t.Context(), b.ID, 1); err != nil {
		t.Fatal(err)
	}
	claimShard(t, s, b, 0, 1, 1)
	if moved, err := s.ChangeBatch(t.Context(), b.ID, store.BatchChange{SendAt: &later}); err != nil || moved {
		t.Errorf("its time was moved: %v, error %v, after the first claim", moved, err)
	}
	if n := unstarted(); n != 0 {
		t.Errorf("%d batches are to be started twice", n)
	}
}

func TestTheWindowIsReadFromTheLedger(t *testing.T) {
	s := openStore(t)
	b := acceptBatch(t, s, 10, 2)
	var from int32
	want := func(started, unsent int32) {
		t.Helper()
		c, err := s.Carry(t.Context(), b.ID, from, time.Minute)
		from = c.From
		if err != nil || c.ShardsStarted != started || c.Unsent != unsent || c.Shards != 5 {
			t.Fatalf("it stands at %+v, error %v: want %d shards started and %d rows unsent", c, err, started, unsent)
		}
	}
	want(0, 0)
	if err := s.MarkShardsStarted(t.Context(), b.ID, 3); err != nil {
		t.Fatal(err)
	}
	want(3, 6)
	claimShard(t, s, b, 0, 1, 1)
	want(3, 5)
	claims := claimShard(t, s, b, 0, 1, 1)
	want(3, 4)
	// A row that was tried once holds up nobody.
	if ok, err := s.GiveBack(t.Context(), claims[0].ID, claims[0].Token, store.Retry{Kind: store.EventTryFailed, After: time.Minute}); err != nil || !ok {
		t.Fatal(ok, err)
	}
	want(3, 4)
	unsent, err := s.UnsentShards(t.Context(), b.ID, 10)
	if err != nil || len(unsent) != 3 {
		t.Errorf("unsent are %v, error %v", unsent, err)
	}
}

func TestAShardIsClaimedInItsOrderAndNoFurther(t *testing.T) {
	s := openStore(t)
	b := acceptBatch(t, s, 10, 4)
	var sent []string
	claimed := func(terms store.ClaimTerms) {
		t.Helper()
		claims, err := s.Claim(t.Context(), terms)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range claims {
			sent = append(sent, strings.TrimPrefix(c.To, "+1202555000"))
		}
	}
	claimed(batchTerms(b, 1, 2))
	owner := batchTerms(b, 1, 2).Owner.WorkflowID
	if n, err := s.Bequeath(t.Context(), owner); err != nil || n != 4 {
		t.Fatalf("%d rows were given to another workflow, error %v", n, err)
	}
	claimed(batchTerms(b, 1, 10)) // its rows are another's now
	successor := batchTerms(b, 1, 10)
	successor.Owner.WorkflowID = owner + "/r1"
	claimed(successor)
	if want := []string{"5", "6", "7", "8"}; !slices.Equal(sent, want) {
		t.Errorf("the second shard sent to %v, want %v", sent, want)
	}
}

func TestABatchIsAcceptedWholeOrNotAtAll(t *testing.T) {
	s, db := openLedger(t)
	wrong := errors.New("the file ends in the middle")
	sender, err := s.EnsureSender(t.Context(), notify.SMS, "+15005550006")
	if err != nil {
		t.Fatal(err)
	}
	for want, ends := range map[error]error{wrong: wrong, store.ErrNoRecipients: nil} {
		n := 0
		_, _, err = s.AcceptBatch(t.Context(), store.NewBatch{ID: uuid.New(), Channel: notify.SMS, Message: new("x"), SenderID: sender, ShardSize: 1,
			Recipients: func() (store.BatchRecipient, bool, error) {
				if n++; n > 5 || ends == nil {
					return store.BatchRecipient{}, false, ends
				}
				return store.BatchRecipient{ID: uuid.New(), Row: n, To: recipient, ToHash: []byte("x")}, true, nil
			},
			Rejected: func() (int, []store.Rejected) { return 0, nil },
		})
		if !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
	}
	var rows int
	if err := db.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM notifications) + (SELECT count(*) FROM batches)`).Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows are left, error %v", rows, err)
	}
}

func TestABatchWithoutItsWorkflowGetsAnother(t *testing.T) {
	s, db := openLedger(t)
	b := acceptBatch(t, s, 1, 1)
	if err := s.MarkBatchStarted(t.Context(), b.ID, b.WorkflowID); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), `UPDATE batches SET started_at = now() - '1 min'::interval, carry_by = now() - '1 min'::interval`); err != nil {
		t.Fatal(err)
	}
	neglected, err := s.NeglectedBatches(t.Context(), 10*time.Second, 10)
	if err != nil || len(neglected) != 1 {
		t.Fatalf("neglected are %+v, error %v", neglected, err)
	}
	if again, err := s.NeglectedBatches(t.Context(), 10*time.Second, 10); err != nil || len(again) != 0 {
		t.Fatalf("neglected are %+v again, error %v", again, err)
	}
	if err := s.BequeathBatch(t.Context(), neglected[0]); err != nil {
		t.Fatal(err)
	}
	waiting, err := s.UnstartedBatches(t.Context(), 0, 10)
	if err != nil || len(waiting) != 1 || waiting[0].WorkflowID != b.WorkflowID+"/r1" {
		t.Errorf("unstarted are %+v, error %v", waiting, err)
	}
}

// While its sender is stopped, the workflow of a batch looks at it every few minutes only.
func TestABatchIsLookedAtAgainWhenItsSenderIsResumed(t *testing.T) {
	s := openStore(t)
	b := acceptBatch(t, s, 2, 1)
	if err := s.MarkBatchStarted(t.Context(), b.ID, b.WorkflowID); err != nil {
		t.Fatal(err)
	}
	looks := func(when string, want int) {
		t.Helper()
		if neglected, err := s.NeglectedBatches(t.Context(), 0, 10); err != nil || len(neglected) != want {
			t.Fatalf("%s %d batches are to be looked at, error %v: want %d", when, len(neglected), err, want)
		}
	}
	restsFor := func(d time.Duration) {
		t.Helper()
		if _, err := s.Carry(t.Context(), b.ID, 0, d); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.StopSender(t.Context(), b.SenderID, false, "30034", "not registered"); err != nil {
		t.Fatal(err)
	}
	restsFor(5 * time.Minute)
	looks("while it rests", 0)
	if _, err := s.ResumeSender(t.Context(), b.SenderID); err != nil {
		t.Fatal(err)
	}
	looks("after the resumption", 1)
	restsFor(time.Minute)
	if _, err := s.ResumeSender(t.Context(), b.SenderID); err != nil {
		t.Fatal(err)
	}
	looks("after a resumption of what ran", 0)
}

// Claims hold the batch's row together, and a row is never free while many of them come one after the
// other: who wants to pause must not wait until nothing is left to claim.
func TestAPauseIsNotStarvedByClaims(t *testing.T) {
	s := openStore(t)
	const claimers, each = 15, 400
	b := acceptBatch(t, s, claimers*each, each)
	var claiming sync.WaitGroup
	underWay := make(chan struct{}, claimers)
	claimed := make([]int, claimers)
	for n := range claimers {
		claiming.Go(func() {
			for claimed[n] < each {
				claims, err := s.Claim(t.Context(), batchTerms(b, n, 1))
				if err != nil {
					t.Error(err)
					return
				}
				if len(claims) == 0 { // it is paused
					return
				}
				if claimed[n]++; claimed[n] == 10 {
					underWay <- struct{}{}
				}
			}
		})
	}
	for range claimers {
		<-underWay
	}
	done(t, func(ctx context.Context, id uuid.UUID) (bool, error) { return s.PauseBatch(ctx, id, nil) }, b.ID, true)
	paused, err := s.Batch(t.Context(), b.ID)
	if err != nil || paused.Accepted < claimers*each/2 {
		t.Errorf("when the batch was paused, only %d of %d were left to claim; error %v", paused.Accepted, claimers*each, err)
	}
	claiming.Wait()
	if later, err := s.Batch(t.Context(), b.ID); err != nil || later.Counts != paused.Counts {
		t.Errorf("after the pause %d more were claimed; error %v", paused.Accepted-later.Accepted, err)
	}
}

func TestABatchIsReadWithoutWhatWasAcceptedWhileItWas(t *testing.T) {
	s := openStore(t)
	var between []uuid.UUID
	amid := func(n *store.NewBatch) {
		next := n.Recipients
		n.Recipients = func() (store.BatchRecipient, bool, error) {
			between = append(between, accept(t, s, notify.SMS, false))
			return next()
		}
	}
	outer := acceptBatch(t, s, 5, 5, amid)
	var rows []int32
	var results []uuid.UUID
	for row, err := range s.BatchResults(t.Context(), outer.ID) {
		if err != nil {
			t.Fatal(err)
		}
		rows, results = append(rows, row.Row), append(results, row.ID)
	}
	if !slices.Equal(rows, []int32{1, 2, 3, 4, 5}) {
		t.Errorf("the results are of rows %v", rows)
	}
	first := list(t, s, store.Filter{BatchID: &outer.ID}, nil, 3)
	place := first[2].Place()
	pages := append(ids(first), ids(list(t, s, store.Filter{BatchID: &outer.ID}, &place, 3))...)
	slices.Reverse(pages)
	if !slices.Equal(pages, results) {
		t.Errorf("the pages have\n%v, the results\n%v", pages, results)
	}
	if len(between) != 6 || slices.Contains(results, between[2]) {
		t.Errorf("%v were accepted meanwhile, %v belong to the batch", between, results)
	}
}
