package v1_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/api/apitest"
	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

const schedules = "/api/v1/schedules"

// clinic is an API with the template 1, which needs a name, and the list 1, whose two members have one.
func clinic(t *testing.T, environ ...string) *apitest.API {
	t.Helper()
	a := apitest.Start(t, environ...)
	for path, body := range map[string]string{
		"/api/v1/templates": `{"name": "reminder", "channel": "SMS", "body": "{{name}}様、ご予約は本日です。"}`,
		lists:               `{"name": "patients", "members": [{"to": "090-1234-5678", "params": {"name": "佐藤"}}, {"to": "090-1234-5679", "params": {"name": "鈴木"}}]}`,
	} {
		if created := a.Do("POST", path, body); created.Status != http.StatusCreated {
			t.Fatal(created.Text)
		}
	}
	return a
}

func scheduleBody(more string) string {
	return `{"name": "morning", "channel": "SMS", "template_id": 1, "list_id": 1` + more + `}`
}

func createSchedule(t *testing.T, a *apitest.API, more string) apitest.Answer {
	t.Helper()
	created := a.Do("POST", schedules, scheduleBody(more))
	if created.Status != http.StatusCreated || !strings.HasPrefix(created.Header.Get("Location"), schedules+"/") {
		t.Fatalf("created = %d %s", created.Status, created.Text)
	}
	return created
}

func ifMatch(answer apitest.Answer) string { return "If-Match: " + answer.Header.Get("ETag") }

func TestATagThatAProxyHasChangedIsUnderstood(t *testing.T) {
	a := clinic(t)
	created := createSchedule(t, a, `, "execution_time": "10:30"`)
	at := created.Header.Get("Location")
	for i, form := range []string{`W/"%d"`, `"%d-gzip"`, `W/"%d;br"`, `"99", W/"%d"`, `"x",*`, `abc, "%d"`} {
		tag := strings.ReplaceAll(form, "%d", strconv.Itoa(i+1))
		if changed := a.Do("PATCH", at, fmt.Sprintf(`{"note": "%d"}`, i), "If-Match: "+tag); changed.Status != http.StatusOK {
			t.Errorf("with %s = %d %s", tag, changed.Status, changed.Text)
		}
	}
	for _, tag := range []string{`7`, `"abc"`, `W/7`, `""`, `w/"7"`, `"7`} {
		refused := a.Do("PATCH", at, `{"note": "y"}`, "If-Match: "+tag)
		if refused.Status != http.StatusPreconditionFailed || !strings.Contains(refused.Text, "has no ETag that this API gives out") {
			t.Errorf("with %s = %d %s", tag, refused.Status, refused.Text)
		}
	}
}

func TestAScheduleWithoutARunBeforeItsLastDaySaysSo(t *testing.T) {
	a := clinic(t)
	today := time.Now().UTC()
	body := scheduleBody(fmt.Sprintf(`, "execution_time": "10:30", "timezone": "UTC", "days_of_month": [%d],
		"starts_on": "2020-01-01", "ends_on": "%s"`,
		today.AddDate(0, 0, -5).Day(), today.AddDate(0, 0, 3).Format(time.DateOnly)))
	refused := a.Do("POST", schedules, body)
	if refused.Status != http.StatusUnprocessableEntity || strings.Contains(refused.Text, "has passed") ||
		!strings.Contains(refused.Text, "no run left until its last day") {
		t.Errorf("answer = %d %s", refused.Status, refused.Text)
	}
	if over := a.Do("POST", schedules, scheduleBody(`, "execution_time": "10:30", "ends_on": "2020-01-31"`)); !strings.Contains(over.Text, "its last day has passed") {
		t.Errorf("of one that is over = %d %s", over.Status, over.Text)
	}
}

