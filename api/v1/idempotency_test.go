package v1_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/todoku/todoku/api/apitest"
	"github.com/todoku/todoku/store"
)

const hello = `{"channel": "SMS", "to": "090-1234-5678", "body": "hello"}`

func total(t *testing.T, a *apitest.API) int {
	t.Helper()
	all, _, err := a.Store.Notifications(t.Context(), store.Filter{}, nil, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

func TestTheSameRequestAgainIsAnsweredAgainAndNotDone(t *testing.T) {
	a := apitest.Start(t)
	first := a.Do("POST", send, hello, "Idempotency-Key: visit 7")
	if first.Status != http.StatusAccepted || first.Header.Get("Idempotent-Replayed") != "" {
		t.Fatalf("the first time: %d %s", first.Status, first.Text)
	}
	for _, body := range []string{hello, `{ "body":"hello", "to":"090-1234-5678",  "channel":"SMS", "reference": null}`} {
		again := a.Do("POST", send, body, "Idempotency-Key: visit 7", "Accept-Language: ja")
		if again.Status != first.Status || again.Text != first.Text || again.Header.Get("Location") != first.Header.Get("Location") ||
			again.Header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("again: %d %s %v, want as the first time: %s", again.Status, again.Text, again.Header, first.Text)
		}
	}
	if n := total(t, a); n != 1 {
		t.Errorf("%d notifications, want 1", n)
	}
	if err := a.Stop(); err != nil {
		t.Fatal(err)
	}
	if n := len(a.Workflows.Started()); n != 1 {
		t.Errorf("%d workflows were started, want 1", n)
	}
}

func TestAKeyBelongsToOneRequest(t *testing.T) {
	a := apitest.Start(t)
	a.Do("POST", send, hello, "Idempotency-Key: k")
	for _, body := range []string{strings.Replace(hello, "hello", "goodbye", 1), `{"channel": "FAX", "to": "090-1234-5678", "body": "hello"}`} {
		answer := a.Do("POST", send, body, "Idempotency-Key: k")
		if answer.Status != http.StatusUnprocessableEntity || answer.Code() != "idempotency_key_reused" {
			t.Errorf("something else: %d %s", answer.Status, answer.Text)
		}
	}
}

func TestKeysOfDifferentCallersAreDifferent(t *testing.T) {
	a := apitest.Start(t)
	a.AddKey("another", "send")
	first := a.Do("POST", send, hello, "Idempotency-Key: k")
	other := a.Do("POST", send, hello, "Idempotency-Key: k", "Authorization: Bearer another")
	if other.Status != http.StatusAccepted || other.Body["id"] == first.Body["id"] {
		t.Errorf("another caller: %d %s", other.Status, other.Text)
	}
}

func TestARefusalIsNotKept(t *testing.T) {
	a := apitest.Start(t)
	const body = `{"channel": "SMS", "to": "090-1234-5678", "template_id": 1}`
	if answer := a.Do("POST", send, body, "Idempotency-Key: k"); answer.Code() != "template_not_found" {
		t.Fatalf("without the template: %d %s", answer.Status, answer.Text)
	}
	a.Do("POST", "/api/v1/templates", `{"name": "plain", "channel": "SMS", "body": "hello"}`)
	first := a.Do("POST", send, body, "Idempotency-Key: k")
	if first.Status != http.StatusAccepted {
		t.Fatalf("with the template: %d %s", first.Status, first.Text)
	}
	// What was accepted once is answered as it was, even where it would be refused now.
	a.Do("PATCH", "/api/v1/templates/1", `{"body": "hello {{name}}"}`, "If-Match: *")
	if again := a.Do("POST", send, body, "Idempotency-Key: k"); again.Text != first.Text || again.Status != http.StatusAccepted {
		t.Errorf("again: %d %s", again.Status, again.Text)
	}
}

func TestARequestUnderWayIsNotDoneTwice(t *testing.T) {
	a := apitest.Start(t)
	var mu sync.Mutex
	seen := map[string]int{}
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			answer := a.Do("POST", send, hello, "Idempotency-Key: k")
			mu.Lock()
			defer mu.Unlock()
			switch {
			case answer.Status == http.StatusConflict && answer.Code() == "idempotency_key_in_use" && answer.Header.Get("Retry-After") == "1":
				seen["in use"]++
			case answer.Status == http.StatusAccepted && answer.Header.Get("Idempotent-Replayed") == "true":
				seen["replayed"]++
			case answer.Status == http.StatusAccepted:
				seen["accepted"]++
			default:
				t.Errorf("answer = %d %s", answer.Status, answer.Text)
			}
		})
	}
	all.Wait()
	if seen["accepted"] != 1 || total(t, a) != 1 {
		t.Errorf("answers %v, %d notifications: want 1 accepted", seen, total(t, a))
	}
	if seen["in use"] == 0 {
		t.Errorf("answers %v: want some refused while the first was answered", seen)
	}
}
