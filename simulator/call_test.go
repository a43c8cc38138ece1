package simulator_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

var allEvents = []string{"initiated", "ringing", "answered", "completed"}

func TestCallIsAnsweredAsTwilioDoes(t *testing.T) {
	rig := start(t)
	rig.behave(`{"default_call_outcome": {"status": "queued"}}`)
	created := rig.makeCall(map[string]string{"To": "+819012345678"})
	sid := created["sid"].(string)
	uri := "/2010-04-01/Accounts/" + testAccount + "/Calls/" + sid
	want := map[string]any{
		"account_sid": testAccount, "answered_by": nil, "api_version": "2010-04-01", "direction": "outbound-api",
		"duration": nil, "end_time": nil, "from": goodSender, "from_formatted": "(500) 555-0006", "price": nil,
		"queue_time": "0", "sid": sid, "start_time": nil, "status": "queued", "to": "+819012345678",
		"to_formatted": "+819012345678", "uri": uri + ".json",
	}
	for name, value := range want {
		if created[name] != value {
			t.Errorf("%s is %v, want %v", name, created[name], value)
		}
	}
	subresources := created["subresource_uris"].(map[string]any)
	if got := subresources["user_defined_messages"]; got != uri+"/UserDefinedMessages.json" {
		t.Errorf("user_defined_messages are at %v", got)
	}
	if fetched := rig.call(sid); fmt.Sprint(fetched) != fmt.Sprint(created) {
		t.Errorf("fetched %v, created %v", fetched, created)
	}
}

func TestCallStatuses(t *testing.T) {
	for _, test := range []struct {
		name, outcome string
		events        []string
		told          string
		final         string
		duration      any
	}{
		{"completed is told by default", `{"status": "completed"}`, nil, "completed", "completed", "12"},
		{"every event", `{"status": "completed", "duration_s": 61}`, allEvents,
			"initiated ringing in-progress completed", "completed", "61"},
		{"completed after no time", `{"status": "completed", "duration_s": 0}`, nil, "completed", "completed", "0"},
		{"completed, length not known", `{"status": "completed", "duration_s": null}`, nil, "completed", "completed", nil},
		{"busy", `{"status": "busy"}`, allEvents, "initiated ringing busy", "busy", nil},
		{"no answer", `{"status": "no-answer"}`, nil, "no-answer", "no-answer", nil},
		{"failed", `{"status": "failed"}`, allEvents, "initiated failed", "failed", nil},
		{"canceled", `{"status": "canceled"}`, nil, "canceled", "canceled", nil},
		{"only ringing asked for", `{"status": "busy"}`, []string{"ringing"}, "ringing", "busy", nil},
		{"never ends", `{"status": "in-progress"}`, allEvents, "initiated ringing in-progress", "in-progress", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			rig, hook := start(t), newHook(t)
			rig.behave(`{"callback_delay_ms": 1, "default_call_outcome": ` + test.outcome + `}`)
			form := callForm(map[string]string{"StatusCallback": hook.url})
			if test.events != nil {
				form["StatusCallbackEvent"] = test.events
			}
			created := rig.mustCreate("/Calls.json", form)
			for i, want := range strings.Fields(test.told) {
				c := hook.next()
				if got, sequence := c.status(), c.params.Get("SequenceNumber"); got != want || sequence != fmt.Sprint(i) {
					t.Errorf("told %s as number %s, want %s as number %d", got, sequence, want, i)
				}
			}
			eventually(t, "the call is "+test.final, func() bool {
				return rig.call(created["sid"])["status"] == test.final
			})
			final := rig.call(created["sid"])
			if final["duration"] != test.duration {
				t.Errorf("the call took %v, want %v", final["duration"], test.duration)
			}
			if ended := final["end_time"] != nil; ended == (test.final == "in-progress") {
				t.Errorf("the end of a call that is %s: %v", test.final, final["end_time"])
			}
			hook.nothing()
		})
	}
}