func TestAScheduleSaysWhenItRuns(t *testing.T) {
	a := clinic(t)
	created := createSchedule(t, a, `, "execution_time": "10:30", "days_of_week": ["fri", "MON"], "starts_on": "2099-04-01", "note": "for the front desk"`)
	if got := words(created.Header.Get("ETag"), created.Body["execution_time"], created.Body["days_of_week"], created.Body["timezone"], created.Body["catchup_window"],
		created.Body["is_active"], created.Body["note"]); got != `"1" 10:30:00 [MON FRI] Asia/Tokyo 10m true for the front desk` {
		t.Errorf("created = %s", got)
	}
	want := "[2099-04-03T10:30:00+09:00 2099-04-06T10:30:00+09:00 2099-04-10T10:30:00+09:00 2099-04-13T10:30:00+09:00 2099-04-17T10:30:00+09:00]"
	for _, read := range []apitest.Answer{created, a.Do("GET", created.Header.Get("Location"), "")} {
		if got := fmt.Sprint(read.Body["next_runs"]); got != want {
			t.Errorf("it runs at %s, want %s", got, want)
		}
	}
	sync := created.Body["sync"].(map[string]any)
	if got := words(sync["state"], sync["schedule_id"], sync["schedule_url"]); got != "pending schedule/1 http://ui.example.com/namespaces/default/schedules/schedule/1" {
		t.Errorf("its sync is %s", got)
	}
	a.Eventually("the sync is asked for", func() bool { return a.Workflows.Syncs() == 1 })
	if err := a.Store.ScheduleSynced(t.Context(), 1, 1); err != nil {
		t.Fatal(err)
	}
	if sync := a.Do("GET", schedules+"/1", "").Body["sync"].(map[string]any); sync["state"] != "synced" || sync["synced_at"] == nil {
		t.Errorf("its sync is %v", sync)
	}
	if err := a.Store.ScheduleNotSynced(t.Context(), 1, 1, "unknown time zone"); err != nil {
		t.Fatal(err)
	}
	if sync := a.Do("GET", schedules+"/1", "").Body["sync"].(map[string]any); sync["state"] != "failed" || sync["error"] != "unknown time zone" {
		t.Errorf("its sync is %v", sync)
	}
}

func TestSchedulesAreListedPageByPage(t *testing.T) {
	a := clinic(t)
	for i := range 3 {
		body := strings.Replace(scheduleBody(`, "cron": "0 9 * * *"`), "morning", fmt.Sprint("s", i), 1)
		if created := a.Do("POST", schedules, body); created.Status != http.StatusCreated {
			t.Fatal(created.Text)
		}
	}
	page := a.Do("GET", schedules+"?limit=2", "")
	next := a.Do("GET", schedules+"?limit=2&cursor="+page.Body["next_cursor"].(string), "")
	if len(page.Body["items"].([]any)) != 2 || len(next.Body["items"].([]any)) != 1 || next.Body["next_cursor"] != nil {
		t.Errorf("the pages are %s and %s", page.Text, next.Text)
	}
}

