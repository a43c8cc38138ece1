package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// find adds a send that was found at the carrier, and returns its row's id.
func find(t testing.TB, s *store.Store, sid, word string) (store.Settled, error) {
	t.Helper()
	sender, err := s.EnsureSender(t.Context(), notify.SMS, "+15005550006")
	if err != nil {
		t.Fatal(err)
	}
	settled, err := s.AddFound(t.Context(), store.Found{
		SenderID: sender, To: recipient, ToHash: []byte(recipient.E164), Body: "hello", CreatedAt: time.Now().Add(-time.Hour),
		Receipt: notify.Receipt{Channel: notify.SMS, SID: sid, Word: word, Segments: 1, Source: notify.FromPoll},
	})
	if err != nil || len(settled) == 0 {
		return store.Settled{}, err
	}
	return settled[0], nil
}

func TestASendFoundAtTheCarrierBecomesARow(t *testing.T) {
	s := openStore(t)
	sid := newSID("SM")
	found, err := find(t, s, sid, "delivered")
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.Notification(t.Context(), found.ID)
	if err != nil || n.Status != notify.Success || n.TwilioSID == nil || *n.TwilioSID != sid || n.WorkflowID != nil {
		t.Errorf("the row is %+v, error %v: want it settled, with the SID and without a workflow", n, err)
	}
	if byNumber := ids(list(t, s, store.Filter{ToHash: []byte(recipient.E164)}, nil, 10)); !slices.Equal(byNumber, []uuid.UUID{found.ID}) {
		t.Errorf("by its number %v is found, want %s", byNumber, found.ID)
	}
	if again, err := find(t, s, sid, "delivered"); err != nil || again.ID != uuid.Nil {
		t.Errorf("found once more: %+v, error %v: want nothing", again, err)
	}
	if rows, err := s.Unstarted(t.Context(), nil, 10); err != nil || len(rows) != 0 {
		t.Errorf("the relay would start %+v, error %v", rows, err)
	}
}

func TestALateReceiptTakesAFoundSendOver(t *testing.T) {
	s, db := openLedger(t)
	id, sid := accept(t, s, notify.SMS, false), newSID("SM")
	found, err := find(t, s, sid, "delivered")
	if err != nil {
		t.Fatal(err)
	}
	settled := settle(t, s, notify.Receipt{NotificationID: id.String(), Channel: notify.SMS, SID: sid, Word: "sent", Source: notify.FromWebhook})
	if len(settled) != 1 || settled[0].Status != notify.Success || !settled[0].JustSettled() {
		t.Errorf("settled %+v: want our row SUCCESS, as the found one was", settled)
	}
	if got, want := outcome(t, s, id), "SUCCESS delivered segments=1"; got != want {
		t.Errorf("the row is %s, want %s", got, want)
	}
	if n, err := s.Notification(t.Context(), id); err != nil || n.TwilioSID == nil || *n.TwilioSID != sid {
		t.Errorf("the row's SID is %v, error %v: want the found one's", n.TwilioSID, err)
	}
	if _, err := s.Notification(t.Context(), found.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the found row is still there: %v", err)
	}
	if n := count(t, db, `SELECT count(*) FROM notification_recipients`); n != 1 {
		t.Errorf("%d notifications are found by their numbers, want ours", n)
	}
	events, err := s.Events(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, e := range events {
		kinds = append(kinds, string(e.Kind))
	}
	if got, want := strings.Join(kinds, " "), "accepted receipt taken_over receipt"; got != want {
		t.Errorf("the timeline is %s, want %s", got, want)
	}
}
