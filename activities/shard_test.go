package activities_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/notify"
)

// acceptShard accepts n notifications to different numbers and assigns them to one workflow.
func (b *bench) acceptShard(channel notify.Channel, n int) (activities.Ref, []activities.Ref) {
	b.t.Helper()
	rows := make([]activities.Ref, n)
	for i := range rows {
		rows[i] = b.accept(channel, fmt.Sprintf("+1202555%04d", i), "hello")
	}
	id, err := b.Store.NewShardID(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return activities.Ref{WorkflowID: id, Adopt: b.sender[channel]}, rows
}

func TestAShardIsSentWholeAndOnce(t *testing.T) {
	b := newBench(t)
	shard, rows := b.acceptShard(notify.SMS, 150)
	next, err := b.Send(t.Context(), shard)
	if err != nil || next.Action != activities.CheckStatus {
		t.Fatalf("the activity answers %+v, error %v", next, err)
	}
	for _, ref := range rows {
		if row := b.row(ref); row.Status != notify.Pending || row.TwilioSID == nil || row.Attempts != 1 {
			t.Fatalf("a row is %s after %d attempts", row.Status, row.Attempts)
		}
	}
	if n := b.creates(); n != 150 {
		t.Errorf("%d creates, want 150", n)
	}
}

func TestOneBadNumberFailsOneRowOfAShard(t *testing.T) {
	b := newBench(t)
	bad := b.accept(notify.SMS, "+15005550001", "hello") // Twilio's magic number that is none
	shard, rows := b.acceptShard(notify.SMS, 10)
	next, err := b.Send(t.Context(), shard)
	if err != nil || next.Action == activities.Done {
		t.Fatalf("the activity answers %+v, error %v", next, err)
	}
	if row := b.row(bad); row.Status != notify.Failed {
		t.Errorf("the bad row is %s", row.Status)
	}
	for _, ref := range rows {
		if row := b.row(ref); row.Status != notify.Pending {
			t.Errorf("a good row is %s", row.Status)
		}
	}
}

func TestAShardGoesOnWhileSomeOfItWaits(t *testing.T) {
	b := newBench(t)
	b.behave(`{"fault": {"kind": "http_500", "count": 3}}`)
	shard, _ := b.acceptShard(notify.SMS, 40)
	next, err := b.Send(t.Context(), shard)
	if err != nil || next.Action != activities.LookUp {
		t.Fatalf("the activity answers %+v, error %v: want the ambiguous three looked up", next, err)
	}
	for end := time.Now().Add(20 * time.Second); next.Action != activities.CheckStatus; {
		if time.Now().After(end) {
			t.Fatalf("it still has to %s", next.Action)
		}
		time.Sleep(min(next.In, time.Second))
		switch next.Action {
		case activities.LookUp:
			next, err = b.LookUp(t.Context(), shard)
		case activities.Send:
			next, err = b.Send(t.Context(), shard)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := b.creates(); n != 40 {
		t.Errorf("%d creates, want 40", n)
	}
}

func TestAShardThatTakesLongIsSentInTurns(t *testing.T) {
	b := newBench(t)
	b.Terms.SMSSendInterval, b.Terms.Turn = 50*time.Millisecond, 100*time.Millisecond
	_, shard := b.sendBatch(40)
	turns := 1
	for next := (activities.Next{Action: activities.Send}); next.Action == activities.Send; turns++ {
		var err error
		if next, err = b.Send(t.Context(), shard); err != nil {
			t.Fatal(err)
		}
	}
	if turns < 3 || b.creates() != 40 {
		t.Errorf("%d creates in %d turns, want 40 in several", b.creates(), turns)
	}
}

// TestThePaceHoldsOverAllWorkers sends shards and singles at the same time, as three workers do. Each
// create must have had a slot of its own: that they are kept is measured by the benchmarks.
func TestThePaceHoldsOverAllWorkers(t *testing.T) {
	b := newBench(t)
	const interval = 20 * time.Millisecond
	b.Terms.SMSSendInterval = interval
	var wg sync.WaitGroup
	send := func(ref activities.Ref) {
		wg.Go(func() {
			for left := true; left; {
				next, err := b.Send(t.Context(), ref)
				if left = err != nil || next.Action == activities.Send; left {
					time.Sleep(20 * time.Millisecond)
				}
			}
		})
	}
	began := time.Now()
	for range 2 {
		shard, _ := b.acceptShard(notify.SMS, 20)
		send(shard)
	}
	for i := range 5 {
		send(b.accept(notify.SMS, fmt.Sprintf("+1303555%04d", i), "hello"))
	}
	wg.Wait()
	if n := b.creates(); n != 45 {
		t.Fatalf("%d creates, want 45", n)
	}
	var next time.Time
	b.queryRow(&next, `SELECT next_slot FROM senders WHERE id = $1`, b.sender[notify.SMS])
	if least := began.Add(45 * interval); next.Before(least) {
		t.Errorf("the sender's next slot is %v before the 46th: some creates shared a slot", least.Sub(next))
	}
}