func TestAScheduleIsChangedByWhoHasReadIt(t *testing.T) {
	a := clinic(t)
	created := createSchedule(t, a, `, "execution_time": "10:30", "days_of_month": [1]`)
	at := created.Header.Get("Location")
	for header, want := range map[string]string{
		"": "428 if_match_missing", `If-Match: "7"`: "412 etag_stale", `If-Match: 1`: "412 etag_stale", `If-Match: W/"7"`: "412 etag_stale",
	} {
		for _, method := range []string{"PATCH", "DELETE"} {
			body := ""
			if method == "PATCH" {
				body = `{"execution_time": "11:00"}`
			}
			headers := []string{}
			if header != "" {
				headers = append(headers, header)
			}
			refused := a.Do(method, at, body, headers...)
			if got := words(refused.Status, refused.Code()); got != want {
				t.Errorf("%s with %q = %s, want %s", method, header, got, want)
			}
		}
	}
	for _, step := range []struct{ change, want string }{
		{`{"execution_time": "11:00"}`, `"2" 11:00:00 [] [1] <nil> Asia/Tokyo`},
		{`{"days_of_week": ["MON"]}`, `"3" 11:00:00 [MON] [] <nil> Asia/Tokyo`},
		{`{"cron": "5  4 * * *", "timezone": "Europe/London"}`, `"4" <nil> [] [] 5 4 * * * Europe/London`},
		{`{"execution_time": "09:15", "days_of_month": [31, 1]}`, `"5" 09:15:00 [] [1 31] <nil> Europe/London`},
		{`{"days_of_month": []}`, `"6" 09:15:00 [] [] <nil> Europe/London`},
	} {
		changed := a.Do("PATCH", at, step.change, ifMatch(a.Do("GET", at, "")))
		b := changed.Body
		if got := words(changed.Header.Get("ETag"), b["execution_time"], b["days_of_week"], b["days_of_month"], b["cron"], b["timezone"]); got != step.want {
			t.Errorf("%s: %s, want %s\n%s", step.change, got, step.want, changed.Text)
		}
	}
	all := a.Do("PATCH", at, `{"name": " evening ", "starts_on": "2098-01-01", "ends_on": "2099-01-01", "note": "x", "catchup_window": "1h30m", "is_active": false}`, "If-Match: *")
	b := all.Body
	if got := words(b["name"], b["starts_on"], b["ends_on"], b["note"], b["catchup_window"], b["is_active"], b["next_runs"]); got != "evening 2098-01-01 2099-01-01 x 1h30m false []" {
		t.Errorf("changed = %s", got)
	}
	none := a.Do("PATCH", at, `{"starts_on": "", "ends_on": "", "note": ""}`, ifMatch(all)).Body
	if got := words(none["starts_on"], none["ends_on"], none["note"]); got != "<nil> <nil> <nil>" {
		t.Errorf("without = %s", got)
	}
	if gone := a.Do("DELETE", at, "", `If-Match: "1", `+a.Do("GET", at, "").Header.Get("ETag")); gone.Status != http.StatusNoContent {
		t.Errorf("deleted = %d %s", gone.Status, gone.Text)
	}
	if again := a.Do("GET", at, ""); again.Status != 404 || again.Code() != "schedule_not_found" {
		t.Errorf("a deleted one = %d %s", again.Status, again.Text)
	}
	createSchedule(t, a, `, "execution_time": "10:30"`) // its name is free again
}

func TestAScheduleIsPausedWithANoteAndResumed(t *testing.T) {
	a := clinic(t)
	at := createSchedule(t, a, `, "execution_time": "10:30"`).Header.Get("Location")
	for _, step := range []struct{ do, want string }{
		{"/pause?note=closed+today", `200 "2" false closed today 0`},
		{"/pause?note=closed+today", `200 "2" false closed today 0`},
		{"/pause", `200 "3" false <nil> 0`},
		{"/resume", `200 "4" true <nil> 5`},
		{"/resume", `200 "4" true <nil> 5`},
	} {
		answer := a.Do("POST", at+step.do, "")
		runs, _ := answer.Body["next_runs"].([]any)
		if got := words(answer.Status, answer.Header.Get("ETag"), answer.Body["is_active"], answer.Body["pause_note"], len(runs)); got != step.want {
			t.Errorf("%s = %s, want %s\n%s", step.do, got, step.want, answer.Text)
		}
	}
}

func TestABodyThatNobodyWouldReadIsRefused(t *testing.T) {
	a := clinic(t)
	at := createSchedule(t, a, `, "execution_time": "10:30"`).Header.Get("Location")
	for _, action := range []string{"POST /pause", "POST /resume", "POST /trigger", "DELETE "} {
		method, path, _ := strings.Cut(action, " ")
		for _, body := range []string{`{"note": "closed today"}`, `[]`, "note=x"} {
			if refused := a.Do(method, at+path, body, "If-Match: *"); refused.Status != 422 || refused.Code() != "unknown_field" {
				t.Errorf("%s with %s = %d %s", action, body, refused.Status, refused.Text)
			}
		}
	}
	if paused := a.Do("POST", at+"/pause?note=closed+today", ` { } `); paused.Status != 200 || paused.Body["pause_note"] != "closed today" {
		t.Errorf("with an empty object = %d %s", paused.Status, paused.Text)
	}
}