func TestCallCallbackTellsWhatTwilioTells(t *testing.T) {
	for _, test := range []struct {
		name, outcome, detection string
		want                     map[string]string
	}{
		{"completed", `{"status": "completed", "duration_s": 61}`, "",
			map[string]string{"CallStatus": "completed", "CallDuration": "61", "Duration": "2"}},
		{"a person, as machine detection finds", `{"status": "completed", "duration_s": 60}`, "Enable",
			map[string]string{"CallStatus": "completed", "CallDuration": "60", "Duration": "1", "AnsweredBy": "human"}},
		{"a machine", `{"status": "completed", "answered_by": "machine_start"}`, "DetectMessageEnd",
			map[string]string{"CallStatus": "completed", "CallDuration": "12", "Duration": "1",
				"AnsweredBy": "machine_start"}},
		{"a machine that nobody looks for", `{"status": "completed", "answered_by": "machine_start"}`, "",
			map[string]string{"CallStatus": "completed", "CallDuration": "12", "Duration": "1"}},
		{"busy", `{"status": "busy"}`, "Enable",
			map[string]string{"CallStatus": "busy", "CallDuration": "0", "Duration": "0", "SipResponseCode": "486"}},
		{"no answer", `{"status": "no-answer"}`, "",
			map[string]string{"CallStatus": "no-answer", "CallDuration": "0", "Duration": "0", "SipResponseCode": "487"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			rig, hook := start(t), newHook(t)
			rig.behave(`{"callback_delay_ms": 1, "default_call_outcome": ` + test.outcome + `}`)
			sid := rig.makeCall(map[string]string{"StatusCallback": hook.url, "MachineDetection": test.detection})["sid"]

			c := hook.next()
			if at, err := time.Parse(time.RFC1123Z, c.params.Get("Timestamp")); err != nil || time.Since(at) > soon {
				t.Errorf("Timestamp is %q: %v", c.params.Get("Timestamp"), err)
			}
			want := map[string]string{
				"AccountSid": testAccount, "ApiVersion": "2010-04-01", "CallSid": sid.(string),
				"CallbackSource": "call-progress-events", "Called": someone, "Caller": goodSender,
				"Direction": "outbound-api", "From": goodSender, "SequenceNumber": "0", "To": someone,
			}
			for name, value := range test.want {
				want[name] = value
			}
			for name, value := range want {
				if c.params.Get(name) != value {
					t.Errorf("%s is %q, want %q", name, c.params.Get(name), value)
				}
			}
			for _, name := range []string{"AnsweredBy", "SipResponseCode", "ErrorCode"} {
				if _, ok := want[name]; !ok && c.params.Has(name) {
					t.Errorf("%s is told: %q", name, c.params.Get(name))
				}
			}
			var answeredBy any
			if word, ok := want["AnsweredBy"]; ok {
				answeredBy = word
			}
			if got := rig.call(sid)["answered_by"]; got != answeredBy {
				t.Errorf("answered_by is %v, want %v", got, answeredBy)
			}
		})
	}
}

func TestCallCallbackByGet(t *testing.T) {
	rig, hook := start(t), newHook(t)
	rig.behave(`{"callback_delay_ms": 1}`)
	rig.makeCall(map[string]string{"StatusCallback": hook.url, "StatusCallbackMethod": "GET"})
	if c := hook.next(); c.method != http.MethodGet || c.status() != "completed" || c.params.Get("notification") != "n-1" {
		t.Errorf("told %s %v", c.method, c.params)
	}
}

func TestApplicationTakesThePlaceOfTheCallback(t *testing.T) {
	rig, hook := start(t), newHook(t)
	rig.behave(`{"callback_delay_ms": 1}`)
	created := rig.makeCall(map[string]string{
		"Twiml": "", "ApplicationSid": "AP" + strings.Repeat("0", 32), "StatusCallback": hook.url,
	})
	eventually(t, "completed", func() bool { return rig.call(created["sid"])["status"] == "completed" })
	hook.nothing()
}

func TestUrlIsTakenBeforeTwiml(t *testing.T) {
	rig := start(t)
	rig.makeCall(map[string]string{"Url": "https://example.com/twiml"})
	rig.makeCall(nil)
	calls := rig.items("calls")
	if calls[0].Body != "https://example.com/twiml" || calls[1].Body != "<Response/>" {
		t.Errorf("the calls say %q and %q", calls[0].Body, calls[1].Body)
	}
}

func TestCallRefusals(t *testing.T) {
	rig := start(t)
	for _, test := range []struct {
		name    string
		changes map[string]string
		code    int
	}{
		{"no To", map[string]string{"To": ""}, 21201},
		{"no From", map[string]string{"From": ""}, 21213},
		{"nothing to say", map[string]string{"Twiml": ""}, 21205},
		{"a Url that is none", map[string]string{"Url": "twiml.xml"}, 21205},
		{"Twiml of 4001 characters", map[string]string{"Twiml": strings.Repeat("あ", 4001)}, 32018},
		{"To is no number", map[string]string{"To": "1234"}, 21211},
		{"From is a name", map[string]string{"From": "TODOKU"}, 21212},
		{"callback to a host with an underscore", map[string]string{"StatusCallback": "https://my_host.example/"}, 21609},
		{"an event that is a status", map[string]string{"StatusCallbackEvent": "busy"}, 21626},
		{"events joined by commas", map[string]string{"StatusCallbackEvent": "initiated,ringing"}, 21626},
		{"events joined by spaces", map[string]string{"StatusCallbackEvent": "initiated ringing"}, 21626},
		{"an unknown machine detection", map[string]string{"MachineDetection": "Yes"}, 20001},
		{"too long a time-out", map[string]string{"Timeout": "601"}, 20001},
		{"too many digits", map[string]string{"SendDigits": strings.Repeat("1", 33)}, 20001},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, body := rig.api("POST", "/Calls.json", callForm(test.changes))
			checkFailure(t, status, body, http.StatusBadRequest, test.code)
		})
	}
	rig.makeCall(map[string]string{"Twiml": strings.Repeat("あ", 4000)})
	rig.makeCall(map[string]string{"To": "sip:someone@example.com", "From": "client:todoku"})
	if calls := rig.items("calls"); len(calls) != 2 {
		t.Errorf("%d calls exist, want the good ones only", len(calls))
	}
}

