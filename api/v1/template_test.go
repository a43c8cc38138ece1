package v1_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/api/apitest"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

const templates = "/api/v1/templates"

// words writes values with a space between them.
func words(values ...any) string { return strings.TrimSuffix(fmt.Sprintln(values...), "\n") }

func TestANewBodyIsTheNextVersion(t *testing.T) {
	a := apitest.Start(t)
	created := a.Do("POST", templates, `{"name": " greeting ", "channel": "SMS", "body": "{{name}}様、{{time}}、{{name}}"}`)
	if created.Status != http.StatusCreated || created.Header.Get("Location") != templates+"/1" {
		t.Fatalf("created = %d %s", created.Status, created.Text)
	}
	if got := words(created.Body["id"], created.Body["name"], created.Body["version"], created.Body["params"]); got != "1 greeting 1 [name time]" {
		t.Errorf("created = %s", got)
	}
	for _, step := range []struct{ change, name, version, params string }{
		{`{"name": "hello"}`, "hello", "1", "[name time]"},
		{`{"body": "Hello"}`, "hello", "2", "[]"},
		{`{"body": "Hello"}`, "hello", "2", "[]"},
		{`{"body": "Hello {{x}}", "name": "hi"}`, "hi", "3", "[x]"},
		{`{}`, "hi", "3", "[x]"},
	} {
		changed := a.Do("PATCH", templates+"/1", step.change, "If-Match: *")
		if got, want := words(changed.Status, changed.Body["name"], changed.Body["version"], changed.Body["params"]), "200 "+step.name+" "+step.version+" "+step.params; got != want {
			t.Errorf("%s: %s, want %s", step.change, got, want)
		}
	}
	versions := a.Do("GET", templates+"/1/versions", "").Body["items"].([]any)
	if len(versions) != 3 || versions[0].(map[string]any)["body"] != "{{name}}様、{{time}}、{{name}}" {
		t.Errorf("versions = %v", versions)
	}
	if got := a.Do("GET", templates+"/1", "").Body["body"]; got != "Hello {{x}}" {
		t.Errorf("body = %v", got)
	}
}

func TestASendKeepsItsVersion(t *testing.T) {
	a := apitest.Start(t)
	a.Do("POST", templates, `{"name": "t", "channel": "SMS", "body": "{{name}}様"}`)
	id := uuid.MustParse(a.Do("POST", "/api/v1/notifications", `{"channel": "SMS", "to": "090-1234-5678", "template_id": 1, "params": {"name": "佐藤"}}`).Body["id"].(string))
	many := uuid.MustParse(wantBatch(t, a.Do("POST", batches+"?channel=SMS&template_id=1", "to,name\n09012345678,鈴木\n", asCSV), 1, 0, 0))
	a.Do("PATCH", templates+"/1", `{"body": "{{name}}さん"}`, "If-Match: *")
	a.Do("PATCH", templates+"/1", `{"archived": true}`, "If-Match: *")
	for owner, want := range map[store.Owner]string{
		{WorkflowID: "notification/" + id.String(), Single: &id}: "佐藤様",
		{WorkflowID: notify.ShardWorkflowID(many, 0)}:            "鈴木様",
	} {
		claims, err := a.Store.Claim(t.Context(), store.ClaimTerms{Owner: owner, Limit: 1, Lease: time.Minute})
		if err != nil || len(claims) != 1 {
			t.Fatal(len(claims), err)
		}
		if text, err := claims[0].Body(); err != nil || text != want {
			t.Errorf("the text is %q, error %v, want %q", text, err, want)
		}
	}
}

func TestTemplatesAreListedPageByPage(t *testing.T) {
	a := apitest.Start(t)
	for i := range 5 {
		a.Do("POST", templates, fmt.Sprintf(`{"name": "t%d", "channel": "SMS", "body": "x"}`, i))
	}
	var names []any
	pages, cursor := 0, ""
	for {
		page := a.Do("GET", templates+"?limit=2&cursor="+url.QueryEscape(cursor), "")
		for _, item := range page.Body["items"].([]any) {
			names = append(names, item.(map[string]any)["name"])
		}
		pages++
		next, more := page.Body["next_cursor"].(string)
		if !more {
			break
		}
		cursor = next
	}
	if got := words(pages, names); got != "3 [t0 t1 t2 t3 t4]" {
		t.Errorf("pages and names = %s", got)
	}
}