func TestATriggerSendsOnceForEachKey(t *testing.T) {
	a := clinic(t)
	at := createSchedule(t, a, `, "execution_time": "10:30", "is_active": false`).Header.Get("Location")
	first := a.Do("POST", at+"/trigger", "", "Idempotency-Key: one")
	if first.Status != http.StatusAccepted || first.Body["by_hand"] != true || first.Body["skip_reason"] != nil {
		t.Fatalf("triggered = %d %s", first.Status, first.Text)
	}
	if again := a.Do("POST", at+"/trigger", "", "Idempotency-Key: one"); again.Text != first.Text || again.Header.Get("Idempotent-Replayed") != "true" ||
		again.Header.Get("Location") != first.Header.Get("Location") {
		t.Errorf("again = %d %s", again.Status, again.Text)
	}
	other := a.Do("POST", at+"/trigger", "")
	if other.Status != http.StatusAccepted || other.Body["batch_id"] == first.Body["batch_id"] {
		t.Errorf("another time = %d %s", other.Status, other.Text)
	}
	batch := a.Do("GET", first.Header.Get("Location"), "")
	if got := words(batch.Body["total"], batch.Body["name"], batch.Body["schedule_id"], batch.Body["template_version"]); got != "2 morning 1 1" {
		t.Errorf("its batch is %s", got)
	}
	a.Eventually("the batches are started", func() bool { return len(a.Workflows.Batches()) == 2 })
	sent := a.Do("GET", "/api/v1/notifications?schedule_id=1", "").Body["items"].([]any)
	if len(sent) != 4 || sent[0].(map[string]any)["schedule_id"] != 1. || sent[0].(map[string]any)["params"].(map[string]any)["name"] == nil {
		t.Errorf("its notifications are %v", sent)
	}
	if none := a.Do("GET", "/api/v1/notifications?schedule_id=2", "").Body["items"].([]any); len(none) != 0 {
		t.Errorf("those of another schedule are %v", none)
	}
	runs := a.Do("GET", at, "").Body["last_runs"].([]any)
	if len(runs) != 2 || runs[1].(map[string]any)["batch_id"] != first.Body["batch_id"] {
		t.Errorf("its last runs are %v", runs)
	}
}

func TestLastRunsShowWhatWasSkippedAndWhy(t *testing.T) {
	a := clinic(t)
	created := createSchedule(t, a, `, "execution_time": "10:30", "timezone": "America/New_York"`)
	due := time.Date(2020, 7, 1, 14, 30, 0, 0, time.UTC)
	sender := func(notify.Channel) (store.RunTerms, error) { return store.RunTerms{SenderID: 1, ShardSize: 1}, nil }
	if _, _, err := a.Store.RunSchedule(t.Context(), 1, due, sender); err != nil {
		t.Fatal(err)
	}
	run := a.Do("GET", created.Header.Get("Location"), "").Body["last_runs"].([]any)[0].(map[string]any)
	if got := words(run["scheduled_at"], run["by_hand"], run["batch_id"], run["skip_reason"]); got != "2020-07-01T10:30:00-04:00 false <nil> too_late" {
		t.Errorf("its last run is %s", got)
	}
}

func TestAScheduleThatCannotRunSaysWhy(t *testing.T) {
	a := clinic(t)
	at := createSchedule(t, a, `, "execution_time": "10:30"`).Header.Get("Location")
	if got := a.Do("DELETE", lists+"/1", ""); got.Status != http.StatusConflict || got.Code() != "list_in_use" || !strings.Contains(got.Text, "morning") {
		t.Errorf("deleting its list = %d %s", got.Status, got.Text)
	}
	for _, member := range membersOf(t, a.Do("GET", lists+"/1/members", "")) {
		a.Do("DELETE", fmt.Sprintf("%s/1/members/%v", lists, member["id"]), "")
	}
	refused := a.Do("POST", at+"/trigger", "")
	if got := words(refused.Status, refused.Code()); got != "409 schedule_cannot_run" || !strings.Contains(refused.Text, "list is empty") {
		t.Errorf("with an empty list = %d %s", refused.Status, refused.Text)
	}
	a.Do("PATCH", at, `{"is_active": false}`, "If-Match: *")
	if archived := a.Do("PATCH", "/api/v1/templates/1", `{"archived": true}`, "If-Match: *"); archived.Status != http.StatusOK {
		t.Fatal(archived.Text)
	}
	if refused = a.Do("POST", at+"/trigger", ""); refused.Code() != "schedule_cannot_run" || !strings.Contains(refused.Text, "archived") {
		t.Errorf("with an archived template = %d %s", refused.Status, refused.Text)
	}
	if runs := a.Do("GET", at, "").Body["last_runs"].([]any); len(runs) != 0 {
		t.Errorf("refused runs by hand are kept: %v", runs)
	}
}

