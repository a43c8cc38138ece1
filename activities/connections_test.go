package activities_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/notify"
)

// Some answers are held back until nearly all other rows have been posted.
func TestNoRowWaitsForTheAnswerToAnother(t *testing.T) {
	b := newBench(t)
	b.Terms.Lease = time.Minute
	const rows, others = 400, 390
	shard, _ := b.acceptShard(notify.SMS, rows)
	var arrived atomic.Int64
	enough := make(chan struct{})
	late := time.AfterFunc(20*time.Second, func() {
		t.Errorf("only %d creates came while three were not answered", arrived.Load())
		close(enough)
	})
	b.creating = func() {
		switch n := arrived.Add(1); {
		case n == 1, n == 66, n == 131:
			<-enough
		case n == others && late.Stop():
			close(enough)
		}
	}
	next, err := b.Send(t.Context(), shard)
	if err != nil || next.Action != activities.CheckStatus || b.creates() != rows {
		t.Fatalf("the activity answers %+v, error %v, after %d creates", next, err, b.creates())
	}
}

func TestTooManyRequestsInFlightDoNotSlowTheSender(t *testing.T) {
	b := newBench(t)
	b.behave(`{"fault": {"kind": "gateway", "count": 1, "http_status": 429, "forwarded": false,
		"body": "{\"code\": 20429, \"message\": \"Too many requests\", \"status\": 429}"}}`)
	shard, rows := b.acceptShard(notify.SMS, 3)
	if _, err := b.Send(t.Context(), shard); err != nil {
		t.Fatal(err)
	}
	for _, ref := range rows {
		if row := b.row(ref); row.Status != notify.Pending {
			t.Errorf("a row is %s", row.Status)
		}
	}
	senders, err := b.Store.Senders(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range senders {
		if s.SlowedAt != nil {
			t.Errorf("the sender of %s was slowed by %s", s.Channel, *s.SlowCode)
		}
	}
	if b.creates() != len(rows) {
		t.Errorf("%d creates, want %d", b.creates(), len(rows))
	}
}
