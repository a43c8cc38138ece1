package cli

import (
	"strings"
	"testing"
)

func TestVersionsAreListedAndCompared(t *testing.T) {
	term := newTerminal(t)
	requests := standInAPI(t, says(200, `{"items":[`+reminder+`]}`),
		says(200, `{"template_id":1,"from":1,"to":2,"changes":[{"op":"same","text":"{{name}}様、"},{"op":"removed","text":"10"},{"op":"added","text":"11"},{"op":"same","text":"時"}],"params_added":["time"],"params_removed":[],"kinds_changed":[{"name":"name","from":"text","to":"date"}]}`))
	if out := term.succeeds("template", "versions", "1"); !strings.Contains(out, "2        2026-04-01 10:00:00 JST  {{name}}様、 ご予約です。") {
		t.Errorf("the versions are\n%s", out)
	}
	want := "version 1 to version 2\n\n{{name}}様、[-10-]{+11+}時\n\nplaceholders added  time\nkind changed        name: text to date\n"
	if out := term.succeeds("template", "diff", "1", "--from", "1"); out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	if got := (*requests)[1].Path; got != "/api/v1/templates/1/diff?from=1" {
		t.Errorf("asked for %s", got)
	}
}

func TestTemplatesAreDeletedArchivedAndRestored(t *testing.T) {
	term := newTerminal(t)
	archived := strings.Replace(reminder, `"id":1`, `"id":1,"archived_at":"2026-04-02T01:00:00Z"`, 1)
	requests := standInAPI(t, answer{status: 204}, says(200, archived),
		says(200, reminder), says(200, archived), says(200, archived), says(200, reminder), says(200, `{"items":[`+archived+`],"next_cursor":null}`), says(200, archived))
	for _, step := range []struct{ args, says string }{
		{"delete 1", "the template is deleted"},
		{"delete 1", "template 1 is archived"},
		{"archive 1", "todoku template restore 1"},
		{"restore 1", "template 1 can be sent with again"},
		{"list --archived", "リマインダー"},
		{"show 1", "2026-04-02 10:00:00 JST"},
	} {
		if out := term.succeeds(append([]string{"template"}, strings.Fields(step.args)...)...); !strings.Contains(out, step.says) {
			t.Errorf("template %s says\n%s, want %q", step.args, out, step.says)
		}
	}
	if got := (*requests)[5].Body["archived"]; got != false {
		t.Errorf("restored with archived %v", got)
	}
	if got := (*requests)[6].Path; got != "/api/v1/templates?archived=true&limit=200" {
		t.Errorf("asked for %s", got)
	}
}

func TestKindsAreGivenByFlags(t *testing.T) {
	term := newTerminal(t)
	requests := standInAPI(t, says(201, reminder))
	term.succeeds("template", "create", "--name", "x", "--channel", "sms", "--body", "{{time}}", "--kind", "time=time")
	term.succeeds("template", "update", "1", "--kind", "time=number")
	if got := (*requests)[0].Body["kinds"].(map[string]any)["time"]; got != "time" {
		t.Errorf("created with %v", got)
	}
	if got := (*requests)[2].Body; len(got) != 1 || got["kinds"].(map[string]any)["time"] != "number" {
		t.Errorf("updated with %v", got)
	}
	if code, _, errOut := term.run("template", "update", "1", "--kind", "time=clock"); code != exitUsage || !strings.Contains(errOut, "text, number, date or time") {
		t.Errorf("it ends with %d and says %q", code, errOut)
	}
}