func TestWhatHasBecomeWrongWithAScheduleKeepsNobodyFromAnotherChange(t *testing.T) {
	a := clinic(t)
	at := createSchedule(t, a, `, "execution_time": "10:30"`).Header.Get("Location")
	change := func(body string) string {
		answer := a.Do("PATCH", at, body, "If-Match: *")
		return words(answer.Status, answer.Code())
	}
	a.Do("PATCH", "/api/v1/templates/1", `{"body": "{{name}}様、{{place}}へ。"}`, "If-Match: *") // which the members lack
	for _, body := range []string{`{"note": "x"}`, `{"execution_time": "11:00"}`, `{"template_id": 1, "list_id": 1, "channel": "SMS"}`, `{"is_active": false}`, `{"is_active": true}`, `{"is_active": false}`} {
		if got := change(body); got != "200 " {
			t.Errorf("with members that lack a parameter, %s = %s", body, got)
		}
	}
	if archived := a.Do("PATCH", "/api/v1/templates/1", `{"archived": true}`, "If-Match: *"); archived.Status != 200 {
		t.Fatal(archived.Text)
	}
	for body, want := range map[string]string{`{"note": "y"}`: "200 ", `{"is_active": true}`: "422 template_archived"} {
		if got := change(body); got != want {
			t.Errorf("with an archived template, %s = %s, want %s", body, got, want)
		}
	}
	if resumed := a.Do("POST", at+"/resume", ""); resumed.Status != 409 || resumed.Code() != "schedule_cannot_run" {
		t.Errorf("resumed with an archived template = %d %s", resumed.Status, resumed.Text)
	}
	createList(t, a, `{"name": "nobody"}`)
	if got := change(`{"list_id": 2}`); got != "422 template_archived" {
		t.Errorf("another list for an archived template = %s", got)
	}
}

// scheduleCodes are answered about schedules only, and shown by TestBadSchedules and its neighbours.
var scheduleCodes = []problem.Code{
	problem.ScheduleNotFound, problem.ScheduleCannotRun, problem.IfMatchMissing, problem.ETagStale,
	problem.CatchupWindowInvalid, problem.NoteTooLong, problem.NoteControl, problem.MembersLackParams,
	notify.CodeTimeMissing, notify.CodeTimeInvalid, notify.CodeCronInvalid, notify.CodeWeekdayInvalid, notify.CodeMonthDay,
	notify.CodeTwoKindsOfDays, notify.CodeDateInvalid, notify.CodeEndBeforeStart, notify.CodeNeverRuns,
}

