package v1_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/api/apitest"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

func claim(t *testing.T, a *apitest.API, id uuid.UUID) store.Claim {
	t.Helper()
	return claimBy(t, a, id, "notification/"+id.String())
}

// refuse fails a notification because it could not be sent in time.
func refuse(t *testing.T, a *apitest.API, id uuid.UUID) {
	t.Helper()
	held, err := a.Store.Refuse(t.Context(), id, claim(t, a, id).Token, store.Failure{Kind: store.EventExpired, FailureCode: notify.CodeSendDeadline})
	if err != nil || !held {
		t.Fatal(held, err)
	}
}

func claimBy(t *testing.T, a *apitest.API, id uuid.UUID, owner string) store.Claim {
	t.Helper()
	claims, err := a.Store.Claim(t.Context(), store.ClaimTerms{
		Owner: store.Owner{WorkflowID: owner, Single: &id}, Limit: 1, Lease: 15 * time.Second, Ahead: time.Second,
	})
	if err != nil || len(claims) != 1 {
		t.Fatalf("claims %v, %v", claims, err)
	}
	return claims[0]
}

func settle(t *testing.T, a *apitest.API, id uuid.UUID, word string) {
	t.Helper()
	if _, err := a.Store.Settle(context.Background(), notify.Receipt{
		NotificationID: id.String(), Channel: notify.SMS, SID: "SM" + strings.Repeat("0", 32), Word: word, Source: notify.FromCreate,
	}); err != nil {
		t.Error(err)
	}
}

func TestCancelSaysHowFarItHasCome(t *testing.T) {
	a := apitest.Start(t)
	giveBack := func(id uuid.UUID, c store.Claim) {
		if _, err := a.Store.GiveBack(context.Background(), id, c.Token, store.Retry{Kind: store.EventTryFailed, ErrorCode: "20429"}); err != nil {
			t.Error(err)
		}
	}
	during := func(id uuid.UUID, end func()) { // while the call waits
		a.Eventually("the wish to cancel is in the ledger", func() bool {
			events, err := a.Store.Events(context.Background(), id)
			return err == nil && slices.ContainsFunc(events, func(e store.Event) bool { return e.Kind == store.EventCancelAsked })
		})
		end()
	}
	for _, test := range []struct {
		name       string
		before     func(id uuid.UUID) (meanwhile func())
		status     int
		code, want string
	}{
		{"accepted", func(uuid.UUID) func() { return nil }, 200, "", "CANCELED"},
		{"claimed, and given back", func(id uuid.UUID) func() {
			c := claim(t, a, id)
			return func() { giveBack(id, c) }
		}, 200, "", "CANCELED"},
		{"claimed, and sent", func(id uuid.UUID) func() {
			claim(t, a, id)
			return func() { settle(t, a, id, "queued") }
		}, 409, "already_sent", "PENDING"},
		{"claimed, and delivered", func(id uuid.UUID) func() {
			claim(t, a, id)
			return func() { settle(t, a, id, "delivered") }
		}, 409, "already_final", "SUCCESS"},
		{"claimed, and nobody can tell", func(id uuid.UUID) func() {
			c := claim(t, a, id)
			return func() {
				if err := a.Store.NoteAmbiguous(context.Background(), id, c.Token, "no answer"); err != nil {
					t.Error(err)
				}
			}
		}, 202, "", "SENDING"},
		{"sent", func(id uuid.UUID) func() { settle(t, a, id, "queued"); return nil }, 409, "already_sent", "PENDING"},
		{"delivered", func(id uuid.UUID) func() { settle(t, a, id, "delivered"); return nil }, 409, "already_final", "SUCCESS"},
	} {
		t.Run(test.name, func(t *testing.T) {
			id := accept(t, a, hello)
			if meanwhile := test.before(id); meanwhile != nil {
				go during(id, meanwhile)
			}
			path := send + "/" + id.String() + "/cancel"
			answer := a.Do("POST", path, "")
			if answer.Status != test.status || answer.Code() != test.code {
				t.Fatalf("answer = %d %s, want %d %s", answer.Status, answer.Text, test.status, test.code)
			}
			n, err := a.Store.Notification(t.Context(), id)
			if err != nil || string(n.Status) != test.want || test.code == "" && answer.Body["status"] != test.want {
				t.Errorf("it reads %s (%v), want %s: %s", n.Status, err, test.want, answer.Text)
			}
			if again := a.Do("POST", path, ""); again.Status != test.status || again.Code() != test.code {
				t.Errorf("again: %d %s, want the same", again.Status, again.Text)
			}
			told := apitest.Signal{WorkflowID: "notification/" + id.String(), Status: notify.Canceled}
			if test.name == "accepted" {
				a.Eventually("its workflow is told", func() bool { return slices.Contains(a.Workflows.Signals(), told) })
			}
		})
	}
}

