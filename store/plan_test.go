package store_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// An index that has a row for every notification, read without a condition, is the whole ledger.
var wholeLedger = regexp.MustCompile(`(Seq Scan on notifications\b|Scan (using|on) notifications_(pkey|twilio_sid|recipient|reference|of_batch)\b)`)

// To plan a statement takes several times as long as to run it, and a plan is kept: the one that is
// made in an empty ledger must do when it is full.
func TestEveryStatementIsPlannedOnceForALedgerOfAnySize(t *testing.T) {
	_, db := openLedger(t)
	s, err := store.Open(t.Context(), addOption(db.Config().ConnString(), "pool_max_conns", "1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for range 10 {
		single(t, s)
	}
	work(t, s)
	prepared, err := s.Prepared(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range prepared {
		if p.Custom > 0 {
			t.Errorf("planned %d times for its arguments:\n%s", p.Custom, p.SQL)
		}
		plan, err := s.Plan(t.Context(), p)
		if err != nil {
			t.Fatalf("%v:\n%s", err, p.SQL)
		}
		for i, line := range plan {
			scan := wholeLedger.FindStringSubmatch(line)
			if scan != nil && !(i+1 < len(plan) && strings.Contains(plan[i+1], "Index Cond")) {
				t.Errorf("%s reads the whole ledger:\n%s\n%s", scan[0], p.SQL, strings.Join(plan, "\n"))
			}
		}
	}
}

func single(t testing.TB, s *store.Store) {
	t.Helper()
	id := accept(t, s, notify.SMS, false)
	if err := s.MarkStarted(t.Context(), terms(id).Owner); err != nil {
		t.Fatal(err)
	}
	keyed := store.NewNotification{ID: uuid.Must(uuid.NewV7()), Channel: notify.SMS, To: recipient, ToHash: []byte("x"), Message: new("x"), SenderID: 1,
		Once: &store.Once{Key: id.String(), Answer: func(store.Notification) (store.Answer, error) { return store.Answer{}, nil }}}
	if _, err := s.Accept(t.Context(), keyed); err != nil {
		t.Fatal(err)
	}
	claim(t, s, id)
	for _, word := range []string{"queued", "delivered"} {
		settle(t, s, notify.Receipt{NotificationID: id.String(), Channel: notify.SMS, Word: word, Source: notify.FromWebhook})
	}
	if _, err := s.Finished(t.Context(), []string{"notification/" + uuid.NewString()}); err != nil {
		t.Fatal(err)
	}
}

// work runs the statements of those who look after the ledger, and of shards.
func work(t testing.TB, s *store.Store) {
	t.Helper()
	shard := terms(uuid.New())
	shard.Owner = store.Owner{WorkflowID: "relay/1"}
	adopts := shard
	adopts.Adopt = -1 // no such sender
	part := shard
	part.Owner.WorkflowID = store.ShardWorkflowID(uuid.New(), 0)
	for _, terms := range []store.ClaimTerms{shard, adopts, part} {
		noClaim(t, s, terms)
	}
	for what, err := range map[string]error{
		"waiting":   second(s.Waiting(t.Context(), 10)),
		"unstarted": second(s.Unstarted(t.Context(), nil, 10)),
		"idle":      second(s.Idle(t.Context(), time.Second, 10)),
		"bequeath":  second(s.Bequeath(t.Context(), "relay/1")),
		"senders":   second(s.Senders(t.Context())),
		"expire":    s.Expire(t.Context(), shard.Owner, time.Hour, store.Failure{}),
		"pending":   second(s.StillPending(t.Context(), []uuid.UUID{uuid.New()}, store.CheckTerms{})),
		"events":    second(s.Events(t.Context(), uuid.New())),
		"list":      second(s.Notifications(t.Context(), store.Filter{}, nil, 10)),
	} {
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
