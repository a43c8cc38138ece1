package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/todoku/todoku/devstack/devstacktest"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

func TestMain(m *testing.M) { devstacktest.Main(m) }

func openStore(t testing.TB) *store.Store {
	t.Helper()
	s, _ := openLedger(t)
	return s
}

// openLedger gives, beside the store, which has the rights of the application, a connection of the owner for what no
// function of the store does.
func openLedger(t testing.TB) (*store.Store, *pgx.Conn) {
	t.Helper()
	var url string
	if _, isBenchmark := t.(*testing.B); isBenchmark {
		url = devstacktest.Ledger(t)
	} else {
		url = devstacktest.PostgresFromTemplate(t, "ledger held to the table of moves", migrateAndWatch)
	}
	s, err := store.Open(t.Context(), devstacktest.AsApplication(t, url))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close(context.Background()) })
	return s, db
}

// A number of the range that is reserved for fiction.
var recipient = notify.PhoneNumber{E164: "+12025550143", National: "(202) 555-0143", Region: "US"}

func accept(t rapid.TB, s *store.Store, channel notify.Channel, requireHuman bool) uuid.UUID {
	t.Helper()
	sender, err := s.EnsureSender(context.Background(), channel, "+15005550006")
	if err != nil {
		t.Fatal(err)
	}
	return acceptAs(t, s, channel, sender, requireHuman)
}

func acceptFrom(t rapid.TB, s *store.Store, channel notify.Channel, sender int64) uuid.UUID {
	t.Helper()
	return acceptAs(t, s, channel, sender, false)
}

func acceptAs(t rapid.TB, s *store.Store, channel notify.Channel, sender int64, requireHuman bool) uuid.UUID {
	t.Helper()
	ctx := context.Background()
	id, message := uuid.Must(uuid.NewV7()), "Your prescription is ready."
	if _, err := s.Accept(ctx, store.NewNotification{
		ID: id, Channel: channel, To: recipient, ToHash: []byte(recipient.E164), Message: &message, SenderID: sender, RequireHuman: requireHuman,
	}); err != nil {
		t.Fatal(err)
	}
	return id
}

func terms(id uuid.UUID) store.ClaimTerms {
	return store.ClaimTerms{Owner: store.Owner{WorkflowID: "notification/" + id.String(), Single: &id}, Limit: 1, Lease: 15 * time.Second, Ahead: time.Second}
}

// claim takes a single that can be claimed.
func claim(t testing.TB, s *store.Store, id uuid.UUID) store.Claim {
	t.Helper()
	claims, err := s.Claim(t.Context(), terms(id))
	if err != nil || len(claims) != 1 {
		t.Fatalf("claims %+v, error %v: want one", claims, err)
	}
	return claims[0]
}

// noClaim checks that nothing can be claimed, and returns what is left to do.
func noClaim(t testing.TB, s *store.Store, terms store.ClaimTerms) store.Outstanding {
	t.Helper()
	if claims, err := s.Claim(t.Context(), terms); err != nil || len(claims) != 0 {
		t.Fatalf("claims %+v, error %v: want none", claims, err)
	}
	left, err := s.Outstanding(t.Context(), terms.Owner, 5*time.Minute, terms.Ahead, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// expire fails a row that was tried for too long.
func expire(t testing.TB, s *store.Store, id uuid.UUID) {
	t.Helper()
	claimed := claim(t, s, id)
	if held, err := s.GiveBack(t.Context(), id, claimed.Token, store.Retry{Kind: store.EventTryFailed}); err != nil || !held {
		t.Fatal(held, err)
	}
	if err := s.Expire(t.Context(), terms(id).Owner, 0, store.Failure{Kind: store.EventExpired, FailureCode: notify.CodeSendDeadline}); err != nil {
		t.Fatal(err)
	}
}

// forsake has the carrier say nothing of a row until its deadline.
func forsake(t testing.TB, s *store.Store, id uuid.UUID) {
	settle(t, s, notify.Receipt{NotificationID: id.String(), Channel: notify.SMS, Word: "queued", Source: notify.FromCreate})
	if silent, err := s.StillPending(t.Context(), []uuid.UUID{id}, store.CheckTerms{}); err != nil || len(silent) != 1 {
		t.Fatal(silent, err)
	}
}