func TestAPreviewShowsWhatIsSentAndWhatItCosts(t *testing.T) {
	a := apitest.Start(t)
	for _, body := range []string{
		`{"name": "ja", "channel": "SMS", "body": "{{name}}様、ご予約は明日です。"}`,
		`{"name": "en", "channel": "SMS", "body": "Hello {{name}}"}`,
		`{"name": "call", "channel": "CALL", "body": "{{name}}様、<こんにちは>"}`,
	} {
		a.Do("POST", templates, body)
	}
	for _, test := range []struct {
		id, name string
		fields   []string
		want     string
	}{
		{"1", "山田", []string{"text", "encoding", "segments", "units", "characters"}, "[山田様、ご予約は明日です。 UCS-2 1 13 13]"},
		{"2", "Ann", []string{"text", "encoding", "segments", "units", "characters"}, "[Hello Ann GSM-7 1 9 9]"},
		{"3", "山田", []string{"text", "language", "voice", "encoding", "segments", "twiml_characters"}, "[山田様、<こんにちは> ja-JP Polly.Mizuki <nil> <nil> 87]"},
	} {
		preview := a.Do("POST", templates+"/"+test.id+"/render", `{"params": {"name": "`+test.name+`"}}`)
		var got []any
		for _, field := range test.fields {
			got = append(got, preview.Body[field])
		}
		if fmt.Sprint(got) != test.want {
			t.Errorf("template %s = %v, want %s\n%s", test.id, got, test.want, preview.Text)
		}
	}
}

func TestPlaceholdersHaveKinds(t *testing.T) {
	a := apitest.Start(t)
	created := a.Do("POST", templates, `{"name": "t", "channel": "SMS", "body": "{{name}}様、{{time}}", "kinds": {"time": "time"}}`)
	if got := words(created.Status, created.Body["kinds"]); got != "201 map[name:text time:time]" {
		t.Fatalf("created = %s", created.Text)
	}
	for _, step := range []struct{ change, version, kinds string }{
		{`{"kinds": {"time": "time"}}`, "1", "map[name:text time:time]"},
		{`{"body": "{{time}}、{{date}}"}`, "2", "map[date:text time:time]"},
		{`{"kinds": {"date": "date"}}`, "3", "map[date:date time:text]"},
		{`{"kinds": {}}`, "4", "map[date:text time:text]"},
		{`{"body": "{{time}}", "kinds": {"time": "time"}}`, "5", "map[time:time]"},
	} {
		changed := a.Do("PATCH", templates+"/1", step.change, "If-Match: *")
		if got, want := words(changed.Status, changed.Body["version"], changed.Body["kinds"]), "200 "+step.version+" "+step.kinds; got != want {
			t.Errorf("%s: %s, want %s", step.change, got, want)
		}
	}
	for value, status := range map[string]int{"10:30": 202, "25:00": 422} {
		answer := a.Do("POST", "/api/v1/notifications", `{"channel": "SMS", "to": "090-1234-5678", "template_id": 1, "params": {"time": "`+value+`"}}`)
		if answer.Status != status {
			t.Errorf("%s: answer = %d %s, want %d", value, answer.Status, answer.Text, status)
		}
	}
	sent := a.Do("POST", batches+"?channel=SMS&template_id=1", "to,time\n09012345678,10:30:61\n09012345679,10:30\n", asCSV)
	wantBatch(t, sent, 1, 0, 1)
	if got := fmt.Sprint(sent.Body["rejected"]); !strings.Contains(got, "param_kind") {
		t.Errorf("rejected is %s", got)
	}
}

func TestVersionsAreCompared(t *testing.T) {
	a := apitest.Start(t)
	a.Do("POST", templates, `{"name": "t", "channel": "SMS", "body": "{{name}}様、{{time}}です。"}`)
	a.Do("PATCH", templates+"/1", `{"body": "{{name}}様、{{time}}にどうぞ。{{place}}", "kinds": {"time": "time"}}`, "If-Match: *")
	a.Do("PATCH", templates+"/1", `{"body": "閉院しました。"}`, "If-Match: *")
	for query, want := range map[string]string{
		"?from=1&to=2": `1 2 [map[op:same text:{{name}}様、{{time}}] map[op:removed text:です] map[op:added text:にどうぞ] map[op:same text:。] map[op:added text:{{place}}]] [place] [] [map[from:text name:time to:time]]`,
		"?from=2&to=1": `2 1 [map[op:same text:{{name}}様、{{time}}] map[op:removed text:にどうぞ] map[op:added text:です] map[op:same text:。] map[op:removed text:{{place}}]] [] [place] [map[from:time name:time to:text]]`,
		"?from=3":      `3 3 [map[op:same text:閉院しました。]] [] [] []`,
		"":             `2 3 [map[op:removed text:{{name}}様、{{time}}にどうぞ] map[op:added text:閉院しました] map[op:same text:。] map[op:removed text:{{place}}]] [] [name time place] []`,
	} {
		diff := a.Do("GET", templates+"/1/diff"+query, "")
		if got := words(diff.Body["from"], diff.Body["to"], diff.Body["changes"], diff.Body["params_added"], diff.Body["params_removed"], diff.Body["kinds_changed"]); got != want {
			t.Errorf("%s:\n%s, want\n%s", query, got, want)
		}
	}
}

