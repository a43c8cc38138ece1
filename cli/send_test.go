package cli

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

const someID = "0190b0a0-0000-7000-8000-000000000000"

// notification is a notification as the API gives it, with a few fields replaced.
func notification(fields string) string {
	all := map[string]any{
		"id": someID, "channel": "SMS", "status": "ACCEPTED", "to": "*********5678", "body": "hello",
		"twilio_sid": nil, "twilio_status": nil, "error_code": nil, "error_message": nil, "segments": nil, "duration_seconds": nil, "answered_by": nil,
		"attempts": 0, "created_at": "2026-04-01T01:00:00Z", "send_at": "2026-04-01T01:00:00Z", "sent_at": nil, "updated_at": "2026-04-01T01:00:00Z",
		"workflow_id": "notification/" + someID, "workflow_url": nil,
	}
	if err := json.Unmarshal([]byte(fields), &all); err != nil {
		panic(err)
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestSendAsksForWhatWasTyped(t *testing.T) {
	for _, test := range []struct {
		args  []string
		input string
		want  map[string]any
	}{
		{[]string{"sms", "--to", "090-1234-5678", "--body", "hello"}, "",
			map[string]any{"channel": "SMS", "to": "090-1234-5678", "body": "hello"}},
		{[]string{"call", "--to", "03-1234-5678", "--body", "-"}, "ご予約は\n明日です。\n",
			map[string]any{"channel": "CALL", "to": "03-1234-5678", "body": "ご予約は\n明日です。"}},
		{[]string{"sms", "--to", "090-1234-5678", "--template", "3", "--param", "name=佐藤", "--param", "sum=a=b, c", "--reference", "order-1"}, "",
			map[string]any{"channel": "SMS", "to": "090-1234-5678", "template_id": 3.0, "params": map[string]any{"name": "佐藤", "sum": "a=b, c"}, "reference": "order-1"}},
		{[]string{"sms", "--to", "", "--body", ""}, "", // for the API to judge
			map[string]any{"channel": "SMS", "to": "", "body": ""}},
	} {
		term := newTerminal(t)
		term.input = test.input
		t.Setenv("LANG", "ja_JP.UTF-8")
		requests := standInAPI(t, says(202, notification(`{}`)))
		out := term.succeeds(append([]string{"send"}, test.args...)...)
		if len(*requests) == 1 {
			if (*requests)[0].key == "" {
				t.Error("the request has no Idempotency-Key")
			}
			(*requests)[0].key = ""
		}
		want := asked{Method: "POST", Path: "/api/v1/notifications", Authorization: "Bearer tdk_test", Language: "ja-JP", Body: test.want}
		if len(*requests) != 1 || !reflect.DeepEqual((*requests)[0], want) {
			t.Errorf("asked %+v, want %+v", *requests, want)
		}
		if !strings.Contains(out, someID) {
			t.Errorf("the id is not in %q", out)
		}
	}
}

func TestSendAsksAgainUnderOneKey(t *testing.T) {
	later := refuses(503, `{"title":"This process is being stopped","status":503,"detail":"it is being stopped","code":"stopping"}`)
	later.retryAfter = "1"
	inUse := refuses(409, `{"title":"The same request is still being answered","status":409,"detail":"it is being answered","code":"idempotency_key_in_use"}`)
	for _, key := range []string{"", "order-1"} {
		term := newTerminal(t)
		requests := standInAPI(t, answer{hangUp: true}, later, inUse, says(202, notification(`{}`)))
		args := []string{"send", "sms", "--to", "090-1234-5678", "--body", "x"}
		if key != "" {
			args = append(args, "--idempotency-key", key)
		}
		code, out, errOut := term.run(args...)
		if code != exitDone || !strings.Contains(out, someID) {
			t.Errorf("it ends with %d: %s%s", code, out, errOut)
		}
		if want := "it is being stopped: asking again in 1s\n"; errOut != want {
			t.Errorf("standard error has %q, want %q", errOut, want)
		}
		for _, r := range *requests {
			if r.key == "" || r.key != (*requests)[0].key || key != "" && r.key != key {
				t.Errorf("asked under the keys %q and %q", (*requests)[0].key, r.key)
			}
		}
		if len(*requests) != 4 {
			t.Errorf("asked %d times, want 4", len(*requests))
		}
	}
}

func TestWhatMayHaveBeenDoneIsNotAskedForAgain(t *testing.T) {
	term := newTerminal(t)
	standInAPI(t, answer{hangUp: true}, says(201, reminder)) // which a second request would get
	code, _, errOut := term.run("template", "create", "--name", "x", "--channel", "sms", "--body", "x")
	if code != exitFailed || !strings.Contains(errOut, "may or may not have done") {
		t.Errorf("it ends with %d: %s", code, errOut)
	}
}

func TestSendAtIsReadAsPeopleWriteIt(t *testing.T) {
	now := time.Date(2026, 4, 1, 1, 0, 0, 0, time.UTC)
	newTerminal(t) // DEFAULT_TIMEZONE is not set: Asia/Tokyo
	for text, want := range map[string]string{
		"2026-04-01 10:30":          "2026-04-01T01:30:00Z",
		"2026-04-01 10:30:15":       "2026-04-01T01:30:15Z",
		"2026-04-02":                "2026-04-01T15:00:00Z",
		"2026-04-01T10:30:00+09:00": "2026-04-01T01:30:00Z",
		"2026-04-01T10:30:00Z":      "2026-04-01T10:30:00Z",
		"90m":                       "2026-04-01T02:30:00Z",
		"0s":                        "2026-04-01T01:00:00Z",
	} {
		at, err := parseMoment(text, now)
		if err != nil || at.UTC().Format(time.RFC3339) != want {
			t.Errorf("%q is %v, %v, want %s", text, at, err, want)
		}
	}
	for _, text := range []string{"", "tomorrow", "10:30", "2026-04-01T10:30:00", "2026-13-01 10:00"} {
		if at, err := parseMoment(text, now); err == nil {
			t.Errorf("%q is %v, want an error", text, at)
		}
	}
}

func TestSendWaitsForTheOutcome(t *testing.T) {
	accepted := says(202, notification(`{}`))
	pending := says(200, notification(`{"status":"PENDING","twilio_status":"sent"}`))
	away := refuses(503, `{"title":"The database cannot be reached","status":503,"detail":"try again","code":"database_unavailable"}`)
	success := says(200, notification(`{"status":"SUCCESS","twilio_status":"delivered"}`))
	failed := says(200, notification(`{"status":"FAILED","error_code":"30003","error_message":"圏外です。"}`))
	held := says(200, notification(`{"status":"HELD"}`))
	for _, test := range []struct {
		name    string
		answers []answer
		code    int
		out     []string
		errOut  string
	}{
		{"delivered", []answer{accepted, pending, pending, success}, exitDone, []string{"ACCEPTED", "PENDING   sent", "SUCCESS   delivered"}, ""},
		{"not delivered", []answer{accepted, failed}, exitFailed, []string{"FAILED    圏外です。 (30003)"}, ""},
		{"unknown", []answer{accepted, says(200, notification(`{"status":"UNKNOWN"}`))}, exitFailed, []string{"UNKNOWN"}, ""},
		{"canceled", []answer{accepted, says(200, notification(`{"status":"CANCELED"}`))}, exitFailed, []string{"CANCELED"}, ""},
		{"over an outage", []answer{accepted, {hangUp: true}, away, success}, exitDone, []string{"SUCCESS"}, ""},
		{"held for too long", []answer{accepted, held}, exitFailed, []string{"HELD      its sender is stopped"}, "still HELD after 1s, but it goes on"},
		{"never asked again", []answer{accepted, refuses(401, `{"title":"t","status":401,"detail":"the key was revoked","code":"key_invalid"}`)}, exitFailed, nil, "the key was revoked"},
	} {
		t.Run(test.name, func(t *testing.T) {
			term := newTerminal(t)
			standInAPI(t, test.answers...)
			code, out, errOut := term.run("send", "sms", "--to", "090-1234-5678", "--body", "x", "--wait", "--timeout", "1s")
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			for _, line := range test.out {
				if strings.Count(out, line) != 1 {
					t.Errorf("want once %q in\n%s", line, out)
				}
			}
			if test.errOut == "" && errOut != "" || !strings.Contains(errOut, test.errOut) {
				t.Errorf("standard error has %q, want %q", errOut, test.errOut)
			}
		})
	}
}

func TestSendWaitPrintsTheLastAnswerAsJSON(t *testing.T) {
	term := newTerminal(t)
	standInAPI(t, says(202, notification(`{}`)), says(200, notification(`{"status":"FAILED"}`)))
	code, out, errOut := term.run("send", "call", "--to", "090-1234-5678", "--body", "x", "--wait", "--json")
	var printed map[string]any
	if err := json.Unmarshal([]byte(out), &printed); err != nil || printed["status"] != "FAILED" || code != exitFailed || errOut != "" {
		t.Errorf("it ends with %d, prints %s and %q (%v)", code, out, errOut, err)
	}
}

func TestProblemsOfTheAPIAreReadable(t *testing.T) {
	one := `{"type":"/docs#landline_cannot_receive_sms","title":"A landline cannot receive an SMS","status":422,"detail":"use a mobile number","code":"landline_cannot_receive_sms",` +
		`"errors":[{"pointer":"/to","code":"landline_cannot_receive_sms","detail":"use a mobile number"}]}`
	two := `{"title":"Several things are wrong with the request","status":422,"detail":"2 things are wrong: see errors","code":"validation_failed",` +
		`"errors":[{"pointer":"/to","code":"phone_number_empty","detail":"write the number"},{"pointer":"/params/name","code":"param_missing","detail":"add it"}]}`
	for _, test := range []struct {
		answer answer
		want   string
	}{
		{refuses(422, one), "todoku send sms: A landline cannot receive an SMS\n  /to  use a mobile number\n"},
		{refuses(422, two), "todoku send sms: Several things are wrong with the request\n  /to           write the number\n  /params/name  add it\n"},
		{refuses(401, `{"title":"The API key is not valid","status":401,"detail":"check it","code":"key_invalid"}`), "todoku send sms: check it\n"},
		{answer{status: 502, contentType: "text/html", body: "<h1>Bad gateway</h1>"}, "todoku send sms: URL (TODOKU_URL) answered 502 Bad Gateway, but not as Todoku does: check the address\n"},
		{answer{status: 302, contentType: "application/json", body: "{}"}, "todoku send sms: URL (TODOKU_URL) answered 302 Found, but not as Todoku does: check the address\n"},
		{says(200, "nonsense"), "todoku send sms: URL (TODOKU_URL) answered 200 OK, but not as Todoku does: check the address\n"},
		{answer{hangUp: true}, "todoku send sms: the answer of the API at URL (TODOKU_URL) was lost: EOF: it may or may not have done what you asked\n"},
	} {
		term := newTerminal(t)
		standInAPI(t, test.answer)
		code, out, errOut := term.run("send", "sms", "--to", "0312345678", "--body", "x")
		found, _ := environ()
		if errOut = strings.ReplaceAll(errOut, found["TODOKU_URL"], "URL"); errOut != test.want || code != exitFailed || out != "" {
			t.Errorf("it ends with %d and prints %q and\n%s\nwant\n%s", code, out, errOut, test.want)
		}
	}
}

func TestProblemsOfTheAPIAreJSONWhereJSONIsAskedFor(t *testing.T) {
	term := newTerminal(t)
	standInAPI(t, refuses(404, `{"type":"/docs#x","title":"No such notification","status":404,"detail":"check the id","code":"notification_not_found"}`))
	_, _, errOut := term.run("notification", "show", someID, "--json")
	want := `{
  "type": "/docs#x",
  "title": "No such notification",
  "status": 404,
  "detail": "check the id",
  "code": "notification_not_found"
}
`
	if errOut != want {
		t.Errorf("got\n%s\nwant\n%s", errOut, want)
	}
}

func TestNobodyListens(t *testing.T) {
	term := newTerminal(t)
	t.Setenv("TODOKU_URL", "http://127.0.0.1:1")
	t.Setenv("TODOKU_API_KEY", "k")
	code, _, errOut := term.run("sender", "list")
	want := "todoku sender list: the API at http://127.0.0.1:1 (TODOKU_URL) cannot be reached: connect: connection refused: does it run?\n"
	if code != exitFailed || errOut != want {
		t.Errorf("it ends with %d and says %q", code, errOut)
	}
}

func TestNotificationIsShownToPeople(t *testing.T) {
	term := newTerminal(t)
	standInAPI(t,
		says(200, notification(`{"status":"FAILED","channel":"CALL","twilio_status":"busy","error_message":"通話中でした。","attempts":1,"duration_seconds":0,
			"body":"two\nlines","reference":"order-1","sent_at":"2026-04-01T01:00:01Z","workflow_url":"http://127.0.0.1:8233/w","twilio_sid":"CA1"}`)),
		says(200, `{"items":[
			{"at":"2026-04-01T01:00:00.123456Z","kind":"accepted","status":"ACCEPTED","source":null,"twilio_status":null,"twilio_sid":null,"error_code":null,"detail":null},
			{"at":"2026-04-01T01:00:02Z","kind":"receipt","status":"FAILED","source":"webhook","twilio_status":"busy","twilio_sid":"CA1","error_code":null,"detail":null}]}`))
	want := fmt.Sprintf(`id            %[1]s
status        FAILED (Twilio: busy)
channel       CALL
to            *********5678
body          two lines
reference     order-1
error         通話中でした。
duration      0 s
attempts      1
Twilio's SID  CA1
accepted      2026-04-01 10:00:00 JST
sent          2026-04-01 10:00:01 JST
updated       2026-04-01 10:00:00 JST
workflow      notification/%[1]s
              http://127.0.0.1:8233/w

timeline
  2026-04-01 10:00:00.123  accepted  ACCEPTED
  2026-04-01 10:00:02.000  receipt   FAILED    busy (webhook)
`, someID)
	if out := term.succeeds("notification", "show", someID, "--events"); out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}

func TestTimesAreShownInTheDefaultTimezone(t *testing.T) {
	term := newTerminal(t)
	standInAPI(t, says(200, notification(`{}`)))
	t.Setenv("DEFAULT_TIMEZONE", "UTC")
	if out := term.succeeds("notification", "show", someID); !strings.Contains(out, "2026-04-01 01:00:00 UTC") {
		t.Errorf("got\n%s", out)
	}
	t.Setenv("DEFAULT_TIMEZONE", "Nowhere")
	if code, _, errOut := term.run("notification", "show", someID); code != exitFailed || !strings.Contains(errOut, `DEFAULT_TIMEZONE is "Nowhere"`) {
		t.Errorf("it ends with %d and says %q", code, errOut)
	}
}
