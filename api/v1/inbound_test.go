package v1_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/api/apitest"
	"github.com/todoku/todoku/notify"
)

// receive records a call of which these words were told, one a second, the last one now.
func receive(t *testing.T, a *apitest.API, words ...notify.InboundWord) (id string) {
	t.Helper()
	sid := "CA" + strings.ReplaceAll(uuid.NewString(), "-", "")
	for i, word := range words {
		if _, err := a.Store.RecordInbound(t.Context(), notify.InboundEvent{
			CallID: notify.InboundID(sid), CallSID: sid, Key: string(word), Kind: string(word), Word: word, Source: notify.FromWebhook,
			At: time.Now().Add(time.Duration(i-len(words)+1) * time.Second), From: "+819012345678", To: apitest.Number, FromHash: notify.PhoneNumber{E164: "+819012345678"}.Hash([]byte(a.Settings.PhoneHashKey)),
			Operator: notify.Operator{SID: "WK00000000000000000000000000000001", Name: "Mari"},
		}); err != nil {
			t.Fatal(err)
		}
	}
	return notify.InboundID(sid).String()
}

func TestACallReadsAsWhatBecameOfIt(t *testing.T) {
	a := apitest.Start(t)
	id := receive(t, a, notify.WordReceived, notify.WordWaiting, notify.WordAnswered, notify.WordFinished)
	answer := a.Do("GET", "/api/v1/inbound/calls/"+id, "")
	for name, want := range map[string]any{
		"state": "FINISHED", "from": "*********5678", "to": apitest.Number, "operator_name": "Mari", "wait_seconds": 1.0, "talk_seconds": 1.0,
		"follow_up": nil, "notification_id": nil, "workflow_id": "inbound/" + id,
	} {
		if got := answer.Body[name]; name != "wait_seconds" && name != "talk_seconds" && got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		} else if number, _ := got.(float64); got != want && (number < .9 || number > 1.1) {
			t.Errorf("%s is %v, want about %v", name, got, want)
		}
	}
	events, _ := a.Do("GET", "/api/v1/inbound/calls/"+id+"/events", "").Body["items"].([]any)
	var meanings []string
	for _, e := range events {
		meanings = append(meanings, e.(map[string]any)["meaning"].(string))
	}
	if got := strings.Join(meanings, " "); got != "received waiting answered finished" {
		t.Errorf("the timeline is %s", got)
	}
}

func TestOnlyAKeyForItSeesACallersNumber(t *testing.T) {
	a := apitest.Start(t)
	a.AddKey("piikey", "read", "pii")
	id := receive(t, a, notify.WordReceived)
	if got := a.Do("GET", "/api/v1/inbound/calls/"+id, "", "Authorization: Bearer piikey").Body["from"]; got != "+819012345678" {
		t.Errorf("it sees %v", got)
	}
}

func TestACallerWithoutANumberIsShownAsTheWord(t *testing.T) {
	a := apitest.Start(t)
	for i, from := range []string{"Anonymous", "+266696687", "client:taro"} {
		sid := fmt.Sprintf("CA%032d", i+1)
		if _, err := a.Store.RecordInbound(t.Context(), notify.InboundEvent{CallID: notify.InboundID(sid), CallSID: sid, Key: "voice", Kind: "voice",
			Word: notify.WordReceived, Source: notify.FromWebhook, At: time.Now(), From: from, To: apitest.Number}); err != nil {
			t.Fatal(err)
		}
		want := []string{"Anonymous", "anonymous", "client:****"}[i]
		if got := a.Do("GET", "/api/v1/inbound/calls/"+notify.InboundID(sid).String(), "").Body["from"]; got != want {
			t.Errorf("%s is shown as %v, want %s", from, got, want)
		}
	}
}

func TestCallsAreListedAPageAtATime(t *testing.T) {
	a := apitest.Start(t)
	var want []string
	for range 5 {
		want = append(want, receive(t, a, notify.WordReceived, notify.WordHungUp))
		receive(t, a, notify.WordReceived)
	}
	var got []string
	for path := "/api/v1/inbound/calls?state=ABANDONED&limit=2"; ; {
		page := a.Do("GET", path, "")
		if page.Status != http.StatusOK {
			t.Fatal(page.Text)
		}
		for _, item := range page.Body["items"].([]any) {
			got = append([]string{item.(map[string]any)["id"].(string)}, got...)
		}
		next, more := page.Body["next_cursor"].(string)
		if !more {
			break
		}
		path = "/api/v1/inbound/calls?state=ABANDONED&limit=2&cursor=" + next
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestACallersCallsAreFoundByTheNumber(t *testing.T) {
	a := apitest.Start(t)
	receive(t, a, notify.WordReceived)
	for phone, want := range map[string]int{"090-1234-5678": 1, "%2B819012345678": 1, "090-1234-5679": 0} {
		if items, _ := a.Do("GET", "/api/v1/inbound/calls?phone="+phone, "").Body["items"].([]any); len(items) != want {
			t.Errorf("%s: %d calls, want %d", phone, len(items), want)
		}
	}
}

func TestBadQuestionsAboutCalls(t *testing.T) {
	a := apitest.Start(t)
	for path, want := range map[string]struct {
		status int
		code   string
	}{
		"/api/v1/inbound/calls?state=lost":                      {422, "parameter_invalid"},
		"/api/v1/inbound/calls?cursor=x":                        {422, "parameter_invalid"},
		"/api/v1/inbound/calls?created_from=yesterday":          {422, "parameter_invalid"},
		"/api/v1/inbound/calls?phone=12":                        {422, "parameter_invalid"},
		"/api/v1/inbound/calls?limit=201":                       {422, "parameter_invalid"},
		"/api/v1/inbound/calls?colour=red":                      {422, "parameter_invalid"},
		"/api/v1/inbound/statistics?within_minutes=0":           {422, "parameter_invalid"},
		"/api/v1/inbound/calls/" + uuid.NewString():             {404, "inbound_call_not_found"},
		"/api/v1/inbound/calls/" + uuid.NewString() + "/events": {404, "inbound_call_not_found"},
	} {
		if answer := a.Do("GET", path, ""); answer.Status != want.status || answer.Code() != want.code {
			t.Errorf("%s: answer = %d %s, want %d %s", path, answer.Status, answer.Text, want.status, want.code)
		}
	}
}

func TestStatisticsOfTheQueue(t *testing.T) {
	a := apitest.Start(t)
	if err := a.Store.SaveInboundPolicy(t.Context(), notify.InboundPolicy{ServiceLevel: 10 * time.Second}); err != nil {
		t.Fatal(err)
	}
	receive(t, a, notify.WordReceived, notify.WordWaiting)
	receive(t, a, notify.WordReceived, notify.WordWaiting, notify.WordAnswered)
	receive(t, a, notify.WordReceived, notify.WordWaiting, notify.WordHungUp)
	answer := a.Do("GET", "/api/v1/inbound/statistics", "")
	now, _ := answer.Body["now"].(map[string]any)
	lately, _ := answer.Body["lately"].(map[string]any)
	operators, _ := answer.Body["operators"].([]any)
	if now["waiting"] != 1.0 || now["answered"] != 1.0 || lately["calls"] != 3.0 || lately["service_level"] != .5 ||
		lately["service_threshold_seconds"] != 10.0 || len(operators) != 1 || operators[0].(map[string]any)["busy"] != true {
		t.Errorf("answer = %s", answer.Text)
	}
}
