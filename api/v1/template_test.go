package v1_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/todoku/todoku/api/apitest"
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
		changed := a.Do("PATCH", templates+"/1", step.change)
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
