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
