package simulator_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestDefaultBehaviour(t *testing.T) {
	rig := start(t)
	want := map[string]any{
		"latency_ms": 0.0, "callback_delay_ms": 50.0, "callbacks": "ordered",
		"default_outcome":      map[string]any{"status": "delivered", "error_code": nil},
		"default_call_outcome": map[string]any{"status": "completed", "duration_s": 12.0, "answered_by": nil},
		"outcomes":             map[string]any{}, "fault": nil, "drain_per_second": 0.0, "clock_offset_ms": 0.0,
		"second_ms": 1000.0, "max_queue_size": 1000.0, "task_list_lag_ms": 0.0,
		"operators": map[string]any{
			"answer": 1.0, "reject": 0.0, "vanish": 0.0, "return_after_ms": nil, "answer_after_ms": []any{200.0, 200.0},
			"talk_ms": []any{3000.0, 3000.0}, "wrap_up_ms": []any{1000.0, 1000.0},
		},
	}
	check := func(when string) {
		t.Helper()
		if status, got := rig.control("GET", "behaviour", ""); status != http.StatusOK || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %d\n%v, want\n%v", when, status, got, want)
		}
	}
	check("at first")
	rig.behave(`{"latency_ms": 1, "callbacks": "lost", "fault": {"kind": "refuse"}}`)
	rig.behave(`{}`)
	check("once every key is left out")
}

func TestBehaviourIsShownAsItWasPut(t *testing.T) {
	rig := start(t)
	put := `{"latency_ms": 3, "callback_delay_ms": 4, "callbacks": "shuffled",
		"default_outcome": {"status": "failed", "error_code": 30008},
		"default_call_outcome": {"status": "busy", "duration_s": 0, "answered_by": "fax"},
		"outcomes": {"+15550100001": {"status": "undelivered", "error_code": 30003}},
		"fault": {"kind": "rate_limited", "count": 10, "retry_after_s": 1},
		"second_ms": 20, "max_queue_size": 5, "task_list_lag_ms": 6, "drain_per_second": 2.5, "clock_offset_ms": -4,
		"operators": {"answer": 8, "reject": 1, "vanish": 1, "return_after_ms": 50, "answer_after_ms": [1, 2],
			"talk_ms": [3, 4], "wrap_up_ms": [5, 6]}}`
	status, answered := rig.control("PUT", "behaviour", put)
	_, shown := rig.control("GET", "behaviour", "")
	var want map[string]any
	if err := json.Unmarshal([]byte(put), &want); err != nil {
		t.Fatal(err)
	}
	if status != http.StatusOK || fmt.Sprint(answered) != fmt.Sprint(want) || fmt.Sprint(shown) != fmt.Sprint(want) {
		t.Errorf("answered %d %v\nshown %v\nwant %v", status, answered, shown, want)
	}
}

