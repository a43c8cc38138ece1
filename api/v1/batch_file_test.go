package v1_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/text/encoding/japanese"

	"github.com/todoku/todoku/api/apitest"
)

func inJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestADryRunShowsTheEncodingAndTheFirstTexts(t *testing.T) {
	a := apitest.Start(t)
	byTemplate := batches + "?channel=SMS&dry_run=true&template_id=" + template(t, a, "こんにちは、{{name}}様")
	file := "to,name\nx,誰か\n09012345671,佐藤\n09012345671,佐藤\n09012345672,鈴木\n09012345673,高橋\n09012345674,田中\n"
	shiftJIS, err := japanese.ShiftJIS.NewEncoder().String(file)
	if err != nil {
		t.Fatal(err)
	}
	texts := `[{"row":2,"text":"こんにちは、佐藤様"},{"row":4,"text":"こんにちは、鈴木様"},{"row":5,"text":"こんにちは、高橋様"}]`
	for _, test := range []struct{ path, file, media, encoding, examples string }{
		{byTemplate, file, "text/csv", `"utf-8"`, texts},
		{byTemplate, shiftJIS, "text/csv", `"shift_jis"`, texts},
		{byTemplate, "to,name\n09012345671,P\xe9rez\n", "text/csv; charset=windows-1252", `"windows-1252"`, `[{"row":1,"text":"こんにちは、Pérez様"}]`},
		{batches + "?channel=CALL&dry_run=true&body=Hello", "to\n09012345671\n", "text/csv", `"us-ascii"`, `[{"language":"en-US","row":1,"text":"Hello"}]`},
	} {
		answer := a.Do("POST", test.path, test.file, "Content-Type: "+test.media)
		if got := inJSON(t, answer.Body["encoding"]); answer.Status != http.StatusOK || got != test.encoding {
			t.Errorf("%q is read in %s, want %s: %s", test.file, got, test.encoding, answer.Text)
		}
		if got := inJSON(t, answer.Body["examples"]); got != test.examples {
			t.Errorf("%q: the texts are %s, want %s", test.file, got, test.examples)
		}
	}
	if got := a.Log(); strings.Contains(got, "佐藤") || strings.Contains(got, "rez") {
		t.Error("the log repeats a text")
	}
}

func TestADryRunOfAListShowsTextsToThoseWhoMayReadIt(t *testing.T) {
	a := apitest.Start(t)
	list := strings.TrimPrefix(createList(t, a, `{"name": "l", "members": [{"to": "09012345678", "params": {"name": "佐藤"}}]}`), lists+"/")
	body := `{"channel": "SMS", "template_id": ` + template(t, a, "こんにちは、{{name}}様") + `, "list_id": ` + list + `}`
	a.AddKey("reads", "send", "read")
	a.AddKey("sends", "send")
	for key, want := range map[string]string{"reads": `[{"row":1,"text":"こんにちは、佐藤様"}]`, "sends": "null"} {
		answer := a.Do("POST", batches+"?dry_run=true", body, "Authorization: Bearer "+key)
		if got := inJSON(t, answer.Body["examples"]); answer.Status != http.StatusOK || got != want {
			t.Errorf("%s: %d %s", key, answer.Status, answer.Text)
		}
	}
}

func TestATextThatUsesNoColumnIsWarnedOf(t *testing.T) {
	a := apitest.Start(t)
	plain, filled := template(t, a, "明日は休診です。"), template(t, a, "{{name}}様、明日は休診です。")
	alike := template(t, a, "[[name]] {time} {other} {{name}}")
	list := strings.TrimPrefix(createList(t, a, `{"name": "l", "members": [{"to": "09012345678", "params": {"name": "佐藤"}}]}`), lists+"/")
	file := "to,name,time\n09012345678,佐藤,10:00\n"
	for _, test := range []struct{ query, body, media, want string }{
		{"&template_id=" + plain, file, "text/csv", "columns_unused"},
		{"&body=Hello", file, "text/csv", "columns_unused"},
		{"&body=Hello%20%7Bname%7D", file, "text/csv", "columns_unused placeholder_lookalike"},
		{"&template_id=" + alike, file, "text/csv", "placeholder_lookalike"},
		{"&template_id=" + filled, file, "text/csv", ""},
		{"&body=Hello", "to,timezone\n09012345678,Asia/Tokyo\n", "text/csv", ""},
		{"", `{"channel": "SMS", "template_id": ` + plain + `, "list_id": ` + list + `}`, "application/json", "columns_unused"},
		{"", `{"channel": "SMS", "template_id": ` + filled + `, "list_id": ` + list + `}`, "application/json", ""},
	} {
		path := batches + "?channel=SMS" + test.query
		if test.media == "application/json" {
			path = batches + "?dry_run=false"
		}
		for _, path := range []string{path, strings.Replace(path+"&dry_run=true", "dry_run=false&", "", 1)} {
			answer := a.Do("POST", path, test.body, "Content-Type: "+test.media)
			var codes []string
			warnings, _ := answer.Body["warnings"].([]any)
			for _, w := range warnings {
				codes = append(codes, w.(map[string]any)["code"].(string))
			}
			if got := strings.Join(codes, " "); answer.Status/100 != 2 || got != test.want {
				t.Errorf("%s %s: warnings %q, want %q: %s", path, test.body, got, test.want, answer.Text)
			}
		}
	}
}