func TestWhatIsAmbiguousIsCanceledWhenItProvesUnsent(t *testing.T) {
	a := apitest.Start(t)
	id := accept(t, a, hello)
	c := claim(t, a, id)
	if err := a.Store.NoteAmbiguous(t.Context(), id, c.Token, "no answer"); err != nil {
		t.Fatal(err)
	}
	if answer := a.Do("POST", send+"/"+id.String()+"/cancel", ""); answer.Status != http.StatusAccepted {
		t.Fatalf("answer = %d %s", answer.Status, answer.Text)
	}
	if _, err := a.Store.GiveBack(t.Context(), id, c.Token, store.Retry{Kind: store.EventNotAtCarrier}); err != nil {
		t.Fatal(err)
	}
	if answer := a.Do("POST", send+"/"+id.String()+"/cancel", ""); answer.Status != http.StatusOK || answer.Body["status"] != "CANCELED" {
		t.Errorf("answer = %d %s", answer.Status, answer.Text)
	}
}

func TestAShardIsToldOfACanceledRowWhenNothingElseIsLeft(t *testing.T) {
	a := apitest.Start(t)
	a.Workflows.Down()
	first, second := accept(t, a, hello), accept(t, a, hello)
	for _, id := range []uuid.UUID{first, second} {
		shard := store.Owner{WorkflowID: "relay/1", Single: &id}
		claims, err := a.Store.Claim(t.Context(), store.ClaimTerms{Owner: shard, Limit: 1, Lease: time.Minute})
		if err != nil || len(claims) != 1 {
			t.Fatal(claims, err)
		}
		if held, err := a.Store.GiveBack(t.Context(), id, claims[0].Token, store.Retry{Kind: store.EventTryFailed}); err != nil || !held {
			t.Fatal(held, err)
		}
	}
	a.Workflows.Up()
	a.Do("POST", send+"/"+first.String()+"/cancel", "")
	a.Do("POST", send+"/"+second.String()+"/cancel", "")
	if err := a.Stop(); err != nil { // which waits for the signals
		t.Fatal(err)
	}
	for _, s := range a.Workflows.Signals() {
		if s.WorkflowID != "relay/1" || s.Status != notify.Canceled {
			t.Errorf("signals = %v", a.Workflows.Signals())
		}
	}
	if n := len(a.Workflows.Signals()); n < 1 || n > 2 { // two where both looked after the second
		t.Errorf("%d signals", n)
	}
}

func TestTimesChangeUntilTheFirstClaim(t *testing.T) {
	a := apitest.Start(t)
	in := func(d time.Duration) string {
		return time.Now().Add(d).In(time.FixedZone("", 9*60*60)).Format(time.RFC3339)
	}
	later := strings.Replace(hello, "{", `{"send_at": "`+in(time.Hour)+`", `, 1)
	id := accept(t, a, later)
	path := send + "/" + id.String()
	move := func(to string) apitest.Answer { return a.Do("PATCH", path, `{"send_at": "`+to+`"}`) }

	to := in(2 * time.Hour)
	answer := move(to)
	want, _ := time.Parse(time.RFC3339, to)
	got, err := time.Parse(time.RFC3339, answer.Body["send_at"].(string))
	if answer.Status != http.StatusOK || err != nil || !got.Equal(want) || answer.Body["status"] != "ACCEPTED" {
		t.Fatalf("answer = %d %s", answer.Status, answer.Text)
	}
	if n := len(a.Workflows.Started()); n != 0 {
		t.Errorf("%d workflows were started for what is not due", n)
	}
	if answer := move(in(-time.Hour)); answer.Code() != "send_at_past" {
		t.Errorf("to the past: %d %s", answer.Status, answer.Text)
	}
	if answer := move(in(36 * 24 * time.Hour)); answer.Code() != "send_at_too_far" {
		t.Errorf("too far ahead: %d %s", answer.Status, answer.Text)
	}
	if answer := move(in(0)); answer.Status != http.StatusOK {
		t.Errorf("to now: %d %s", answer.Status, answer.Text)
	}
	a.Eventually("what is due now is started now", func() bool { return slices.Contains(a.Workflows.Started(), id) })
	move(in(time.Hour))
	move(in(time.Minute))
	a.Eventually("a workflow that is there is woken", func() bool {
		return slices.Equal(a.Workflows.Woken(), []string{"notification/" + id.String()})
	})
	move(in(0))
	claim(t, a, id)
	if answer := move(in(time.Hour)); answer.Status != http.StatusConflict || answer.Code() != "already_claimed" {
		t.Errorf("after the claim: %d %s", answer.Status, answer.Text)
	}
	settle(t, a, id, "delivered")
	if answer := move(in(time.Hour)); answer.Status != http.StatusConflict || answer.Code() != "already_final" {
		t.Errorf("after the end: %d %s", answer.Status, answer.Text)
	}
}
