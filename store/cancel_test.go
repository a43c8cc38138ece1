package store_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

func cancel(t testing.TB, s *store.Store, id uuid.UUID) store.Cancellation {
	t.Helper()
	c, err := s.Cancel(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func read(t testing.TB, s *store.Store, id uuid.UUID) store.Notification {
	t.Helper()
	n, err := s.Notification(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func kinds(t testing.TB, s *store.Store, id uuid.UUID) (kinds []store.EventKind) {
	t.Helper()
	events, err := s.Events(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func TestWhatIsCanceledIsNotClaimed(t *testing.T) {
	s := openStore(t)
	id := accept(t, s, notify.SMS, false)
	if c := cancel(t, s, id); c.Status != notify.Canceled || !c.Just {
		t.Errorf("canceling = %+v", c)
	}
	if c := cancel(t, s, id); c.Status != notify.Canceled || c.Just {
		t.Errorf("canceling again = %+v", c)
	}
	if left := noClaim(t, s, terms(id)); left != (store.Outstanding{}) {
		t.Errorf("what is left is %+v, want nothing", left)
	}
	if n := read(t, s, id); n.Status != notify.Canceled || n.SettledAt == nil {
		t.Errorf("the row reads %s, settled at %v", n.Status, n.SettledAt)
	}
	if got := kinds(t, s, id); !slices.Equal(got, []store.EventKind{store.EventAccepted, store.EventCanceled}) {
		t.Errorf("timeline = %v", got)
	}
}

func TestAClaimThatIsGivenBackAfterAWishToCancelIsCanceled(t *testing.T) {
	s := openStore(t)
	id := accept(t, s, notify.SMS, false)
	c := claim(t, s, id)
	for range 2 {
		if wish := cancel(t, s, id); wish.Status != notify.Sending || wish.Just || wish.RanOut {
			t.Errorf("while it is claimed: %+v", wish)
		}
	}
	retry := store.Retry{Kind: store.EventTryFailed, After: time.Minute, Uncounted: true, ErrorCode: "20429"}
	if held, err := s.GiveBack(t.Context(), id, c.Token, retry); err != nil || !held {
		t.Fatal(held, err)
	}
	if n := read(t, s, id); n.Status != notify.Canceled || n.TwilioErrorCode != nil || n.SettledAt == nil || n.Attempts != 0 {
		t.Errorf("given back: %+v", n)
	}
	want := []store.EventKind{store.EventAccepted, store.EventCancelAsked, store.EventTryFailed, store.EventCanceled}
	if got := kinds(t, s, id); len(got) != 4 || !slices.Contains(got, store.EventTryFailed) || !slices.Contains(got, store.EventCanceled) || got[1] != want[1] {
		t.Errorf("timeline = %v, want %v", got, want)
	}
	if left := noClaim(t, s, terms(id)); left != (store.Outstanding{}) {
		t.Errorf("what is left is %+v, want nothing", left)
	}
}

func TestAWishToCancelChangesNoOtherEndOfAClaim(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(s *store.Store, id, token uuid.UUID) (bool, error)
		want notify.Status
	}{
		"refused": {func(s *store.Store, id, token uuid.UUID) (bool, error) {
			return s.Refuse(t.Context(), id, token, store.Failure{Kind: store.EventRefused, ErrorCode: "21211"})
		}, notify.Failed},
		"doubtful": {func(s *store.Store, id, token uuid.UUID) (bool, error) {
			return s.Doubt(t.Context(), id, token, store.Failure{Kind: store.EventExpired, FailureCode: notify.CodeAmbiguousSend})
		}, notify.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t)
			id := accept(t, s, notify.SMS, false)
			c := claim(t, s, id)
			cancel(t, s, id)
			if held, err := test.end(s, id, c.Token); err != nil || !held {
				t.Fatal(held, err)
			}
			if wish := cancel(t, s, id); wish.Status != test.want || wish.Just {
				t.Errorf("afterwards: %+v, want %s", wish, test.want)
			}
		})
	}
}

func TestAReceiptBeatsCanceled(t *testing.T) {
	s := openStore(t)
	id := accept(t, s, notify.SMS, false)
	cancel(t, s, id)
	settle(t, s, notify.Receipt{NotificationID: id.String(), Channel: notify.SMS, Word: "delivered", Source: notify.FromWebhook})
	if wish := cancel(t, s, id); wish.Status != notify.Success {
		t.Errorf("after a receipt: %+v, want SUCCESS", wish)
	}
}

func TestACancelOfAClaimThatRanOutSaysSo(t *testing.T) {
	s := openStore(t)
	id := accept(t, s, notify.SMS, false)
	c := claim(t, s, id)
	if err := s.NoteAmbiguous(t.Context(), id, c.Token, "no answer"); err != nil {
		t.Fatal(err)
	}
	if wish := cancel(t, s, id); wish.Status != notify.Sending || !wish.RanOut {
		t.Errorf("canceling = %+v", wish)
	}
}

func TestTimesMoveUntilTheFirstClaim(t *testing.T) {
	s := openStore(t)
	id := accept(t, s, notify.SMS, false)
	in := func(d time.Duration) store.Rescheduled {
		t.Helper()
		moved, err := s.Reschedule(t.Context(), id, time.Now().Add(d))
		if err != nil {
			t.Fatal(err)
		}
		return moved
	}
	if moved := in(time.Hour); !moved.Moved || moved.Earlier || moved.Due {
		t.Errorf("an hour later: %+v", moved)
	}
	if left := noClaim(t, s, terms(id)); left.Accepted != 1 || left.SendIn < 59*time.Minute {
		t.Errorf("what is left is %+v: want an hour to wait", left)
	}
	if moved := in(time.Minute); !moved.Moved || !moved.Earlier || moved.Due {
		t.Errorf("earlier: %+v", moved)
	}
	if moved := in(-time.Second); !moved.Moved || !moved.Earlier || !moved.Due {
		t.Errorf("now: %+v", moved)
	}
	c := claim(t, s, id)
	if moved := in(time.Hour); moved.Moved || moved.Status != notify.Sending {
		t.Errorf("while it is claimed: %+v", moved)
	}
	if _, err := s.GiveBack(t.Context(), id, c.Token, store.Retry{Kind: store.EventTryFailed}); err != nil {
		t.Fatal(err)
	}
	if moved := in(time.Hour); moved.Moved || moved.Status != notify.Accepted {
		t.Errorf("after its first claim: %+v", moved)
	}
	for _, err := range []error{
		func() error { _, err := s.Reschedule(t.Context(), uuid.New(), time.Now()); return err }(),
		func() error { _, err := s.Cancel(t.Context(), uuid.New()); return err }(),
	} {
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("of a row that is not there: %v", err)
		}
	}
}