func TestBadSchedules(t *testing.T) {
	a := clinic(t)
	for path, body := range map[string]string{
		"/api/v1/templates": `{"name": "call", "channel": "CALL", "body": "x"}`,
		lists:               `{"name": "nameless", "members": [{"to": "090-1234-5678"}, {"to": "090-1234-5679", "params": {"name": "A"}}, {"to": "090-1234-5670", "params": {"name": "　"}}]}`,
	} {
		a.Do("POST", path, body)
	}
	createSchedule(t, a, `, "execution_time": "10:30"`)
	at := `, "execution_time": "10:30"`
	named := func(more string) string { return strings.Replace(scheduleBody(more), "morning", "other", 1) }
	seen := map[problem.Code]bool{problem.ScheduleNotFound: true, problem.ScheduleCannotRun: true, problem.IfMatchMissing: true, problem.ETagStale: true}
	for _, test := range []struct{ name, body, want string }{
		{"nothing", `{}`, "required at /name, required at /channel, required at /template_id, required at /list_id, execution_time_or_cron at /execution_time"},
		{"no time", named(``), "execution_time_or_cron at /execution_time"},
		{"a time and cron", named(at + `, "cron": "0 9 * * *"`), "execution_time_or_cron at /execution_time"},
		{"25:00", named(`, "execution_time": "25:00"`), "execution_time_invalid at /execution_time"},
		{"10:30:61", named(`, "execution_time": "10:30:61"`), "execution_time_invalid at /execution_time"},
		{"a number for a time", named(`, "execution_time": 1030`), "wrong_type at /execution_time"},
		{"an unknown zone", named(at + `, "timezone": "Mars/Olympus"`), "timezone_unknown at /timezone"},
		{"an unknown day", named(at + `, "days_of_week": ["MON", "NEVER"]`), "days_of_week_invalid at /days_of_week"},
		{"days in one text", named(at + `, "days_of_week": "MON"`), "wrong_type at /days_of_week"},
		{"days of the month in texts", named(at + `, "days_of_month": ["1"]`), "wrong_type at /days_of_month"},
		{"the 32nd", named(at + `, "days_of_month": [32]`), "days_of_month_invalid at /days_of_month"},
		{"days of two kinds", named(at + `, "days_of_month": [1], "days_of_week": ["MON"]`), "days_of_week_or_month at /days_of_month"},
		{"31 February", named(at + `, "starts_on": "2027-02-31"`), "date_invalid at /starts_on"},
		{"the end before the start", named(at + `, "starts_on": "2099-02-02", "ends_on": "2099-02-01"`), "ends_before_it_starts at /ends_on"},
		{"an end that has passed", named(at + `, "ends_on": "2020-02-01"`), "schedule_never_runs at /ends_on"},
		{"cron of six fields", named(`, "cron": "0 30 10 * * *"`), "cron_invalid at /cron"},
		{"cron on 31 February", named(`, "cron": "0 9 31 2 *"`), "schedule_never_runs at /cron"},
		{"an endless catch-up window", named(at + `, "catchup_window": "48h"`), "catchup_window_invalid at /catchup_window"},
		{"a catch-up window in words", named(at + `, "catchup_window": "ten minutes"`), "catchup_window_invalid at /catchup_window"},
		{"a long note", named(at + `, "note": "` + strings.Repeat("あ", 501) + `"`), "note_too_long at /note"},
		{"control characters in a note", named(at + `, "note": "a\u001bb"`), "note_has_control_characters at /note"},
		{"an unknown field", named(at + `, "cronn": "x"`), "unknown_field at /cronn"},
		{"an unknown template", strings.Replace(named(at), `"template_id": 1`, `"template_id": 99`, 1), "template_not_found at /template_id"},
		{"a template for another channel", strings.Replace(named(at), `"template_id": 1`, `"template_id": 2`, 1), "template_channel_mismatch at /template_id"},
		{"an unknown list", strings.Replace(named(at), `"list_id": 1`, `"list_id": 99`, 1), "list_not_found at /list_id"},
		{"a list that lacks parameters", strings.Replace(named(at), `"list_id": 1`, `"list_id": 2`, 1), "members_lack_params at /list_id"},
		{"a name that is taken", scheduleBody(at), "409 name_taken"},
	} {
		t.Run(test.name, func(t *testing.T) {
			answer := a.Do("POST", schedules, test.body)
			got := words(answer.Status, answer.Code())
			if errs, ok := answer.Body["errors"].([]any); ok && answer.Status == 422 {
				var all []string
				for _, e := range errs {
					detail := e.(map[string]any)
					seen[problem.Code(detail["code"].(string))] = true
					all = append(all, words(detail["code"], "at", detail["pointer"]))
				}
				got = strings.Join(all, ", ")
			}
			if got != test.want {
				t.Errorf("answer = %s, want %s\n%s", got, test.want, answer.Text)
			}
			for _, number := range []string{"12345678", "1234-567"} {
				if strings.Contains(answer.Text, number) {
					t.Error("the answer repeats a number")
				}
			}
		})
	}
	lacking := a.Do("POST", schedules, strings.Replace(named(at), `"list_id": 1`, `"list_id": 2`, 1))
	if !strings.Contains(lacking.Text, "2 members") || !strings.Contains(lacking.Text, "(row 1)") || !strings.Contains(lacking.Text, "(row 3)") || !strings.Contains(lacking.Text, "blank: name") {
		t.Errorf("it does not name the members: %s", lacking.Text)
	}
	for _, code := range scheduleCodes {
		if !seen[code] {
			t.Errorf("no test shows the code %s", code)
		}
	}
	for _, path := range []string{"/api/v1/notifications?schedule_id=x", schedules + "?cursor=x", schedules + "/1/pause?note=" + strings.Repeat("x", 501)} {
		method := "GET"
		if strings.Contains(path, "pause") {
			method = "POST"
		}
		if got := a.Do(method, path, ""); got.Status != 422 {
			t.Errorf("%s = %d %s", path, got.Status, got.Text)
		}
	}
	if got := a.Do("POST", schedules+"/1/pause?note=%ff", ""); got.Status != 400 || got.Code() != "parameter_not_utf8" {
		t.Errorf("a note that is no text = %d %s", got.Status, got.Text)
	}
	for _, method := range []string{"GET", "PATCH", "DELETE"} {
		body := ""
		if method == "PATCH" {
			body = "{}"
		}
		if got := a.Do(method, schedules+"/99", body, `If-Match: "1"`); got.Code() != "schedule_not_found" {
			t.Errorf("%s of one that there is not = %d %s", method, got.Status, got.Text)
		}
	}
	for _, action := range []string{"pause", "resume", "trigger"} {
		if got := a.Do("POST", schedules+"/99/"+action, ""); got.Code() != "schedule_not_found" {
			t.Errorf("%s of one that there is not = %d %s", action, got.Status, got.Text)
		}
	}
}

