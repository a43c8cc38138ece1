package cli

import (
	"strings"
	"testing"
)

const someCall = `{"id":"` + someID + `","state":"ABANDONED","from":"*********5678","to":"+815012345678","operator_sid":null,"operator_name":null,
"reason":"hangup","received_at":"2026-04-01T01:00:00Z","waiting_at":"2026-04-01T01:00:05Z","reserved_at":null,"answered_at":null,"ended_at":"2026-04-01T01:00:47Z",
"wait_seconds":42,"talk_seconds":null,"follow_up":"sms","follow_up_reason":null,"notification_id":"0190b0a0-0000-7000-8000-000000000009",
"follow_up_task_sid":null,"followed_up_at":null,"created_at":"2026-04-01T01:00:00Z","updated_at":"2026-04-01T01:00:50Z",
"call_sid":"CA00000000000000000000000000000001","task_sid":null,"workflow_id":"inbound/x","workflow_url":null}`

func TestCallsThatCameInAreListed(t *testing.T) {
	term := newTerminal(t)
	requests := standInAPI(t, says(200, `{"items":[`+someCall+`],"next_cursor":"abc"}`))
	want := `ID                                    STATE      REASON  FROM           CAME IN                  WAITED  OPERATOR  THEN
` + someID + `  ABANDONED  hangup  *********5678  2026-04-01 10:00:00 JST  42s               sms
There are more: repeat the command with --cursor abc
`
	if out := term.succeeds("inbound", "list", "--state", "abandoned", "--from", "2026-04-01 09:00"); out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	if path := (*requests)[0].Path; path != "/api/v1/inbound/calls?created_from=2026-04-01T09%3A00%3A00%2B09%3A00&limit=50&state=ABANDONED" {
		t.Errorf("asked for %s", path)
	}
	standInAPI(t, says(200, `{"items":[],"next_cursor":null}`))
	if out := term.succeeds("inbound", "list"); !strings.Contains(out, "no such calls") {
		t.Errorf("an empty list says %q", out)
	}
}

func TestACallIsShownWithItsTimeline(t *testing.T) {
	term := newTerminal(t)
	standInAPI(t, says(200, someCall), says(200, `{"items":[{"at":"2026-04-01T01:00:05Z","recorded_at":"2026-04-01T01:00:05Z","kind":"task.created","meaning":"waiting",
		"source":"webhook","operator_sid":null,"operator_name":"Mari","reservation_sid":null,"reason":"x"}]}`))
	out := term.succeeds("inbound", "show", someID)
	for _, want := range []string{"state         ABANDONED", "waited        42s", "then          sms", "2026-04-01 10:00:05.000  waiting  task.created  Mari, x"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if code, _, errOut := term.run("inbound", "show", "7"); code != exitUsage || !strings.Contains(errOut, "not the id of a call") {
		t.Errorf("a bad id ends with %d: %s", code, errOut)
	}
}

func TestTheQueueIsShown(t *testing.T) {
	term := newTerminal(t)
	requests := standInAPI(t, says(200, `{"now":{"received":1,"waiting":7,"reserved":2,"answered":40,"longest_wait_seconds":83.2},
		"lately":{"within_minutes":60,"calls":500,"offered":450,"handled":400,"abandoned":30,"timed_out":5,"callback_requested":15,"turned_away":50,"followed_up":95,
		"service_level":0.812,"service_threshold_seconds":20,"abandonment_rate":0.0667,"average_speed_of_answer_seconds":12.3,"average_talk_seconds":184},
		"operators":[{"sid":"WK00000000000000000000000000000001","name":"Mari","busy":true,"answered":9,"average_talk_seconds":200,"last_answered_at":"2026-04-01T01:00:00Z"}]}`))
	out := term.succeeds("taskrouter", "status")
	for _, want := range []string{
		"  wait                    7\n", "  longest wait            1m23.2s\n", "within 1h\n", "  service level           81.2 % within 20s\n",
		"Mari      busy   9         3m20s         2026-04-01 10:00:00 JST\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if path := (*requests)[0].Path; path != "/api/v1/inbound/statistics?within_minutes=60" {
		t.Errorf("asked for %s", path)
	}
	if code, _, _ := term.run("taskrouter", "status", "--within", "1s"); code != exitUsage {
		t.Errorf("a bad time ends with %d", code)
	}
}
