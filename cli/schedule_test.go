package cli

import (
	"strings"
	"testing"
)

const morning = `{"id":7,"name":"朝のお知らせ","channel":"SMS","execution_time":"10:30:00","days_of_week":["MON","FRI"],"days_of_month":[],"cron":null,
"timezone":"Asia/Tokyo","starts_on":null,"ends_on":"2026-12-31","template_id":1,"list_id":2,"is_active":true,"pause_note":null,"catchup_window":"10m","note":null,
"next_runs":["2026-11-30T10:30:00+09:00","2026-12-04T10:30:00+09:00"],
"last_runs":[{"id":2,"scheduled_at":"2026-11-27T10:30:00+09:00","by_hand":false,"batch_id":null,"skip_reason":"list_empty","created_at":"2026-11-27T01:30:01Z"},
{"id":1,"scheduled_at":"2026-11-23T10:30:00+09:00","by_hand":true,"batch_id":"0190b0a0-0000-7000-8000-000000000000","skip_reason":null,"created_at":"2026-11-23T01:30:01Z"}],
"sync":{"state":"synced","error":null,"synced_at":"2026-11-20T01:00:00Z","schedule_id":"schedule/7","schedule_url":"http://127.0.0.1:8233/s"},
"created_at":"2026-11-20T01:00:00Z","updated_at":"2026-11-20T01:00:00Z"}`

func TestSchedulesAreListed(t *testing.T) {
	term := newTerminal(t)
	paused := strings.Replace(strings.Replace(morning, `"is_active":true`, `"is_active":false`, 1), `"last_runs":[`, `"last_runs":[],"x":[`, 1)
	standInAPI(t, says(200, `{"items":[`+morning+`,`+paused+`],"next_cursor":null}`))
	want := `ID  CHANNEL  RUNS              NEXT                            LAST                                                SYNC    NAME
7   SMS      10:30:00 MON,FRI  Mon 2026-11-30 10:30:00 +09:00  Fri 2026-11-27 10:30:00 +09:00 skipped: list_empty  synced  朝のお知らせ
7   SMS      10:30:00 MON,FRI  paused                          never                                               synced  朝のお知らせ
`
	if out := term.succeeds("schedule", "list"); out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	standInAPI(t, says(200, `{"items":[],"next_cursor":null}`))
	if out := term.succeeds("schedule", "list"); !strings.Contains(out, "todoku schedule create") {
		t.Errorf("an empty list says %q", out)
	}
}

func TestAScheduleIsShown(t *testing.T) {
	term := newTerminal(t)
	standInAPI(t, says(200, morning))
	want := `id         7
name       朝のお知らせ
state      active
channel    SMS
runs       10:30:00 MON,FRI, Asia/Tokyo
last day   2026-12-31
catch-up   10m
template   1
list       2
sync       synced
synced     2026-11-20 10:00:00 JST
Temporal   schedule/7
           http://127.0.0.1:8233/s
next runs  Mon 2026-11-30 10:30:00 +09:00
           Fri 2026-12-04 10:30:00 +09:00
last runs  Fri 2026-11-27 10:30:00 +09:00  skipped: list_empty
           Mon 2026-11-23 10:30:00 +09:00  sent by hand  batch 0190b0a0-0000-7000-8000-000000000000
`
	if out := term.succeeds("schedule", "show", "7"); out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}

func TestAScheduleWithAProblemSaysWhatItIs(t *testing.T) {
	term := newTerminal(t)
	ill := strings.Replace(morning, `"next_runs":`, `"problem":{"code":"list_empty","detail":"its list is empty: add members"},"next_runs":`, 1)
	standInAPI(t, says(200, ill))
	if out := term.succeeds("schedule", "show", "7"); !strings.Contains(out, "\nproblem    its list is empty: add members\n") {
		t.Errorf("shown is\n%s", out)
	}
	standInAPI(t, says(200, `{"items":[`+ill+`],"next_cursor":null}`))
	if out := term.succeeds("schedule", "list"); !strings.Contains(out, "10:30:00 +09:00 problem: list_empty") {
		t.Errorf("listed is\n%s", out)
	}
}

func TestAChangeNamesTheSchedulesThatItAffects(t *testing.T) {
	term := newTerminal(t)
	const affected = `"affected_schedules":[{"id":7,"name":"morning","problem":{"code":"members_lack_params","detail":"2 members do not fit"}}]`
	for name, try := range map[string]struct {
		answer string
		args   []string
	}{
		"a template": {`{"id":1,"version":2,` + affected + `}`, []string{"template", "update", "1", "--body", "{{place}}"}},
		"a member":   {`{"id":3,"to_national":"*","params":{},` + affected + `}`, []string{"list", "change", "1", "3", "--param", "name="}},
		"an import":  {`{"list_id":1,` + affected + `}`, []string{"list", "add", "1", "--to", "090-1234-5678"}},
	} {
		standInAPI(t, says(200, try.answer))
		if out := term.succeeds(try.args...); !strings.Contains(out, "warning: schedule 7 (morning): 2 members do not fit\n") {
			t.Errorf("%s prints\n%s", name, out)
		}
	}
}