func TestASchedulesCallsNeedANumber(t *testing.T) {
	a := apitest.Start(t, "TWILIO_PHONE_NUMBER=", "TWILIO_MESSAGING_SERVICE_SID=MG"+strings.Repeat("0", 32))
	a.Do("POST", "/api/v1/templates", `{"name": "call", "channel": "CALL", "body": "x"}`)
	createList(t, a, `{"name": "l"}`)
	refused := a.Do("POST", schedules, strings.Replace(scheduleBody(`, "execution_time": "10:30"`), "SMS", "CALL", 1))
	if refused.Status != 422 || refused.Code() != "channel_not_configured" {
		t.Errorf("answer = %d %s", refused.Status, refused.Text)
	}
}

func TestOnlyOneOfTwoWhoChangeAtTheSameTimeDoes(t *testing.T) {
	a := clinic(t)
	created := createSchedule(t, a, `, "execution_time": "10:30"`)
	statuses := make(chan int, 8)
	for i := range cap(statuses) {
		go func() {
			statuses <- a.Do("PATCH", created.Header.Get("Location"), fmt.Sprintf(`{"execution_time": "11:%02d"}`, i), ifMatch(created)).Status
		}()
	}
	var all []int
	for range cap(statuses) {
		all = append(all, <-statuses)
	}
	slices.Sort(all)
	if all[0] != 200 || all[1] != 412 || all[len(all)-1] != 412 {
		t.Errorf("the answers are %v", all)
	}
}

func TestAChangeIsKeptWhileTemporalIsAway(t *testing.T) {
	a := clinic(t)
	a.Workflows.Down()
	createSchedule(t, a, `, "execution_time": "10:30"`)
	if due, err := a.Store.ScheduleSyncDue(t.Context(), 0); err != nil || !due {
		t.Errorf("a sync is due: %v, error %v", due, err)
	}
	if _, err := uuid.Parse(fmt.Sprint(a.Do("POST", schedules+"/1/trigger", "").Body["batch_id"])); err != nil {
		t.Errorf("a run by hand needs Temporal: %v", err)
	}
}

