package simulator_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestMessageIsAnsweredAsTwilioDoes(t *testing.T) {
	rig := start(t)
	rig.behave(`{"default_outcome": {"status": "queued"}}`)
	created := rig.sendMessage(map[string]string{"Body": "こんにちは"})
	sid := created["sid"].(string)
	uri := "/2010-04-01/Accounts/" + testAccount + "/Messages/" + sid
	want := map[string]any{
		"account_sid": testAccount, "api_version": "2010-04-01", "body": "こんにちは", "direction": "outbound-api",
		"error_code": nil, "error_message": nil, "from": goodSender, "messaging_service_sid": nil, "num_media": "0",
		"num_segments": "1", "price": nil, "price_unit": "USD", "sid": sid, "status": "queued", "to": someone,
		"date_sent": nil, "uri": uri + ".json",
	}
	for name, value := range want {
		if created[name] != value {
			t.Errorf("%s is %v, want %v", name, created[name], value)
		}
	}
	if media := created["subresource_uris"].(map[string]any)["media"]; media != uri+"/Media.json" {
		t.Errorf("the media's URI is %v", media)
	}
	for _, name := range []string{"date_created", "date_updated"} {
		at, err := time.Parse(time.RFC1123Z, created[name].(string))
		if err != nil || time.Since(at) > soon {
			t.Errorf("%s is %v: %v", name, created[name], err)
		}
	}
	if fetched := rig.message(sid); fmt.Sprint(fetched) != fmt.Sprint(created) {
		t.Errorf("fetched %v, created %v", fetched, created)
	}
}

func TestMessageStatuses(t *testing.T) {
	fast := `"callback_delay_ms": 1`
	for _, test := range []struct {
		name, outcome string
		changes       map[string]string
		initial       string
		told          string // every callback, in order
		final         string
		errorCode     any
	}{
		{"from a number", `{}`, nil, "queued", "sent delivered", "delivered", nil},
		{"through a service", `{}`, map[string]string{"From": "", "MessagingServiceSid": testService},
			"accepted", "queued sent delivered", "delivered", nil},
		{"undelivered", `{"status": "undelivered", "error_code": 30003}`, nil,
			"queued", "sent undelivered", "undelivered", 30003.0},
		{"failed", `{"status": "failed", "error_code": 30008}`, nil, "queued", "failed", "failed", 30008.0},
		{"no receipt ever", `{"status": "sent"}`, nil, "queued", "sent", "sent", nil},
		{"stuck in the queue", `{"status": "queued"}`, map[string]string{"From": "", "MessagingServiceSid": testService},
			"accepted", "queued", "queued", nil},
		{"read", `{"status": "read"}`, nil, "queued", "sent delivered read", "read", nil},
		{"unsubscribed, through a service", `{}`,
			map[string]string{"To": "+15005550004", "From": "", "MessagingServiceSid": testService},
			"accepted", "queued failed", "failed", 21610.0},
	} {
		t.Run(test.name, func(t *testing.T) {
			rig, hook := start(t), newHook(t)
			rig.behave(`{` + fast + `, "default_outcome": ` + withStatus(test.outcome, "delivered") + `}`)
			changes := map[string]string{"StatusCallback": hook.url}
			for name, value := range test.changes {
				changes[name] = value
			}
			created := rig.sendMessage(changes)
			if created["status"] != test.initial {
				t.Errorf("created %v, want %s", created["status"], test.initial)
			}
			if told := hook.statuses(len(strings.Fields(test.told))); told != test.told {
				t.Errorf("told %s, want %s", told, test.told)
			}
			final := rig.message(created["sid"])
			if final["status"] != test.final || final["error_code"] != test.errorCode {
				t.Errorf("ended as %v, %v; want %s, %v", final["status"], final["error_code"], test.final, test.errorCode)
			}
			if test.errorCode != nil && final["error_message"] == nil {
				t.Error("the error has no message")
			}
			if sent := final["date_sent"] != nil; sent == (test.final == "queued") {
				t.Errorf("date_sent of a message that is %s: %v", test.final, final["date_sent"])
			}
			hook.nothing()
		})
	}
}

// withStatus fills in the status that an outcome leaves out.
func withStatus(outcome, status string) string {
	if outcome == "{}" {
		return `{"status": "` + status + `"}`
	}
	return outcome
}

