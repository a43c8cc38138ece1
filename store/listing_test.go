package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

const delay = 5 * time.Minute

func begin(t testing.TB, s *store.Store) *store.Listing {
	t.Helper()
	l, err := s.BeginListing(t.Context(), notify.SMS)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestOneListingOfAChannelRunsAtATime(t *testing.T) {
	s, db := openLedger(t)
	first := begin(t, s)
	if first == nil {
		t.Fatal("there was no turn although no listing ran")
	}
	if begin(t, s) != nil {
		t.Error("two listings run")
	}
	if other, err := s.BeginListing(t.Context(), notify.Call); err != nil || other == nil {
		t.Errorf("the other channel waits: %v", err)
	}
	execute(t, db, `UPDATE listings SET alive_at = now() - interval '1 minute'`) // its process died
	second := begin(t, s)
	if second == nil {
		t.Fatal("an abandoned listing was not replaced")
	}
	if err := s.KeepListing(t.Context(), *first); !errors.Is(err, store.ErrListingLost) {
		t.Errorf("the first one goes on: %v", err)
	}
	if err := s.EndListing(t.Context(), *second, store.Window{From: time.Now().Add(-time.Hour), Until: time.Now()}); err != nil {
		t.Error(err)
	}
	if third := begin(t, s); third == nil {
		t.Error("there is no turn after the end")
	} else if err := s.DropListing(t.Context(), *third); err != nil || begin(t, s) == nil {
		t.Errorf("there is no turn after a listing was given up: %v", err)
	}
}

func TestADueWindowHasMostRowsAndNoPause(t *testing.T) {
	s, db := openLedger(t)
	for _, minutesAgo := range []int{6, 7, 8, 9, 60, 61, 62, 63, 64, 300} {
		sentAgo(t, s, db, time.Duration(minutesAgo)*time.Minute)
	}
	window := func(few int) *store.Window {
		t.Helper()
		w, err := s.DueWindow(t.Context(), notify.SMS, delay, 10*time.Minute, few)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	w := window(3)
	if w == nil || time.Since(w.From).Round(time.Minute) != 64*time.Minute || time.Since(w.Until).Round(time.Minute) != 60*time.Minute {
		t.Fatalf("the window is %+v: want the five rows of an hour ago", w)
	}
	if err := s.EndListing(t.Context(), *begin(t, s), *w); err != nil {
		t.Fatal(err)
	}
	if w := window(3); w == nil || time.Since(w.Until).Round(time.Minute) != 6*time.Minute {
		t.Errorf("the next window is %+v: want the four latest rows", w)
	}
	if w := window(4); w != nil {
		t.Errorf("a window with few rows is listed: %+v", w)
	}
	rows, err := s.Overdue(t.Context(), notify.SMS, delay, 0, 100)
	if err != nil || len(rows) != 10 {
		t.Fatalf("overdue are %+v, error %v: want all ten", rows, err)
	}
	listed := 0
	for _, row := range rows {
		if row.Listed {
			listed++
		}
	}
	if listed != 5 {
		t.Errorf("%d rows count as listed, want 5", listed)
	}
	execute(t, db, `UPDATE notifications SET check_at = clock_timestamp()`) // due once more
	if w := window(4); w == nil {
		t.Error("a listing of before they fell due keeps rows from being listed")
	}
}

// sentAgo makes a row that the carrier accepted a while ago.
func sentAgo(t testing.TB, s *store.Store, db *pgx.Conn, ago time.Duration) uuid.UUID {
	t.Helper()
	id := accept(t, s, notify.SMS, false)
	settle(t, s, notify.Receipt{NotificationID: id.String(), Channel: notify.SMS, SID: newSID("SM"), Word: "queued", Source: notify.FromCreate})
	execute(t, db, `UPDATE notifications SET sent_at = clock_timestamp() - $2::interval WHERE id = $1`, id, ago)
	return id
}

func execute(t testing.TB, db *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}
