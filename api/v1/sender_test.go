package v1_test

import (
	"testing"
	"time"

	"github.com/todoku/todoku/api/apitest"
)

func TestAStoppedSenderSaysWhyAndIsResumedByOneCall(t *testing.T) {
	a := apitest.Start(t)
	a.AddKey("seesall", "read", "pii")
	id := accept(t, a, `{"channel": "SMS", "to": "090-1234-5678", "body": "x"}`)
	if err := a.Store.StopSender(t.Context(), 1, false, "21606", "the number cannot send SMS"); err != nil {
		t.Fatal(err)
	}
	if got := a.Do("GET", send+"/"+id.String(), "").Body["status"]; got != "HELD" {
		t.Errorf("status = %v, want HELD", got)
	}
	show := func(answer apitest.Answer) string {
		t.Helper()
		sender := answer.Body
		if items, ok := answer.Body["items"].([]any); ok {
			sender = items[0].(map[string]any)
		}
		return words(sender["channel"], sender["address"], sender["state"], sender["send_interval_ms"], sender["waiting"], sender["stop_code"], sender["stop_reason"])
	}
	if got, want := show(a.Do("GET", "/api/v1/senders", "")), "SMS ********0006 stopped 100 1 21606 the number cannot send SMS"; got != want {
		t.Errorf("sender = %s, want %s", got, want)
	}
	if got, want := show(a.Do("GET", "/api/v1/senders", "", "Authorization: Bearer seesall")), "SMS "+apitest.Number+" stopped 100 1 21606 the number cannot send SMS"; got != want {
		t.Errorf("sender = %s, want %s", got, want)
	}
	for range 2 { // the second time changes nothing
		if got, want := show(a.Do("POST", "/api/v1/senders/1/resume", "")), "SMS ********0006 running 100 1 <nil> <nil>"; got != want {
			t.Errorf("resumed = %s, want %s", got, want)
		}
	}
	if got := a.Do("GET", send+"/"+id.String(), "").Body["status"]; got != "ACCEPTED" {
		t.Errorf("status = %v, want ACCEPTED", got)
	}
}

func TestSenderIsNotResumedWhileTheLedgerIsBehind(t *testing.T) {
	a := apitest.Start(t)
	accept(t, a, `{"channel": "SMS", "to": "090-1234-5678", "body": "x"}`)
	if err := a.Store.FallBehind(t.Context(), time.Now(), "a send is missing"); err != nil {
		t.Fatal(err)
	}
	if answer := a.Do("POST", "/api/v1/senders/1/resume", ""); answer.Status != 409 || answer.Code() != "ledger_behind" {
		t.Errorf("answered %d %s, want 409 ledger_behind", answer.Status, answer.Code())
	}
}