func TestMessageCallbackTellsWhatTwilioTells(t *testing.T) {
	rig, hook := start(t), newHook(t)
	rig.behave(`{"callback_delay_ms": 1, "default_outcome": {"status": "undelivered", "error_code": 30003}}`)
	sid := rig.sendMessage(map[string]string{
		"From": "", "MessagingServiceSid": testService, "StatusCallback": hook.url,
	})["sid"].(string)

	for _, status := range []string{"queued", "sent", "undelivered"} {
		c := hook.next()
		want := map[string]string{
			"AccountSid": testAccount, "ApiVersion": "2010-04-01", "From": goodSender, "MessageSid": sid,
			"MessageStatus": status, "MessagingServiceSid": testService, "SmsSid": sid, "SmsStatus": status,
			"To": someone, "notification": "n-1",
		}
		if status == "undelivered" {
			want["ErrorCode"] = "30003"
			want["RawDlrDoneDate"] = c.params.Get("RawDlrDoneDate")
			if _, err := time.Parse("0601021504", want["RawDlrDoneDate"]); err != nil {
				t.Error(err)
			}
		}
		got := make(map[string]string)
		for name := range c.params {
			got[name] = c.params.Get(name)
		}
		if c.method != http.MethodPost || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("told %s\n%v, want POST\n%v", c.method, got, want)
		}
	}
}

func TestMessageThroughServiceHasNoSenderAndNoSegmentsAtFirst(t *testing.T) {
	rig := start(t)
	rig.behave(`{"callback_delay_ms": 1}`)
	created := rig.sendMessage(map[string]string{"From": "", "MessagingServiceSid": testService})
	if created["from"] != nil || created["num_segments"] != "0" || created["messaging_service_sid"] != testService {
		t.Errorf("created %v", created)
	}
	eventually(t, "it is sent by a number in one segment", func() bool {
		m := rig.message(created["sid"])
		return m["from"] == goodSender && m["num_segments"] == "1"
	})
}

func TestMediaMakesItAnMM(t *testing.T) {
	rig := start(t)
	form := messageForm(map[string]string{"Body": ""})
	form["MediaUrl"] = []string{"https://example.com/1.png", "https://example.com/2.png"}
	created := rig.mustCreate("/Messages.json", form)
	if created["num_media"] != "2" || !strings.HasPrefix(created["sid"].(string), "MM") {
		t.Errorf("created %v", created)
	}
}

func TestMessageRefusals(t *testing.T) {
	rig := start(t)
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	scheduled := func(at string) map[string]string {
		return map[string]string{"MessagingServiceSid": testService, "ScheduleType": "fixed", "SendAt": at}
	}
	for _, test := range []struct {
		name    string
		changes map[string]string
		code    int
	}{
		{"no To", map[string]string{"To": ""}, 21604},
		{"no sender", map[string]string{"From": ""}, 21603},
		{"no body", map[string]string{"Body": ""}, 21602},
		{"a body of 1601 characters", map[string]string{"Body": strings.Repeat("あ", 1601)}, 21617},
		{"To is no number", map[string]string{"To": "1234"}, 21211},
		{"To is national", map[string]string{"To": "090-1234-5678"}, 21211},
		{"To is the sender", map[string]string{"To": goodSender}, 21211},
		{"From is nothing that can send", map[string]string{"From": "+"}, 21212},
		{"From is longer than a sender ID", map[string]string{"From": "TwelveLetter"}, 21212},
		{"callback to a relative URL", map[string]string{"StatusCallback": "/status"}, 21609},
		{"callback without a host", map[string]string{"StatusCallback": "https:///status"}, 21609},
		{"callback to a host with an underscore", map[string]string{"StatusCallback": "https://my_host.example/"}, 21609},
		{"callback by mail", map[string]string{"StatusCallback": "mailto:someone@example.com"}, 21609},
		{"valid for no time", map[string]string{"ValidityPeriod": "0"}, 21624},
		{"valid for too long", map[string]string{"ValidityPeriod": "36001"}, 21624},
		{"content that is none", map[string]string{"ContentSid": "HX1"}, 21655},
		{"content variables that are no JSON", map[string]string{"ContentVariables": "{"}, 21656},
		{"a service that is none", map[string]string{"MessagingServiceSid": "MG1"}, 21701},
		{"a media URL that is none", map[string]string{"MediaUrl": "picture.png"}, 21620},
		{"scheduled for no time", scheduled(""), 35111},
		{"scheduled too soon", scheduled(in(time.Minute)), 35114},
		{"scheduled too late", scheduled(in(36 * 24 * time.Hour)), 35114},
		{"scheduled for what is no time", scheduled("soon"), 35115},
		{"scheduled from a number", map[string]string{"ScheduleType": "fixed", "SendAt": in(time.Hour)}, 35118},
		{"a time without a schedule", map[string]string{"SendAt": in(time.Hour)}, 35126},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, body := rig.api("POST", "/Messages.json", messageForm(test.changes))
			checkFailure(t, status, body, http.StatusBadRequest, test.code)
		})
	}
	if items := rig.items("messages"); len(items) > 0 {
		t.Errorf("refused messages exist: %v", items)
	}
}

