package cli

import (
	"os"
	"strings"
	"testing"
)

const (
	patients  = `{"id":1,"name":"土曜日","members_count":2,"created_at":"2026-04-01T01:00:00Z","updated_at":"2026-04-01T01:00:00Z"}`
	patient   = `{"id":7,"to":"*********5678","to_national":"*********5678","params":{"time":"10:30","name":"佐藤"},"timezone":"Asia/Tokyo","locale":null,"created_at":"2026-04-01T01:00:00Z","updated_at":"2026-04-01T01:00:00Z"}`
	wasFilled = `{"list_id":1,"members_count":3,"added":2,"changed":0,"unchanged":1,"removed":0,"duplicates":0,"rejected_count":1,"rejected":[{"row":4,"code":"x","detail":"it is no number"}],"ignored_columns":["e-mail"]}`
)

func TestListsAreMadeShownRenamedAndDeleted(t *testing.T) {
	term := newTerminal(t)
	requests := standInAPI(t, says(201, patients), says(200, `{"items":[`+patients+`],"next_cursor":"a+b"}`), says(200, `{"items":[],"next_cursor":null}`),
		says(200, patients), says(200, patients), says(200, patients), answer{status: 204}, answer{status: 204})
	for _, step := range []struct{ args, says, asks string }{
		{"create --name 土曜日", "todoku list import 1 --csv FILE", "POST /api/v1/lists"},
		{"list --phone 5678", "1   2        土曜日", "GET /api/v1/lists?cursor=a%2Bb&limit=200&phone=5678"},
		{"show 1", "2026-04-01 10:00:00 JST", "GET /api/v1/lists/1"},
		{"rename 1 --name 土曜日", "list 1 is called 土曜日", "PATCH /api/v1/lists/1"},
		{"delete 1", "the list is deleted", "DELETE /api/v1/lists/1"},
		{"delete 1 --json", "{}", "DELETE /api/v1/lists/1"},
	} {
		if out := term.succeeds(append([]string{"list"}, strings.Fields(step.args)...)...); !strings.Contains(out, step.says) {
			t.Errorf("list %s says\n%s, want %q", step.args, out, step.says)
		}
		last := (*requests)[len(*requests)-1]
		if got := last.Method + " " + last.Path; got != step.asks {
			t.Errorf("list %s asked for %s, want %s", step.args, got, step.asks)
		}
	}
}

func TestAListIsFilledFromAFile(t *testing.T) {
	term := newTerminal(t)
	term.writeFile("p.csv", "to,name\n090-1234-5678,x\n")
	requests := standInAPI(t, says(200, wasFilled))
	out := term.succeeds("list", "import", "1", "--csv", "p.csv", "--replace")
	for _, want := range []string{"added            2", "unchanged        1", "row 4          it is no number", "ignored columns  e-mail", "members now      3"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if first := (*requests)[0]; first.Path != "/api/v1/lists/1/members?mode=replace" || first.file != "to,name\n090-1234-5678,x\n" {
		t.Errorf("asked %+v", first)
	}
}

func TestMembersAreFoundAddedChangedAndRemoved(t *testing.T) {
	term := newTerminal(t)
	requests := standInAPI(t, says(200, `{"items":[`+patient+`],"next_cursor":"abc"}`), says(200, wasFilled), says(200, patient), answer{status: 204})
	if out := term.succeeds("list", "members", "1", "--phone", "5678"); !strings.Contains(out, "name=佐藤 time=10:30") || !strings.Contains(out, "--cursor abc") {
		t.Errorf("the members are\n%s", out)
	}
	term.succeeds("list", "add", "1", "--to", "090-1234-5678", "--param", "name=佐藤", "--timezone", "Asia/Tokyo")
	if out := term.succeeds("list", "change", "1", "7", "--param", "name=佐藤", "--locale", ""); !strings.Contains(out, "member 7 is changed") {
		t.Errorf("changing says %q", out)
	}
	if out := term.succeeds("list", "remove", "1", "7"); out != "the member is off the list\n" {
		t.Errorf("removing says %q", out)
	}
	added := (*requests)[1].Body["members"].([]any)[0].(map[string]any)
	if added["to"] != "090-1234-5678" || added["timezone"] != "Asia/Tokyo" || added["params"].(map[string]any)["name"] != "佐藤" || len(added) != 3 {
		t.Errorf("added %v", added)
	}
	if changed := (*requests)[2]; changed.Path != "/api/v1/lists/1/members/7" || len(changed.Body) != 2 || changed.Body["locale"] != "" {
		t.Errorf("changed %+v", changed)
	}
}

func TestAnExportIsAFileOrNothing(t *testing.T) {
	term := newTerminal(t)
	file := answer{status: 200, contentType: "text/csv; charset=utf-8", body: "to,name\r\n090-1234-5678,x\r\n"}
	refusal := refuses(404, `{"type":"/docs#list_not_found","title":"No such list","status":404,"detail":"there is no such list","code":"list_not_found"}`)
	standInAPI(t, file, file)
	if out := term.succeeds("list", "export", "1"); out != file.body {
		t.Errorf("exported %q", out)
	}
	if out := term.succeeds("list", "export", "1", "--out", "p.csv"); out != "written to p.csv\n" {
		t.Errorf("it says %q", out)
	}
	if text, err := os.ReadFile("p.csv"); err != nil || string(text) != file.body {
		t.Errorf("the file is %q, error %v", text, err)
	}
	masked := file
	masked.body = "to,name\r\n*********5678,x\r\n"
	standInAPI(t, masked, refusal)
	if out := term.succeeds("list", "export", "1", "--out", "m.csv"); !strings.Contains(out, "its numbers are masked") {
		t.Errorf("of a file with masked numbers it says %q", out)
	}
	if code, _, errOut := term.run("list", "export", "2", "--out", "q.csv"); code != exitFailed || !strings.Contains(errOut, "there is no such list") {
		t.Errorf("it ends with %d and says %q", code, errOut)
	}
	for _, name := range []string{"q.csv", "q.csv.part", "p.csv.part"} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s is left", name)
		}
	}
}

func TestListUsage(t *testing.T) {
	term := newTerminal(t)
	for _, args := range [][]string{
		{"create"}, {"show"}, {"show", "x"}, {"rename", "1"}, {"import", "1"}, {"members", "1", "--limit", "0"}, {"add", "1"},
		{"add", "1", "--to", "1", "--param", "x"}, {"change", "1", "7"}, {"change", "1"}, {"remove", "1", "x"}, {"export", "1", "2"},
	} {
		if code, _, errOut := term.run(append([]string{"list"}, args...)...); code != exitUsage || errOut == "" {
			t.Errorf("%v ends with %d and says %q", args, code, errOut)
		}
	}
}