func TestBadBehaviourChangesNothing(t *testing.T) {
	rig := start(t)
	rig.behave(`{"latency_ms": 1}`)
	for _, test := range []struct{ put, says string }{
		{``, "a JSON object is missing"},
		{`{`, "unexpected EOF"},
		{`[]`, "it must be an object, not array"},
		{`{} {}`, "something after"},
		{`{"delay": 1}`, `unknown field "delay"`},
		{`{"latency_ms": "1"}`, "latency_ms must be an integer, not string"},
		{`{"latency_ms": 1.5}`, "latency_ms must be an integer"},
		{`{"latency_ms": -1}`, "latency_ms must not be negative"},
		{`{"callback_delay_ms": -1}`, "callback_delay_ms must not be negative"},
		{`{"callbacks": "never"}`, "callbacks must be one of ordered, reversed"},
		{`{"callbacks": 1}`, "callbacks must be a string, not number"},
		{`{"default_outcome": "delivered"}`, "default_outcome must be an object, not string"},
		{`{"default_outcome": {"status": "busy"}}`, "default_outcome: status must be one of queued, sent"},
		{`{"default_outcome": {"error_code": 30003}}`, "error_code goes with"},
		{`{"default_outcome": {"status": "failed", "error_code": "30003"}}`, "error_code must be an integer"},
		{`{"default_outcome": {"duration_s": 3}}`, `unknown field "duration_s"`},
		{`{"default_call_outcome": {"status": "delivered"}}`, "default_call_outcome: status must be one of queued, ringing"},
		{`{"default_call_outcome": {"duration_s": -1}}`, "duration_s must not be negative"},
		{`{"default_call_outcome": {"answered_by": "dog"}}`, "answered_by must be null or one of human"},
		{`{"outcomes": {"+15550100001": {"status": "gone"}}}`, `outcomes of "+15550100001": status must be one of`},
		{`{"outcomes": {"+15550100001": {"state": "sent"}}}`, `unknown field "state"`},
		{`{"outcomes": {"+15550100001": {"status": "delivered", "error_code": 1}}}`, "error_code goes with"},
		{`{"outcomes": {"+15550100001": {"status": "completed", "duration_s": -1}}}`, "duration_s must not be negative"},
		{`{"outcomes": []}`, "outcomes must be an object"},
		{`{"fault": {"kind": "flood"}}`, "fault: kind must be one of accept_then_drop, refuse"},
		{`{"fault": {"kind": "refuse", "count": -1}}`, "count must not be negative"},
		{`{"fault": {"kind": "refuse", "retry_after_s": -1}}`, "retry_after_s must not be negative"},
		{`{"fault": {"kind": "refuse", "every": 2}}`, `unknown field "every"`},
		{`{"fault": {"kind": "twilio_error"}}`, "error_code goes with the kind twilio_error"},
		{`{"fault": {"kind": "twilio_error", "error_code": 404}}`, "error_code must have five digits"},
		{`{"fault": {"kind": "twilio_error", "error_code": 63038, "http_status": 200}}`, "http_status of twilio_error must be at least 400"},
		{`{"fault": {"kind": "gateway", "error_code": 63038}}`, "error_code goes with the kind twilio_error"},
		{`{"fault": {"kind": "gateway", "http_status": 99}}`, "http_status must be between 200 and 599"},
		{`{"fault": {"kind": "refuse", "http_status": 403}}`, "http_status goes with the kinds"},
		{`{"fault": {"kind": "refuse", "forwarded": true}}`, "body and forwarded go with the kind gateway"},
		{`{"second_ms": 0}`, "second_ms must be at least 1"},
		{`{"max_queue_size": -1}`, "max_queue_size must not be negative"},
		{`{"task_list_lag_ms": -1}`, "task_list_lag_ms must not be negative"},
		{`{"operators": {"answer": 0}}`, "operators: one of answer, reject and vanish must be over 0"},
		{`{"operators": {"reject": -1}}`, "operators: answer, reject and vanish must not be negative"},
		{`{"operators": {"return_after_ms": -1}}`, "operators: return_after_ms must not be negative"},
		{`{"operators": {"talk_ms": "long"}}`, "a span of milliseconds is a number"},
		{`{"operators": {"talk_ms": [5, 4]}}`, "nor its most less than its least"},
	} {
		t.Run(test.put, func(t *testing.T) {
			status, body := rig.control("PUT", "behaviour", test.put)
			said, _ := body["error"].(string)
			if status != http.StatusBadRequest || !strings.HasPrefix(said, "behaviour: ") || !strings.Contains(said, test.says) {
				t.Errorf("answered %d %q, want 400 and %q", status, said, test.says)
			}
		})
	}
	if _, shown := rig.control("GET", "behaviour", ""); shown["latency_ms"] != 1.0 {
		t.Errorf("the behaviour is now %v", shown)
	}
}

func TestOutcomeOfANumberIsForTheChannelThatKnowsItsStatus(t *testing.T) {
	rig := start(t)
	rig.behave(`{"callback_delay_ms": 0, "outcomes": {
		"+15550100001": {"status": "undelivered", "error_code": 30003},
		"+15550100002": {"status": "no-answer"},
		"+15550100003": {"status": "failed"},
		"+15550100004": {"status": "completed", "duration_s": 3}}}`)
	for _, test := range []struct{ to, message, call, duration string }{
		{"+15550100001", "undelivered", "completed", "12"},
		{"+15550100002", "delivered", "no-answer", "<nil>"},
		{"+15550100003", "failed", "failed", "<nil>"},
		{"+15550100004", "delivered", "completed", "3"},
	} {
		changes := map[string]string{"To": test.to}
		message, call := rig.sendMessage(changes)["sid"], rig.makeCall(changes)["sid"]
		eventually(t, test.to+": "+test.message+" and "+test.call, func() bool {
			ended := rig.call(call)
			return rig.message(message)["status"] == test.message && ended["status"] == test.call &&
				fmt.Sprint(ended["duration"]) == test.duration
		})
	}
}

func TestUnknownControl(t *testing.T) {
	rig := start(t)
	for _, test := range [][2]string{{"GET", "reset"}, {"POST", "stats"}, {"GET", "nothing"}, {"GET", ""}} {
		status, body := rig.control(test[0], test[1], "")
		if said, _ := body["error"].(string); status != http.StatusNotFound || !strings.Contains(said, "POST reset") {
			t.Errorf("%v is answered %d %v", test, status, body)
		}
	}
}