func TestBodyOf1600CharactersIsTaken(t *testing.T) {
	rig := start(t)
	if created := rig.sendMessage(map[string]string{"Body": strings.Repeat("あ", 1600)}); created["num_segments"] != "24" {
		t.Errorf("%v segments, want 24", created["num_segments"])
	}
}

func TestEverySenderIsTaken(t *testing.T) {
	rig := start(t)
	for _, from := range []string{"+815012345678", "+15550100099", "12345", "TODOKU", "My Company"} {
		if created := rig.sendMessage(map[string]string{"From": from}); created["from"] != from {
			t.Errorf("sent from %v, want %s", created["from"], from)
		}
	}
}

func TestUnreadableForm(t *testing.T) {
	rig := start(t)
	for name, form := range map[string]string{
		"broken escapes": "To=%zz",
		"far too big":    "Body=" + strings.Repeat("x", 2<<20),
	} {
		status, body := rig.do(rig.request("POST", "/2010-04-01/Accounts/"+testAccount+"/Messages.json", form))
		t.Run(name, func(t *testing.T) { checkFailure(t, status, body, http.StatusBadRequest, 20001) })
	}
}

func TestScheduledMessageCanBeCanceled(t *testing.T) {
	rig, hook := start(t), newHook(t)
	created := rig.sendMessage(map[string]string{
		"From": "", "MessagingServiceSid": testService, "ScheduleType": "fixed", "StatusCallback": hook.url,
		"SendAt": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
	})
	if created["status"] != "scheduled" {
		t.Fatalf("created %v", created["status"])
	}
	path := "/Messages/" + created["sid"].(string) + ".json"
	if status, body := rig.api("DELETE", path, nil); status != http.StatusBadRequest {
		t.Errorf("deleting a scheduled message is answered %d %v", status, body)
	}
	status, canceled := rig.api("POST", path, url.Values{"Status": {"canceled"}})
	if status != http.StatusOK || canceled["status"] != "canceled" || canceled["date_sent"] != nil {
		t.Errorf("answered %d %v", status, canceled)
	}
	if told := hook.statuses(1); told != "canceled" {
		t.Errorf("told %s", told)
	}
	status, body := rig.api("POST", path, url.Values{"Status": {"canceled"}})
	checkFailure(t, status, body, http.StatusBadRequest, 30409)
	hook.nothing()
}

func TestRedactAndDelete(t *testing.T) {
	rig := start(t)
	rig.behave(`{"callback_delay_ms": 1, "outcomes": {"+15550100002": {"status": "queued"}}}`)
	done, queued := rig.sendMessage(nil), rig.sendMessage(map[string]string{"To": "+15550100002"})
	path := func(m map[string]any) string { return "/Messages/" + m["sid"].(string) + ".json" }
	eventually(t, "delivered", func() bool { return rig.message(done["sid"])["status"] == "delivered" })

	status, body := rig.api("POST", path(done), url.Values{"Body": {"another"}})
	checkFailure(t, status, body, http.StatusBadRequest, 20001)
	status, body = rig.api("POST", path(done), url.Values{"Status": {"delivered"}})
	checkFailure(t, status, body, http.StatusBadRequest, 20001)
	for _, method := range []string{"POST", "DELETE"} {
		status, body = rig.api(method, path(queued), url.Values{"Body": {""}})
		checkFailure(t, status, body, http.StatusBadRequest, 20009)
	}
	status, redacted := rig.api("POST", path(done), url.Values{"Body": {""}})
	if status != http.StatusOK || redacted["body"] != "" {
		t.Errorf("redacting is answered %d %v", status, redacted)
	}
	if status, _ = rig.api("DELETE", path(done), nil); status != http.StatusNoContent {
		t.Errorf("deleting is answered %d", status)
	}
	if status, _ = rig.api("GET", path(done), nil); status != http.StatusNotFound {
		t.Errorf("a deleted message is answered %d", status)
	}
	if items := rig.items("messages"); len(items) != 1 {
		t.Errorf("%d messages are left, want 1", len(items))
	}
}
