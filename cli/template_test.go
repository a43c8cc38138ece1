package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

const reminder = `{"id":1,"name":"リマインダー","channel":"SMS","version":2,"body":"{{name}}様、\nご予約です。","params":["name"],"created_at":"2026-04-01T01:00:00Z","updated_at":"2026-04-01T01:00:00Z"}`

func TestTemplateListReadsEveryPage(t *testing.T) {
	term := newTerminal(t)
	pages := []answer{
		says(200, `{"items":[`+reminder+`],"next_cursor":"a+b"}`),
		says(200, `{"items":[{"id":2,"name":"call","channel":"CALL","version":1,"body":"hi","params":[],"created_at":"2026-04-01T01:00:00Z","updated_at":"2026-04-01T01:00:00Z"}],"next_cursor":null}`),
	}
	requests := standInAPI(t, pages...)
	want := `ID  CHANNEL  VERSION  NAME          BODY
1   SMS      2        リマインダー  {{name}}様、 ご予約です。
2   CALL     1        call          hi
`
	if out := term.succeeds("template", "list"); out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	if len(*requests) != 2 || (*requests)[1].Path != "/api/v1/templates?cursor=a%2Bb&limit=200" {
		t.Errorf("asked %+v", *requests)
	}
	standInAPI(t, pages...)
	var all struct{ Items []map[string]any }
	if err := json.Unmarshal([]byte(term.succeeds("template", "list", "--json")), &all); err != nil || len(all.Items) != 2 {
		t.Errorf("as JSON: %+v, %v", all, err)
	}
	standInAPI(t, says(200, `{"items":[],"next_cursor":null}`))
	if out := term.succeeds("template", "list"); !strings.Contains(out, "todoku template create") {
		t.Errorf("an empty list says %q", out)
	}
	if out := term.succeeds("template", "list", "--json"); out != "{\n  \"items\": []\n}\n" {
		t.Errorf("an empty list as JSON is %q", out)
	}
}

func TestTemplateCreateSaysHowToUseIt(t *testing.T) {
	term := newTerminal(t)
	requests := standInAPI(t, says(201, reminder))
	out := term.succeeds("template", "create", "--name", "リマインダー", "--channel", "sms", "--body", "{{name}}様")
	if !strings.Contains(out, "todoku send sms --to NUMBER --template 1 --param name=…") {
		t.Errorf("it prints %q", out)
	}
	if body := (*requests)[0].Body; body["channel"] != "SMS" || body["name"] != "リマインダー" || body["body"] != "{{name}}様" {
		t.Errorf("asked for %v", body)
	}
}

func TestTemplateIsShown(t *testing.T) {
	term := newTerminal(t)
	standInAPI(t, says(200, reminder))
	want := `id            1
name          リマインダー
channel       SMS
version       2
placeholders  name
created       2026-04-01 10:00:00 JST
updated       2026-04-01 10:00:00 JST

{{name}}様、
ご予約です。
`
	if out := term.succeeds("template", "show", "1"); out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}

func TestTemplateIsPreviewed(t *testing.T) {
	for answer, want := range map[string]string{
		`{"template_id":1,"version":2,"channel":"SMS","text":"佐藤様、\nご予約です。","characters":11,"encoding":"UCS-2","segments":1,"units":11}`: "佐藤様、\nご予約です。\n\n11 characters, UCS-2, 1 segment(s)\n",
		`{"template_id":1,"version":2,"channel":"CALL","text":"ご予約です。","characters":6,"language":"ja-JP","voice":"Polly.Mizuki"}`:        "ご予約です。\n\n6 characters, spoken in ja-JP by Polly.Mizuki\n",
	} {
		term := newTerminal(t)
		requests := standInAPI(t, says(200, answer))
		if out := term.succeeds("template", "render", "1", "--param", "name=佐藤"); out != want {
			t.Errorf("got\n%s\nwant\n%s", out, want)
		}
		if r := (*requests)[0]; r.Path != "/api/v1/templates/1/render" || r.Body["params"].(map[string]any)["name"] != "佐藤" {
			t.Errorf("asked %+v", r)
		}
	}
}
