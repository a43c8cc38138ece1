package activities_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.temporal.io/sdk/temporal"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/carrier/carriertest"
	"github.com/todoku/todoku/devstack/devstacktest"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

func TestMain(m *testing.M) { devstacktest.Main(m) }

// bench is what an activity works with: a real ledger, and the simulator over HTTP.
type bench struct {
	*activities.Activities
	t           *testing.T
	databaseURL string
	sim         *carriertest.Twilio
	sender      map[notify.Channel]int64
	fetched     atomic.Int64 // messages and calls that were asked for by SID
	pages       atomic.Int64 // pages of lists
	listing     func()       // when set, called before each of them
	posting     func()       // when set, called before a task is created
	creating    func()       // when set, called before an SMS or a call is created
}

func newBench(t *testing.T) *bench {
	t.Helper()
	url := devstacktest.Ledger(t)
	s, err := store.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	b := &bench{t: t, databaseURL: url, sender: map[notify.Channel]int64{}}
	b.sim = carriertest.Start(t, func(r *http.Request) {
		switch name := path.Base(r.URL.Path); {
		case r.Method == http.MethodPost && name == "Tasks":
			if b.posting != nil {
				b.posting()
			}
		case r.Method == http.MethodPost && (name == "Messages.json" || name == "Calls.json"):
			if b.creating != nil {
				b.creating()
			}
		case r.Method != http.MethodGet || strings.HasPrefix(r.URL.Path, "/_simulator/"):
		case name == "Messages.json", name == "Calls.json":
			b.pages.Add(1)
			if b.listing != nil {
				b.listing()
			}
		default:
			b.fetched.Add(1)
		}
	})
	b.Activities = &activities.Activities{
		Store: s, Carrier: b.sim.Client, Log: slog.New(slog.DiscardHandler),
		Terms: activities.Terms{ShardSize: 5000, StatusCheckDelay: 5 * time.Minute, AmbiguityWindow: 200 * time.Millisecond, SendDeadline: time.Hour,
			Lease: 5 * time.Second, AnswerLimit: 50 * time.Millisecond},
	}
	for _, channel := range []notify.Channel{notify.SMS, notify.Call} {
		if b.sender[channel], err = s.EnsureSender(t.Context(), channel, "+15005550006"); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// A number of the range that is reserved for fiction.
const recipient = "+12025550143"

func (b *bench) accept(channel notify.Channel, to, body string) activities.Ref {
	b.t.Helper()
	id, number := uuid.Must(uuid.NewV7()), notify.PhoneNumber{E164: to, National: to}
	hash := []byte(to)
	if b.Terms.PhoneHashKey != nil {
		hash = number.Hash(b.Terms.PhoneHashKey)
	}
	if _, err := b.Store.Accept(b.t.Context(), store.NewNotification{ID: id, Channel: channel, SenderID: b.sender[channel],
		To: number, ToHash: hash, Message: &body}); err != nil {
		b.t.Fatal(err)
	}
	return activities.Ref{ID: &id, WorkflowID: "notification/" + id.String()}
}

// behave sets how the simulator behaves, in its own words.
func (b *bench) behave(behaviour string) { b.t.Helper(); b.sim.Behave(behaviour) }

// creates is how many messages and calls the simulator accepted.
func (b *bench) creates() int { b.t.Helper(); return b.sim.Stats().Creates }

func (b *bench) row(ref activities.Ref) store.Notification {
	b.t.Helper()
	n, err := b.Store.Notification(b.t.Context(), *ref.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

// want checks an activity's answer and the row's status.
func (b *bench) want(ref activities.Ref, next activities.Next, err error, action activities.Action, status notify.Status) {
	b.t.Helper()
	if err != nil || next.Action != action || action == activities.Done && next.Status != status {
		b.t.Fatalf("the activity answers %+v, error %v: want %q and %s", next, err, action, status)
	}
	if row := b.row(ref); row.Status != status {
		b.t.Fatalf("the row is %s, want %s", row.Status, status)
	}
}

// wantRetry checks that an activity asks to be run again, and returns after how long, to half a second.
func (b *bench) wantRetry(err error) time.Duration {
	b.t.Helper()
	failure, ok := errors.AsType[*temporal.ApplicationError](err)
	if !ok || failure.NonRetryable() {
		b.t.Fatalf("error %v: want one that asks to be run again", err)
	}
	return failure.NextRetryDelay().Round(time.Second / 2)
}

func shown[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// acceptFrom accepts a notification that is sent from another number.
func (b *bench) acceptFrom(sender string, channel notify.Channel) activities.Ref {
	b.t.Helper()
	id, err := b.Store.EnsureSender(b.t.Context(), channel, sender)
	if err != nil {
		b.t.Fatal(err)
	}
	usual := b.sender[channel]
	defer func() { b.sender[channel] = usual }()
	b.sender[channel] = id
	return b.accept(channel, recipient, "hello")
}

// claim takes the row as a worker does that dies before it posts.
func (b *bench) claim(ref activities.Ref) {
	b.t.Helper()
	claims, err := b.Store.Claim(b.t.Context(), store.ClaimTerms{
		Owner: store.Owner{WorkflowID: ref.WorkflowID, Single: ref.ID}, Limit: 1, Lease: b.Terms.Lease})
	if err != nil || len(claims) != 1 {
		b.t.Fatalf("claims %+v, error %v", claims, err)
	}
}

// skipPause makes a row due that waits for its next try, and its sender free.
func (b *bench) skipPause(ref activities.Ref) {
	b.execute(`UPDATE senders SET next_slot = 'epoch'`)
	b.execute(`UPDATE notifications SET retry_at = NULL WHERE id = $1`, *ref.ID)
}

// sentAgo makes a row look as if it was sent earlier.
func (b *bench) sentAgo(ref activities.Ref, ago time.Duration) {
	b.execute(`UPDATE notifications SET check_at = NULL, sent_at = now() - $2::interval WHERE id = $1`, *ref.ID, ago)
}

// checkNow makes the carrier to be asked for a row.
func (b *bench) checkNow(ref activities.Ref) {
	b.execute(`UPDATE notifications SET check_at = now() WHERE id = $1`, *ref.ID)
}

func (b *bench) execute(sql string, args ...any) {
	b.t.Helper()
	db, err := pgx.Connect(b.t.Context(), b.databaseURL)
	if err != nil {
		b.t.Fatal(err)
	}
	defer db.Close(context.Background())
	if _, err := db.Exec(b.t.Context(), sql, args...); err != nil {
		b.t.Fatal(err)
	}
}

// count is how many notifications have the status.
func (b *bench) count(status notify.Status) int {
	b.t.Helper()
	db, err := pgx.Connect(b.t.Context(), b.databaseURL)
	if err != nil {
		b.t.Fatal(err)
	}
	defer db.Close(context.Background())
	n := 0
	if err := db.QueryRow(b.t.Context(), `SELECT count(*) FROM notifications WHERE status = $1`, status).Scan(&n); err != nil {
		b.t.Fatal(err)
	}
	return n
}

func (b *bench) queryRow(into any, sql string, args ...any) {
	b.t.Helper()
	db, err := pgx.Connect(b.t.Context(), b.databaseURL)
	if err != nil {
		b.t.Fatal(err)
	}
	defer db.Close(context.Background())
	if err := db.QueryRow(b.t.Context(), sql, args...).Scan(into); err != nil {
		b.t.Fatal(err)
	}
}