func TestATemplateOfAScheduleIsKept(t *testing.T) {
	a := clinic(t)
	at := createSchedule(t, a, `, "execution_time": "10:30"`).Header.Get("Location")
	for _, answer := range []apitest.Answer{a.Do("DELETE", templates+"/1", ""), a.Do("PATCH", templates+"/1", `{"archived": true}`, "If-Match: *")} {
		if answer.Status != http.StatusConflict || answer.Code() != "template_in_use" || !strings.Contains(answer.Text, "1 (morning)") {
			t.Errorf("answer = %d %s", answer.Status, answer.Text)
		}
	}
	if seen := a.Do("PATCH", templates+"/1", `{"body": "{{name}}さん", "name": "other", "archived": true}`, "If-Match: *"); seen.Code() != "template_in_use" {
		t.Errorf("with another text = %d %s", seen.Status, seen.Text)
	}
	if seen := a.Do("GET", templates+"/1", ""); words(seen.Body["name"], seen.Body["version"]) != "reminder 1" {
		t.Errorf("what was refused has changed it: %s", seen.Text)
	}
	a.Do("POST", at+"/pause", "")
	if archived := a.Do("DELETE", templates+"/1", ""); archived.Status != http.StatusOK {
		t.Errorf("once the schedule is off = %d %s", archived.Status, archived.Text)
	}
}

// What was asked for passed every check by the time the template was archived.
func TestWhatIsSentWithATemplateThatIsArchivedAtThatMomentIsRefused(t *testing.T) {
	for path, body := range map[string]string{
		schedules: scheduleBody(`, "execution_time": "10:30"`),
		batches:   `{"channel": "SMS", "template_id": 1, "recipients": [{"to": "090-1234-5678", "params": {"name": "佐藤"}}]}`,
	} {
		t.Run(path, func(t *testing.T) {
			a := clinic(t)
			db, err := pgx.Connect(t.Context(), a.Settings.DatabaseURL)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close(context.WithoutCancel(t.Context()))
			tx, err := db.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), `UPDATE templates SET archived_at = now()`); err != nil {
				t.Fatal(err)
			}
			answers := make(chan apitest.Answer, 1)
			go func() { answers <- a.Do("POST", path, body) }()
			a.Eventually("the request waits", func() (waits bool) {
				err := tx.QueryRow(t.Context(), `
					SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid)))`).Scan(&waits)
				return err == nil && waits
			})
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			answer := <-answers
			checkProblem(t, answer, http.StatusUnprocessableEntity, "template_archived at /template_id", map[problem.Code]bool{})
		})
	}
}

func TestALargeScheduleMayBeTriggeredForLong(t *testing.T) {
	t.Parallel()
	a := clinic(t)
	at := createSchedule(t, a, `, "execution_time": "10:30"`).Header.Get("Location")
	db, err := pgx.Connect(t.Context(), a.Settings.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.Background())
	busy, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := busy.Exec(t.Context(), `LOCK TABLE list_members`); err != nil {
		t.Fatal(err)
	}
	triggered := make(chan apitest.Answer, 1)
	go func() { triggered <- a.Do("POST", at+"/trigger", "") }()
	read := a.Do("GET", lists+"/1/members", "")
	if read.Status != http.StatusServiceUnavailable || read.Code() != "time_limit" || read.Header.Get("Retry-After") != "5" {
		t.Errorf("a read that waits longer than it may = %d %s, Retry-After %q", read.Status, read.Text, read.Header.Get("Retry-After"))
	}
	time.Sleep(time.Second) // the trigger began at the same time as the read
	if err := busy.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if run := <-triggered; run.Status != http.StatusAccepted {
		t.Errorf("the trigger = %d %s", run.Status, run.Text)
	}
}