func TestAScheduleIsCreated(t *testing.T) {
	term := newTerminal(t)
	requests := standInAPI(t, says(201, morning))
	out := term.succeeds("schedule", "create", "--name", "朝", "--channel", "sms", "--time", "10:30", "--days", "MON,FRI", "--template", "1", "--list", "2", "--paused")
	if !strings.Contains(out, "schedule 7 is created; next run: Mon 2026-11-30 10:30:00 +09:00") {
		t.Errorf("it prints %q", out)
	}
	body := (*requests)[0].Body
	if body["channel"] != "SMS" || body["execution_time"] != "10:30" || len(body["days_of_week"].([]any)) != 2 || body["is_active"] != false || body["template_id"] != 1. {
		t.Errorf("asked for %v", body)
	}
	if _, given := body["cron"]; given {
		t.Errorf("it asks for what nobody gave: %v", body)
	}
	for _, when := range [][]string{nil, {"--time", "10:30", "--cron", "0 9 1 * *"}} {
		args := append([]string{"schedule", "create", "--name", "x", "--channel", "sms", "--template", "1", "--list", "2"}, when...)
		if code, _, errOut := term.run(args...); code != exitUsage || !strings.Contains(errOut, "either --time TIME or --cron EXPRESSION") {
			t.Errorf("with %q: %d %s", when, code, errOut)
		}
	}
	if code, _, errOut := term.run("schedule", "create", "--name", "x"); code != exitUsage || !strings.Contains(errOut, "--channel, --template, --list") {
		t.Errorf("without flags: %d %s", code, errOut)
	}
}

func TestAnEditDependsOnWhatWasRead(t *testing.T) {
	term := newTerminal(t)
	read := says(200, morning)
	read.etag = `"3"`
	requests := standInAPI(t, read, says(200, morning))
	if out := term.succeeds("schedule", "edit", "7", "--time", "11:00", "--days", "", "--note", ""); !strings.Contains(out, "schedule 7 is changed") {
		t.Errorf("it prints %q", out)
	}
	change := (*requests)[1]
	if change.Method != "PATCH" || change.ifMatch != `"3"` || change.Body["execution_time"] != "11:00" || len(change.Body["days_of_week"].([]any)) != 0 || change.Body["note"] != "" {
		t.Errorf("asked for %+v", change)
	}
	standInAPI(t, read, refuses(412, `{"title":"It was changed in the meantime","status":412,"detail":"read it again","code":"etag_stale"}`))
	if code, _, errOut := term.run("schedule", "edit", "7", "--time", "11:00"); code != exitFailed || !strings.Contains(errOut, "read it again") {
		t.Errorf("a stale one: %d %s", code, errOut)
	}
	if code, _, _ := term.run("schedule", "edit", "7"); code != exitUsage {
		t.Errorf("without a change it ends with %d", code)
	}
}

func TestAScheduleIsPausedResumedTriggeredAndDeleted(t *testing.T) {
	term := newTerminal(t)
	requests := standInAPI(t, says(200, morning))
	term.succeeds("schedule", "pause", "7", "--note", "closed today")
	term.succeeds("schedule", "resume", "7")
	if first, second := (*requests)[0].Path, (*requests)[1].Path; first != "/api/v1/schedules/7/pause?note=closed+today" || second != "/api/v1/schedules/7/resume" {
		t.Errorf("asked %s and %s", first, second)
	}
	requests = standInAPI(t, says(202, `{"id":3,"scheduled_at":"2026-11-23T10:30:00+09:00","by_hand":true,"batch_id":"0190b0a0-0000-7000-8000-000000000000"}`))
	if out := term.succeeds("schedule", "trigger", "7"); !strings.Contains(out, "todoku batch show 0190b0a0") || (*requests)[0].key == "" {
		t.Errorf("it prints %q", out)
	}
	read := says(200, morning)
	read.etag = `"3"`
	requests = standInAPI(t, read, answer{status: 204})
	if out := term.succeeds("schedule", "delete", "7"); out != "schedule 7 is deleted\n" || (*requests)[1].ifMatch != `"3"` {
		t.Errorf("it prints %q", out)
	}
}
