package v1_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/api/apitest"
	v1 "github.com/todoku/todoku/api/v1"
	"github.com/todoku/todoku/store"
)

// scheduleNow reads a schedule, having looked for members who lack values as the worker does.
func scheduleNow(t *testing.T, a *apitest.API, at string) v1.Schedule {
	t.Helper()
	if _, err := a.Store.LookForMisfits(t.Context(), store.ScheduleUse{}, 10); err != nil {
		t.Fatal(err)
	}
	var s v1.Schedule
	if err := json.Unmarshal([]byte(a.Do("GET", at, "").Text), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func problemCode(s v1.Schedule) string {
	if s.Problem == nil {
		return "none"
	}
	return string(s.Problem.Code)
}

func TestAnEditedTemplateNamesTheSchedulesWhoseListLacksAValue(t *testing.T) {
	a := clinic(t)
	at := createSchedule(t, a, `, "execution_time": "10:30"`).Header.Get("Location")
	if s := scheduleNow(t, a, at); s.Problem != nil {
		t.Fatalf("the new schedule has the problem %+v", s.Problem)
	}
	edit := func(body string) string {
		return a.Do("PATCH", "/api/v1/templates/1", `{"body": "`+body+`"}`, "If-Match: *").Text
	}
	answer := edit("{{name}}様、{{place}}へ。")
	if !strings.Contains(answer, `"affected_schedules":[{"id":1,"name":"morning","problem":{"code":"members_lack_params","detail":"every member`) {
		t.Errorf("a template that needs what nobody has is answered %s", answer)
	}
	if s := scheduleNow(t, a, at); problemCode(s) != "members_lack_params" || len(s.NextRuns) == 0 {
		t.Errorf("the schedule has the problem %+v", s.Problem)
	}
	if answer := edit("{{name}}様"); strings.Contains(answer, "affected") {
		t.Errorf("a template that needs what everybody has is answered %s", answer)
	}
	if s := scheduleNow(t, a, at); s.Problem != nil {
		t.Errorf("the schedule still has the problem %+v", s.Problem)
	}
}

func TestAChangedListNamesTheSchedulesThatLeaveSomebodyOut(t *testing.T) {
	a := clinic(t)
	at := createSchedule(t, a, `, "execution_time": "10:30"`).Header.Get("Location")
	added := a.Do("POST", lists+"/1/members", `{"members": [{"to": "090-1234-5670"}]}`).Text
	if !strings.Contains(added, `"code":"members_lack_params"`) || !strings.Contains(added, "1 members of the list") {
		t.Errorf("an import with somebody who has no name is answered %s", added)
	}
	if s := scheduleNow(t, a, at); problemCode(s) != "members_lack_params" || !strings.Contains(s.Problem.Detail, "(row 3)") {
		t.Errorf("the schedule has the problem %+v", s.Problem)
	}
	for params, want := range map[string]bool{`{"name": "高橋"}`: false, `{"name": "　"}`: true} {
		changed := a.Do("PATCH", lists+"/1/members/3", `{"params": `+params+`}`).Text
		if got := strings.Contains(changed, `"affected_schedules":[{"id":1,"name":"morning"`); got != want {
			t.Errorf("a member with %s is answered %s", params, changed)
		}
		if got := problemCode(scheduleNow(t, a, at)); (got == "members_lack_params") != want {
			t.Errorf("with %s the schedule's problem is %s", params, got)
		}
	}
}

func TestAScheduleShowsWhatIsWrongBeforeItRuns(t *testing.T) {
	a := clinic(t)
	at := createSchedule(t, a, `, "execution_time": "10:30"`).Header.Get("Location")
	db, err := pgx.Connect(t.Context(), a.Settings.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.WithoutCancel(t.Context()))
	execute := func(sql string) {
		t.Helper()
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	for _, fault := range []struct{ sql, undo, want string }{
		{"UPDATE templates SET archived_at = now()", "UPDATE templates SET archived_at = NULL", "template_archived"},
		{"UPDATE lists SET members_count = 0", "UPDATE lists SET members_count = 2", "list_empty"},
		{"UPDATE schedules SET timezone = 'Asia/Nowhere'", "UPDATE schedules SET timezone = 'Asia/Tokyo'", "schedule_invalid"},
		{"UPDATE schedules SET channel = 'CALL'", "UPDATE schedules SET channel = 'SMS'", "schedule_invalid"},
	} {
		execute(fault.sql)
		if got := problemCode(scheduleNow(t, a, at)); got != fault.want {
			t.Errorf("after %s the problem is %s, want %s", fault.sql, got, fault.want)
		}
		execute(fault.undo)
		if got := problemCode(scheduleNow(t, a, at)); got != "none" {
			t.Errorf("after %s the problem is %s", fault.undo, got)
		}
	}
}
