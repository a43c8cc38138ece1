package store_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// To plan a statement takes several times as long as to run it. Postgres plans one anew for its
// arguments for as long as it believes that this is cheaper: a few times, and once more when it learns
// how large the tables have become, but not for ever.
func TestWhatEverySingleRunsIsPlannedOnce(t *testing.T) {
	_, db := openLedger(t)
	s, err := store.Open(t.Context(), addOption(db.Config().ConnString(), "pool_max_conns", "1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for range 1000 {
		single(t, s)
	}
	execute(t, db, `ANALYZE`) // with what is known of the tables from here on, everything is planned again
	for range 200 {
		single(t, s)
	}
	plans, err := s.Plans(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range plans {
		if p.Custom > 50 {
			t.Errorf("planned %d times for its arguments, and %d times for any:\n%s", p.Custom, p.Whole, strings.TrimSpace(p.SQL))
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
