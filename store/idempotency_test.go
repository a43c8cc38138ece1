package store_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// under is a notification to be accepted once under a key. answering is called while its answer is
// made, in the open transaction.
func under(t testing.TB, s *store.Store, owner int64, key, text string, answering func()) store.NewNotification {
	t.Helper()
	sender, err := s.EnsureSender(t.Context(), notify.SMS, "+15005550006")
	if err != nil {
		t.Fatal(err)
	}
	return store.NewNotification{
		ID: uuid.Must(uuid.NewV7()), Channel: notify.SMS, To: recipient, ToHash: []byte(recipient.E164), Message: &text, SenderID: sender,
		Once: &store.Once{Owner: owner, Key: key, Request: sha256.Sum256([]byte(text)), Answer: func(n store.Notification) (store.Answer, error) {
			if answering != nil {
				answering()
			}
			return store.Answer{Status: 202, Location: "/" + n.ID.String(), Body: []byte(`"` + text + `"`)}, nil
		}},
	}
}

func acceptAll(t testing.TB, s *store.Store, all ...store.NewNotification) []store.Acceptance {
	t.Helper()
	accepted, err := s.AcceptAll(t.Context(), all...)
	if err != nil {
		t.Fatal(err)
	}
	return accepted
}

func TestAKeyIsAcceptedOnce(t *testing.T) {
	s := openStore(t)
	first := under(t, s, 7, "k", "hello", nil)
	if a := acceptAll(t, s, first)[0]; a.Err != nil || a.Replay != nil || a.Notification.ID != first.ID {
		t.Fatalf("the first time: %+v", a)
	}
	again := under(t, s, 7, "k", "hello", nil)
	other := under(t, s, 7, "k", "goodbye", nil)
	stranger := under(t, s, 8, "k", "hello", nil)
	new := under(t, s, 7, "k2", "hello", nil)
	twin := under(t, s, 7, "k2", "hello", nil)
	plain := under(t, s, 7, "", "hello", nil)
	plain.Once = nil
	if a := acceptAll(t, s, other)[0]; !errors.Is(a.Err, store.ErrKeyReused) {
		t.Errorf("something else: %+v", a)
	}
	accepted := acceptAll(t, s, again, stranger, new, twin, plain)
	if r := accepted[0].Replay; r == nil || r.Status != 202 || r.Location != "/"+first.ID.String() || string(r.Body) != `"hello"` {
		t.Errorf("the same again: %+v", accepted[0])
	}
	if !errors.Is(accepted[3].Err, store.ErrKeyInUse) {
		t.Errorf("the same in one group: %+v", accepted[3])
	}
	for i, n := range []store.NewNotification{again, other, stranger, new, twin, plain} {
		_, err := s.Notification(t.Context(), n.ID)
		if there := err == nil; there != (i == 2 || i == 3 || i == 5) {
			t.Errorf("notification %d is in the ledger: %v", i, there)
		}
	}
	if found, err := s.FirstAnswer(t.Context(), *again.Once); err != nil || found.Location != "/"+first.ID.String() {
		t.Errorf("the first answer is %+v, %v", found, err)
	}
	if _, err := s.FirstAnswer(t.Context(), *other.Once); !errors.Is(err, store.ErrKeyReused) {
		t.Errorf("the first answer to something else: %v", err)
	}
	if _, err := s.FirstAnswer(t.Context(), *under(t, s, 7, "k3", "hello", nil).Once); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the first answer under a new key: %v", err)
	}
}

func TestAKeyIsInUseUntilItsCommit(t *testing.T) {
	s := openStore(t)
	answering, goOn := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	slow := under(t, s, 0, "k", "hello", func() { close(answering); <-goOn })
	again := under(t, s, 0, "k", "hello", nil)
	go func() {
		_, err := s.AcceptAll(context.Background(), slow)
		done <- err
	}()
	<-answering
	if a := acceptAll(t, s, again)[0]; !errors.Is(a.Err, store.ErrKeyInUse) {
		t.Errorf("while the first is answered: %+v", a)
	}
	close(goOn)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if a := acceptAll(t, s, again)[0]; a.Replay == nil {
		t.Errorf("after the first was answered: %+v", a)
	}
}

func TestAnAcceptanceThatFailsLeavesNoKey(t *testing.T) {
	s := openStore(t)
	bad := under(t, s, 0, "k", "hello", nil)
	bad.SenderID = 999999
	if _, err := s.AcceptAll(t.Context(), bad); err == nil {
		t.Fatal("a sender that does not exist was accepted")
	}
	if a := acceptAll(t, s, under(t, s, 0, "k", "hello", nil))[0]; a.Err != nil || a.Replay != nil {
		t.Errorf("the next time: %+v", a)
	}
}

func TestManyAtOnceUnderOneKeyAreOne(t *testing.T) {
	s := openStore(t)
	var accepted, replayed, inUse atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		n := under(t, s, 0, "k", "hello", nil)
		all.Go(func() {
			switch a := acceptAll(t, s, n)[0]; {
			case a.Replay != nil:
				replayed.Add(1)
			case errors.Is(a.Err, store.ErrKeyInUse):
				inUse.Add(1)
			default:
				accepted.Add(1)
			}
		})
	}
	all.Wait()
	if accepted.Load() != 1 || replayed.Load()+inUse.Load() != 15 {
		t.Errorf("%d accepted, %d replayed, %d in use: want 1 accepted", accepted.Load(), replayed.Load(), inUse.Load())
	}
}

func TestOldKeysArePurged(t *testing.T) {
	s := openStore(t)
	all := make([]store.NewNotification, 1200)
	for i := range all {
		all[i] = under(t, s, 0, fmt.Sprint("k", i), "hello", nil)
	}
	acceptAll(t, s, all...)
	if n, err := s.PurgeIdempotencyKeys(t.Context(), time.Hour); n != 0 || err != nil {
		t.Errorf("purged %d keys that are young, %v", n, err)
	}
	if n, err := s.PurgeIdempotencyKeys(t.Context(), 0); n != 1200 || err != nil {
		t.Errorf("purged %d keys, %v, want 1,200", n, err)
	}
	if a := acceptAll(t, s, under(t, s, 0, "k0", "hello", nil))[0]; a.Replay != nil || a.Err != nil {
		t.Errorf("after the purge: %+v", a)
	}
}

func TestAGroupIsAcceptedInItsOrder(t *testing.T) {
	s := openStore(t)
	at := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	past := time.Now().Add(-30 * time.Second)
	a, b, c := under(t, s, 0, "", "a", nil), under(t, s, 0, "", "b", nil), under(t, s, 0, "", "c", nil)
	for _, n := range []*store.NewNotification{&a, &b, &c} {
		n.Once = nil
	}
	b.SendAt, c.SendAt = &at, &past
	for i, accepted := range acceptAll(t, s, a, b, c) {
		n := accepted.Notification
		read, err := s.Notification(t.Context(), n.ID)
		if err != nil {
			t.Fatal(err)
		}
		if *n.Message != string("abc"[i]) || *read.Message != *n.Message || !read.SendAt.Equal(n.SendAt) || !read.CreatedAt.Equal(n.CreatedAt) ||
			!read.UpdatedAt.Equal(n.UpdatedAt) || read.Status != n.Status || read.Sender != n.Sender {
			t.Errorf("accepted as %+v, and read as %+v", n, read)
		}
		if want := i != 1; n.SendAt.Equal(n.CreatedAt) != want || i == 1 && !n.SendAt.Equal(at) {
			t.Errorf("%s is sent at %v, accepted at %v", *n.Message, n.SendAt, n.CreatedAt)
		}
	}
}