func TestMembersCSVTakenAsABatchHasNoOtherParameters(t *testing.T) {
	a := apitest.Start(t)
	list := createList(t, a, `{"name": "l", "members": [{"to": "09012345678", "params": {"氏名": "=佐藤"}, "timezone": "Asia/Tokyo", "locale": "ja"}]}`)
	a.AddKey("everything", "send", "read", "manage", "pii")
	exported := a.Do("GET", list+"/members.csv", "", "Authorization: Bearer everything")
	query := batches + "?channel=SMS&template_id=" + template(t, a, "{{氏名}}様")
	answer := a.Do("POST", query, exported.Text, asCSV)
	id := wantBatch(t, answer, 1, 0, 0)
	if answer.Body["ignored_columns"] != nil || answer.Body["warnings"] != nil {
		t.Errorf("the columns of %q are not understood: %s", exported.Text, answer.Text)
	}
	if rows := rowsOf(t, a, id); rows[0].Params["氏名"] != "=佐藤" || len(rows[0].Params) != 1 {
		t.Errorf("the parameters are %v", rows[0].Params)
	}
	other := a.Do("POST", batches+"?channel=SMS&template_id="+template(t, a, "{{Locale}} {{timezone}}"), "to,Locale,timezone\n09012345678,a,b\n", asCSV)
	if rows := rowsOf(t, a, wantBatch(t, other, 1, 0, 0)); rows[0].Params["Locale"] != "a" || rows[0].Params["timezone"] != "b" {
		t.Errorf("a template that has these names gets %v", rows[0].Params)
	}
}

func TestTheSameFileInAnotherCharsetIsAnotherRequest(t *testing.T) {
	a := apitest.Start(t)
	query, key := batches+"?channel=SMS&template_id="+template(t, a, "{{name}}様"), "Idempotency-Key: once"
	file := "to,name\n09012345678,\xc0\xc8\n"
	for _, test := range []struct {
		charset string
		status  int
	}{{"windows-1252", 202}, {"windows-1251", 422}, {"WINDOWS-1252", 202}, {"", 422}} {
		media := "Content-Type: text/csv"
		if test.charset != "" {
			media += "; charset=" + test.charset
		}
		answer := a.Do("POST", query, file, media, key)
		if answer.Status != test.status || test.status == 422 && answer.Code() != "idempotency_key_reused" {
			t.Errorf("%q: %d %s, want %d", test.charset, answer.Status, answer.Text, test.status)
		}
	}
}

func TestRejectedRowsAreCountedByCode(t *testing.T) {
	a := apitest.Start(t)
	file := "to,name\n" + strings.Repeat("12,x\n", 150) + "09012345678,\n09012345678,佐藤\n09012345679,a,b\n"
	batch := batches + "?channel=SMS&template_id=" + template(t, a, "{{name}}様")
	const want, ofList = `{"param_missing":1,"phone_number_too_short":150,"row_column_count":1}`, `{"phone_number_too_short":150,"row_column_count":1}`
	check := func(what string, answer apitest.Answer, want string) {
		t.Helper()
		if got := inJSON(t, answer.Body["rejected_by_code"]); answer.Status/100 != 2 || got != want {
			t.Errorf("%s has %d %s, want %s", what, answer.Status, got, want)
		}
	}
	check("the dry run", a.Do("POST", batch+"&dry_run=true", file, asCSV), want)
	accepted := a.Do("POST", batch, file, asCSV)
	check("the answer", accepted, want)
	check("the batch", a.Do("GET", batches+"/"+accepted.Body["id"].(string), ""), want)
	list := createList(t, a, `{"name": "l"}`)
	check("the import", a.Do("POST", list+"/members", file, asCSV), ofList)
	check("an import without mistakes", a.Do("POST", list+"/members", "to,name\n09012345678,佐藤\n", asCSV), `{}`)
	check("a new list", a.Do("POST", lists, `{"name": "m", "members": [{"to": "12"}, {"to": "09012345678"}]}`), `{"phone_number_too_short":1}`)
}