func TestAPreviewCanBeAnExampleOfAnyVersion(t *testing.T) {
	a := apitest.Start(t)
	a.Do("POST", templates, `{"name": "t", "channel": "SMS", "body": "{{name}} {{date}} {{time}} {{n}}", "kinds": {"date": "date", "time": "time", "n": "number"}}`)
	a.Do("PATCH", templates+"/1", `{"body": "{{name}}"}`, "If-Match: *")
	for body, want := range map[string]string{
		`{"example": true}`:                                           "name",
		`{"example": true, "version": 1}`:                             "name 2026-04-01 10:30 3",
		`{"example": true, "version": 1, "params": {"time": "9:00"}}`: "name 2026-04-01 9:00 3",
		`{"version": 2, "params": {"name": "Ann"}}`:                   "Ann",
	} {
		if preview := a.Do("POST", templates+"/1/render", body); preview.Body["text"] != want {
			t.Errorf("%s: %s, want %q", body, preview.Text, want)
		}
	}
}

func TestWhatWasUsedIsArchived(t *testing.T) {
	a := apitest.Start(t)
	for name, use := range map[string]func(id string) apitest.Answer{
		"unused": nil,
		"sent": func(id string) apitest.Answer {
			return a.Do("POST", "/api/v1/notifications", `{"channel": "SMS", "to": "090-1234-5678", "template_id": `+id+`}`)
		},
		"sent to many": func(id string) apitest.Answer {
			return a.Do("POST", batches+"?channel=SMS&template_id="+id, "to\n09012345678\n", asCSV)
		},
	} {
		t.Run(name, func(t *testing.T) {
			at := a.Do("POST", templates, fmt.Sprintf(`{"name": %q, "channel": "SMS", "body": "x"}`, name)).Header.Get("Location")
			id := strings.TrimPrefix(at, templates+"/")
			if use == nil {
				if gone := a.Do("DELETE", at, ""); gone.Status != http.StatusNoContent || gone.Text != "" {
					t.Errorf("deleted = %d %s", gone.Status, gone.Text)
				}
				if read := a.Do("GET", at, ""); read.Status != http.StatusNotFound {
					t.Errorf("read = %d %s", read.Status, read.Text)
				}
				return
			}
			if used := use(id); used.Status != http.StatusAccepted {
				t.Fatal(used.Text)
			}
			for range 2 {
				if archived := a.Do("DELETE", at, ""); archived.Status != http.StatusOK || archived.Body["archived_at"] == nil {
					t.Errorf("archived = %d %s", archived.Status, archived.Text)
				}
			}
			if again := use(id); again.Status != 422 || again.Code() != "template_archived" {
				t.Errorf("used again = %d %s", again.Status, again.Text)
			}
			if read := a.Do("GET", at, ""); read.Status != 200 || read.Body["body"] != "x" {
				t.Errorf("read = %d %s", read.Status, read.Text)
			}
			if changed := a.Do("PATCH", at, `{"body": "y"}`, "If-Match: *"); changed.Status != 409 || changed.Code() != "template_archived" {
				t.Errorf("changed = %d %s", changed.Status, changed.Text)
			}
			heir := a.Do("POST", templates, fmt.Sprintf(`{"name": %q, "channel": "SMS", "body": "z"}`, name))
			if heir.Status != http.StatusCreated {
				t.Errorf("its name = %d %s", heir.Status, heir.Text)
			}
			if back := a.Do("PATCH", at, `{"archived": false}`, "If-Match: *"); back.Status != 409 || back.Code() != "name_taken" {
				t.Errorf("back = %d %s", back.Status, back.Text)
			}
			if back := a.Do("PATCH", heir.Header.Get("Location"), `{"archived": true}`, "If-Match: *"); back.Status != 200 {
				t.Errorf("archived = %d %s", back.Status, back.Text)
			}
			if back := a.Do("PATCH", at, `{"archived": false, "body": "y"}`, "If-Match: *"); back.Status != 200 || back.Body["version"] != 2. || back.Body["archived_at"] != nil {
				t.Errorf("back = %d %s", back.Status, back.Text)
			}
			a.Do("PATCH", at, `{"archived": true}`, "If-Match: *")
			a.Do("PATCH", heir.Header.Get("Location"), `{"archived": false}`, "If-Match: *")
			if back := a.Do("PATCH", at, fmt.Sprintf(`{"archived": false, "name": "%s too"}`, name), "If-Match: *"); back.Status != 200 || back.Body["archived_at"] != nil {
				t.Errorf("back under another name = %d %s", back.Status, back.Text)
			}
			a.Do("PATCH", heir.Header.Get("Location"), `{"archived": true}`, "If-Match: *")
			if again := use(id); again.Status != http.StatusAccepted {
				t.Errorf("used again = %d %s", again.Status, again.Text)
			}
		})
	}
	archived := a.Do("GET", templates+"?archived=true", "").Body["items"].([]any)
	others := a.Do("GET", templates, "").Body["items"].([]any)
	if len(archived) != 2 || len(others) != 2 {
		t.Errorf("archived are %v, others are %v", archived, others)
	}
}
