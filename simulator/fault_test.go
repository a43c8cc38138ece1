package simulator_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestFaults(t *testing.T) {
	for _, test := range []struct {
		kind                string
		status              int // 0: the connection is closed
		contentType, answer string
		accepted            bool
	}{
		{"accept_then_drop", 0, "", "", true},
		{"refuse", 0, "", "", false},
		{"http_500_after_accept", 500, "application/json", `"code":20500`, true},
		{"http_500", 500, "application/json", `"code":20500`, false},
		{"html_503_after_accept", 503, "text/html", "<html>", true},
		{"html_503", 503, "text/html", "<html>", false},
		{"rate_limited", 429, "application/json", `"code":20429`, false},
	} {
		for path, form := range map[string]string{
			"/Messages.json": "To=%2B15550100001&From=%2B15005550006&Body=hello",
			"/Calls.json":    "To=%2B15550100001&From=%2B15005550006&Twiml=%3CResponse%2F%3E",
		} {
			t.Run(test.kind+path, func(t *testing.T) {
				rig, hook := start(t), newHook(t)
				rig.behave(`{"callback_delay_ms": 1, "fault": {"kind": "` + test.kind + `", "count": 1, "retry_after_s": 7}}`)
				request := rig.request("POST", "/2010-04-01/Accounts/"+testAccount+path,
					form+"&StatusCallback="+strings.ReplaceAll(hook.url, "?", "%3F"))

				rig.api("GET", path, nil) // a fault waits for a create
				response, err := rig.client.Do(request)
				if test.status == 0 {
					if !errors.Is(err, io.EOF) {
						t.Errorf("the connection ends with %v, want EOF", err)
					}
				} else {
					if err != nil {
						t.Fatal(err)
					}
					body, _ := io.ReadAll(response.Body)
					response.Body.Close()
					if response.StatusCode != test.status || !strings.Contains(string(body), test.answer) ||
						response.Header.Get("Content-Type") != test.contentType {
						t.Errorf("answered %d %s %s", response.StatusCode, response.Header.Get("Content-Type"), body)
					}
					if got := response.Header.Get("Retry-After"); (got == "7") != (test.kind == "rate_limited") {
						t.Errorf("Retry-After is %q", got)
					}
				}
				created := len(rig.items("messages")) + len(rig.items("calls"))
				if (created == 1) != test.accepted {
					t.Errorf("%d were created", created)
				}
				if test.accepted {
					hook.next() // what was accepted is on its way, whatever the answer
				}
				if status, body := rig.do(rig.request("POST", request.URL.Path, form)); status != http.StatusCreated {
					t.Errorf("the create after the fault is answered %d %v", status, body)
				}
			})
		}
	}
}

func TestFaultWithoutCountLasts(t *testing.T) {
	rig := start(t)
	rig.behave(`{"fault": {"kind": "http_500"}}`)
	for range 20 {
		if status, _ := rig.api("POST", "/Messages.json", messageForm(nil)); status != 500 {
			t.Fatalf("answered %d", status)
		}
	}
	rig.behave(`{}`)
	rig.sendMessage(nil)
}

func TestFaultAfterAcceptWaitsForAGoodCreate(t *testing.T) {
	rig := start(t)
	rig.behave(`{"fault": {"kind": "http_500_after_accept", "count": 1}}`)
	if status, _ := rig.api("POST", "/Messages.json", messageForm(map[string]string{"To": "1"})); status != 400 {
		t.Errorf("a bad create is answered %d", status)
	}
	if status, _ := rig.api("POST", "/Messages.json", messageForm(nil)); status != 500 {
		t.Errorf("the good one is answered %d", status)
	}
	rig.sendMessage(nil)
}

func TestFaultCountsDown(t *testing.T) {
	rig := start(t)
	rig.behave(`{"fault": {"kind": "rate_limited", "count": 3}}`)
	rig.api("POST", "/Messages.json", messageForm(nil))
	_, behaviour := rig.control("GET", "behaviour", "")
	if fault := behaviour["fault"].(map[string]any); fault["count"] != 2.0 || fault["kind"] != "rate_limited" {
		t.Errorf("the fault is %v", fault)
	}
}

func TestTwilioRefusesWithTheCodeThatWasAskedFor(t *testing.T) {
	rig := start(t)
	rig.behave(`{"fault": {"kind": "twilio_error", "error_code": 63038, "http_status": 429, "count": 1}}`)
	status, body := rig.api("POST", "/Messages.json", messageForm(nil))
	if status != 429 || body["code"] != 63038.0 || body["status"] != 429.0 || body["message"] == "" || body["more_info"] == "" {
		t.Errorf("answered %d %v", status, body)
	}
	if n := len(rig.items("messages")); n != 0 {
		t.Errorf("%d were created", n)
	}
}

func TestAGatewayAnswersForTwilio(t *testing.T) {
	for name, test := range map[string]struct {
		fault, body string
		status      int
		created     int
	}{
		"with HTML":     {`"count": 1`, "Blocked by policy", 403, 0},
		"with nothing":  {`"http_status": 409, "body": "empty"`, "", 409, 0},
		"with {}":       {`"http_status": 400, "body": "{}", "forwarded": true`, "{}", 400, 1},
		"with null":     {`"http_status": 404, "body": "null", "forwarded": true`, "null", 404, 1},
		"to the letter": {`"http_status": 451, "body": "{\"code\":451}"`, `{"code":451}`, 451, 0},
	} {
		t.Run(name, func(t *testing.T) {
			rig := start(t)
			rig.behave(`{"fault": {"kind": "gateway", ` + test.fault + `}}`)
			response, err := rig.client.Do(rig.request("POST", "/2010-04-01/Accounts/"+testAccount+"/Messages.json",
				"To=%2B15550100001&From=%2B15005550006&Body=hello"))
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != test.status || !strings.Contains(string(body), test.body) || test.body == "" && len(body) > 0 {
				t.Errorf("answered %d %q, %v", response.StatusCode, body, err)
			}
			if response.Header.Get("Server") != "simulated-gateway" || response.Header.Get("Twilio-Request-Id") != "" {
				t.Errorf("the headers are %v", response.Header)
			}
			if n := len(rig.items("messages")); n != test.created {
				t.Errorf("%d were created, want %d", n, test.created)
			}
		})
	}
}

func TestAnErrorCodeMayComeWithDelivered(t *testing.T) {
	rig, hook := start(t), newHook(t)
	rig.behave(`{"callback_delay_ms": 1, "default_outcome": {"status": "delivered", "error_code": 30008}}`)
	rig.sendMessage(map[string]string{"StatusCallback": hook.url})
	if sent := hook.next(); sent.params.Get("ErrorCode") != "" {
		t.Errorf("the first callback is %v", sent.params)
	}
	if delivered := hook.next(); delivered.params.Get("MessageStatus") != "delivered" || delivered.params.Get("ErrorCode") != "30008" {
		t.Errorf("the last callback is %v", delivered.params)
	}
}