func TestCallUpdates(t *testing.T) {
	for _, test := range []struct {
		name, outcome string // the call stays as the outcome says
		form          url.Values
		code          int // 0: 200
		final         string
	}{
		{"cancel a queued call", "queued", url.Values{"Status": {"canceled"}}, 0, "canceled"},
		{"cancel a ringing call", "ringing", url.Values{"Status": {"canceled"}}, 0, "canceled"},
		{"cancel an answered call", "in-progress", url.Values{"Status": {"canceled"}}, 0, "in-progress"},
		{"hang up an answered call", "in-progress", url.Values{"Status": {"completed"}}, 0, "completed"},
		{"hang up a ringing call", "ringing", url.Values{"Status": {"completed"}}, 0, "canceled"},
		{"hang up a call that has ended", "completed", url.Values{"Status": {"completed"}}, 21220, "completed"},
		{"cancel a call that has ended", "busy", url.Values{"Status": {"canceled"}}, 21220, "busy"},
		{"say something else", "in-progress", url.Values{"Twiml": {"<Response/>"}}, 0, "in-progress"},
		{"say something else too early", "ringing", url.Values{"Url": {"https://example.com/"}}, 21220, "ringing"},
		{"say two things", "in-progress", url.Values{"Url": {"https://example.com/"}, "Twiml": {"<Response/>"}},
			20001, "in-progress"},
		{"say too much", "in-progress", url.Values{"Twiml": {strings.Repeat("x", 4001)}}, 32018, "in-progress"},
		{"a status that is none", "in-progress", url.Values{"Status": {"busy"}}, 20001, "in-progress"},
	} {
		t.Run(test.name, func(t *testing.T) {
			rig, hook := start(t), newHook(t)
			rig.behave(`{"callback_delay_ms": 1, "default_call_outcome": {"status": "` + test.outcome + `"}}`)
			created := rig.makeCall(map[string]string{"StatusCallback": hook.url})
			eventually(t, "the call is "+test.outcome, func() bool {
				return rig.call(created["sid"])["status"] == test.outcome
			})
			status, body := rig.api("POST", "/Calls/"+created["sid"].(string)+".json", test.form)
			if test.code != 0 {
				checkFailure(t, status, body, http.StatusBadRequest, test.code)
			} else if status != http.StatusOK || body["status"] != test.final {
				t.Errorf("answered %d %v, want %s", status, body, test.final)
			}
			final := rig.call(created["sid"])
			if final["status"] != test.final {
				t.Errorf("the call is %v, want %s", final["status"], test.final)
			}
			switch test.final {
			case "canceled", "completed", "busy":
				if told := hook.statuses(1); told != test.final {
					t.Errorf("told %s, want %s", told, test.final)
				}
			}
			if test.code == 0 && test.final == "completed" && final["duration"] != "1" {
				t.Errorf("a call hung up at once took %v, want a begun second", final["duration"])
			}
			hook.nothing()
		})
	}
}

func TestDeleteCall(t *testing.T) {
	rig := start(t)
	rig.behave(`{"callback_delay_ms": 1, "outcomes": {"+15550100002": {"status": "ringing"}}}`)
	done, ringing := rig.makeCall(nil), rig.makeCall(map[string]string{"To": "+15550100002"})
	eventually(t, "completed", func() bool { return rig.call(done["sid"])["status"] == "completed" })
	if status, _ := rig.api("DELETE", "/Calls/"+done["sid"].(string)+".json", nil); status != http.StatusNoContent {
		t.Errorf("deleting is answered %d", status)
	}
	status, body := rig.api("DELETE", "/Calls/"+ringing["sid"].(string)+".json", nil)
	checkFailure(t, status, body, http.StatusBadRequest, 20009)
}
