package v1_test

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/text/encoding/japanese"

	"github.com/todoku/todoku/api/apitest"
	"github.com/todoku/todoku/api/problem"
)

const lists = "/api/v1/lists"

// createList makes a list and returns its address.
func createList(t *testing.T, a *apitest.API, body string) string {
	t.Helper()
	created := a.Do("POST", lists, body)
	if created.Status != http.StatusCreated || !strings.HasPrefix(created.Header.Get("Location"), lists+"/") {
		t.Fatalf("created = %d %s", created.Status, created.Text)
	}
	return created.Header.Get("Location")
}

// wantReport checks what an import says that it did.
func wantReport(t *testing.T, answer apitest.Answer, want string) {
	t.Helper()
	var got []string
	for _, name := range []string{"added", "changed", "unchanged", "removed", "duplicates", "rejected_count", "members_count"} {
		got = append(got, fmt.Sprint(answer.Body[name]))
	}
	if answer.Status != http.StatusOK || strings.Join(got, " ") != want {
		t.Errorf("added, changed, unchanged, removed, duplicates, rejected, members = %v, want %s\n%s", got, want, answer.Text)
	}
}

func membersOf(t *testing.T, answer apitest.Answer) (members []map[string]any) {
	t.Helper()
	if answer.Status != http.StatusOK {
		t.Fatal(answer.Text)
	}
	for _, item := range answer.Body["items"].([]any) {
		members = append(members, item.(map[string]any))
	}
	return members
}

func TestAListIsMadeReadRenamedAndDeleted(t *testing.T) {
	a := apitest.Start(t)
	created := a.Do("POST", lists, `{"members": [{"to": "090-1234-5678", "params": {"name": "佐藤"}, "timezone": "Asia/Tokyo", "locale": "ja"}, {"to": "12"}], "name": " 土曜日 "}`)
	if got := words(created.Status, created.Body["name"], created.Body["members_count"], created.Body["rejected_count"]); got != "201 土曜日 1 1" {
		t.Fatalf("created = %s: %s", got, created.Text)
	}
	at := created.Header.Get("Location")
	if empty := createList(t, a, `{"name": "empty"}`); empty == at {
		t.Error("two lists have one address")
	}
	if got := a.Do("PATCH", at, `{"name": "Saturday"}`, "If-Match: *"); got.Status != 200 || got.Body["name"] != "Saturday" {
		t.Errorf("renamed = %s", got.Text)
	}
	if got := a.Do("GET", at, ""); got.Body["name"] != "Saturday" || got.Body["members_count"] != 1. {
		t.Errorf("read = %s", got.Text)
	}
	page := a.Do("GET", lists+"?limit=1", "")
	next := a.Do("GET", lists+"?limit=1&cursor="+url.QueryEscape(page.Body["next_cursor"].(string)), "")
	if got := words(len(membersOf(t, page)), membersOf(t, next)[0]["name"], next.Body["next_cursor"]); got != "1 empty <nil>" {
		t.Errorf("the pages are %s", got)
	}
	if found := membersOf(t, a.Do("GET", lists+"?phone=090-1234-5678", "")); len(found) != 1 || found[0]["name"] != "Saturday" {
		t.Errorf("the lists with the number are %v", found)
	}
	if got := a.Do("DELETE", at, ""); got.Status != http.StatusNoContent {
		t.Errorf("deleted = %d %s", got.Status, got.Text)
	}
	if got := a.Do("GET", at+"/members", ""); got.Status != 404 || got.Code() != "list_not_found" {
		t.Errorf("its members = %d %s", got.Status, got.Text)
	}
}

func TestAFileIsImportedAndReported(t *testing.T) {
	a := apitest.Start(t)
	at := createList(t, a, `{"name": "l"}`) + "/members"
	file := "to,氏名,Timezone,e-mail\r\n090-1234-5678,佐藤,Asia/Tokyo,x\r\n(03) 1234-5678,鈴木,,x\r\n12,x,,x\r\n+81 90 1234 5678,佐藤,,x\r\n09012345678,花子,Mars/Base,x\r\n09012345678,花子,,x\r\n09012345677,too,many,cells,here\r\n"
	shiftJIS, err := japanese.ShiftJIS.NewEncoder().String(file)
	if err != nil {
		t.Fatal(err)
	}
	first := a.Do("POST", at, shiftJIS, asCSV)
	wantReport(t, first, "3 0 0 0 1 3 3")
	var rejected []string
	for _, r := range first.Body["rejected"].([]any) {
		r := r.(map[string]any)
		rejected = append(rejected, words(r["row"], r["code"]))
	}
	if got := strings.Join(rejected, ", "); got != "3 phone_number_too_short, 5 timezone_unknown, 7 row_column_count" {
		t.Errorf("rejected: %s", got)
	}
	if !strings.Contains(first.Text, "timezone: it is no zone") {
		t.Errorf("the report does not say what is wrong with row 5: %s", first.Text)
	}
	if got := words(first.Body["ignored_columns"]); got != "[e-mail]" {
		t.Errorf("ignored columns are %s", got)
	}
	wantReport(t, a.Do("POST", at+"?mode=add", file, asCSV), "0 0 3 0 1 3 3")
	wantReport(t, a.Do("POST", at+"?mode=replace", "to,氏名,locale\n09012345678,佐藤次郎,ja\n09012345678,花子,ja_JP\n", asCSV), "0 2 0 1 0 0 2")
	wantReport(t, a.Do("POST", at, `{"members": [{"to": "09012345678", "params": {"氏名": "花子"}, "locale": "en"}, {"to": "09012345679"}]}`), "1 1 0 0 0 0 3")

	members := membersOf(t, a.Do("GET", at, ""))
	var seen []string
	for _, m := range members {
		seen = append(seen, words(m["to"], m["params"], m["timezone"], m["locale"]))
	}
	if got, want := strings.Join(seen, "; "), "*********5678 map[氏名:佐藤次郎] <nil> ja; *********5678 map[氏名:花子] <nil> en; *********5679 map[] <nil> <nil>"; got != want {
		t.Errorf("the members are\n%s, want\n%s", got, want)
	}
	if got := a.Log(); strings.Contains(got, "12345678") {
		t.Error("the log repeats a number")
	}
}

func TestAnEmptyCellOfAFileIsAnEmptyValue(t *testing.T) {
	a := apitest.Start(t)
	at := createList(t, a, `{"name": "l"}`) + "/members"
	members := func() string {
		var seen []string
		for _, m := range membersOf(t, a.Do("GET", at, "")) {
			seen = append(seen, words(m["params"], m["timezone"]))
		}
		return strings.Join(seen, "; ")
	}
	for _, step := range []struct{ mode, file, want string }{
		{"add", "to,name,timezone\n09012345678,A,Asia/Tokyo\n", "map[name:A] Asia/Tokyo"},
		{"add", "to,name,timezone\n09012345678,A,\n", "map[name:A] Asia/Tokyo"},
		{"add", "to,name,timezone\n09012345678,,\n", "map[name:A] Asia/Tokyo; map[name:] <nil>"},
		{"replace", "to,name,timezone\n09012345678,,\n", "map[name:] <nil>"},
		{"replace", "to,name,timezone\n09012345678,B,Asia/Tokyo\n", "map[name:B] Asia/Tokyo"},
		{"replace", "to,name,timezone\n09012345678,,\n", "map[name:] <nil>"},
	} {
		if answer := a.Do("POST", at+"?mode="+step.mode, step.file, asCSV); answer.Status != 200 || members() != step.want {
			t.Errorf("%s %q: the members are %s, want %s\n%s", step.mode, step.file, members(), step.want, answer.Text)
		}
	}
}

func TestMembersAreFoundByTheirNumber(t *testing.T) {
	a := apitest.Start(t)
	a.AddKey("seesnumbers", "read", "pii")
	at := createList(t, a, `{"name": "l", "members": [{"to": "090-1234-5678", "params": {"name": "A"}}, {"to": "080-9999-5678"}, {"to": "080-9999-5679"}]}`) + "/members"
	for typed, want := range map[string]int{"5678": 2, "５６７８": 2, "090-1234-5678": 1, "+819012345678": 1, "9999": 0, "080-9999-5670": 0, "678": -1} {
		answer := a.Do("GET", at+"?phone="+url.QueryEscape(typed), "")
		switch {
		case want < 0 && (answer.Status != 422 || answer.Code() != "parameter_invalid" || strings.Contains(answer.Text, typed)):
			t.Errorf("%s: answer = %d %s", typed, answer.Status, answer.Text)
		case want >= 0 && len(membersOf(t, answer)) != want:
			t.Errorf("%s finds %s, want %d", typed, answer.Text, want)
		}
	}
	whole := membersOf(t, a.Do("GET", at+"?limit=2", "", "Authorization: Bearer seesnumbers"))
	if len(whole) != 2 || whole[0]["to"] != "+819012345678" || whole[0]["to_national"] != "090-1234-5678" {
		t.Errorf("a key with the scope pii sees %v", whole)
	}
}

func TestAMemberIsChangedAndTakenOff(t *testing.T) {
	a := apitest.Start(t)
	at := createList(t, a, `{"name": "l", "members": [{"to": "090-1234-5678", "params": {"name": "A"}, "timezone": "Asia/Tokyo"}, {"to": "090-1234-5678", "params": {"name": "B"}}]}`) + "/members"
	members := membersOf(t, a.Do("GET", at, ""))
	first := fmt.Sprintf("%s/%v", at, members[0]["id"])
	changed := a.Do("PATCH", first, `{"to": "080-1111-2222", "params": {"time": "10:30"}, "timezone": "", "locale": "en"}`)
	if got := words(changed.Status, changed.Body["to"], changed.Body["params"], changed.Body["timezone"], changed.Body["locale"]); got != "200 *********2222 map[time:10:30] <nil> en" {
		t.Errorf("changed = %s", got)
	}
	if got := a.Do("PATCH", first, `{}`); got.Status != 200 || words(got.Body["params"]) != "map[time:10:30]" {
		t.Errorf("changed to nothing else = %s", got.Text)
	}
	if got := a.Do("PATCH", first, `{"to": "09012345678", "params": {"name": "B"}}`); got.Status != 409 || got.Code() != "member_exists" {
		t.Errorf("changed to another = %d %s", got.Status, got.Text)
	}
	if got := a.Do("DELETE", first, ""); got.Status != http.StatusNoContent {
		t.Errorf("deleted = %d %s", got.Status, got.Text)
	}
	if got := a.Do("GET", first, ""); got.Status != 404 || got.Code() != "member_not_found" {
		t.Errorf("read after that = %d %s", got.Status, got.Text)
	}
	if got := membersOf(t, a.Do("GET", at, "")); len(got) != 1 {
		t.Errorf("the members are %v", got)
	}
}

func TestAnExportIsSafeToOpenAndCanBeImported(t *testing.T) {
	a := apitest.Start(t)
	a.AddKey("seesnumbers", "read", "pii")
	at := createList(t, a, `{"name": "l", "members": [
		{"to": "090-1234-5678", "params": {"name": "=HYPERLINK(\"x\")", "time": "10:30"}, "timezone": "Asia/Tokyo"},
		{"to": "+1 202-555-0143", "params": {"name": "a, \"b\"\nc", "time": "'quoted'"}, "locale": "en"},
		{"to": "080-1111-2222", "params": {"name": "'=1+1", "time": "''@x"}}]}`) + "/members"
	masked := a.Do("GET", at+".csv", "")
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(masked.Text, "\uFEFF"))).ReadAll()
	if err != nil || words(rows[0]) != "[to name time timezone locale]" || rows[1][0] != "*********5678" {
		t.Errorf("the export is %q, error %v", rows, err)
	}
	for _, row := range rows {
		for _, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
				t.Errorf("a spreadsheet takes %q for a formula", cell)
			}
		}
	}
	whole := a.Do("GET", at+".csv", "", "Authorization: Bearer seesnumbers")
	if !strings.Contains(whole.Text, "090-1234-5678") {
		t.Errorf("a key with the scope pii sees %s", whole.Text)
	}
	wantReport(t, a.Do("POST", at+"?mode=replace", whole.Text, asCSV), "0 0 3 0 0 0 3")
	for _, name := range []string{"to", "TO", "timezone", "Locale"} {
		refused := a.Do("POST", at, fmt.Sprintf(`{"members": [{"to": "090-1234-5679", "params": {%q: "x"}}]}`, name))
		if refused.Status != 422 || !strings.Contains(refused.Text, "param_name_invalid") {
			t.Errorf("a parameter with the name of the column %s = %d %s", name, refused.Status, refused.Text)
		}
	}
}

func TestAListInUseIsNotDeleted(t *testing.T) {
	a := apitest.Start(t)
	at := createList(t, a, `{"name": "l", "members": [{"to": "090-1234-5678"}]}`)
	db, err := pgx.Connect(t.Context(), a.Settings.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context())
	for _, sql := range []string{`CREATE TABLE uses (list_id bigint REFERENCES lists)`, `INSERT INTO uses SELECT id FROM lists`} {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if got := a.Do("DELETE", at, ""); got.Status != 409 || got.Code() != "list_in_use" {
		t.Errorf("deleted = %d %s", got.Status, got.Text)
	}
	if got := a.Do("GET", at, ""); got.Body["members_count"] != 1. {
		t.Errorf("read = %s", got.Text)
	}
}

func TestAnImportThatIsCutOffOrTooLongChangesNothing(t *testing.T) {
	a := apitest.Start(t)
	at := createList(t, a, `{"name": "l", "members": [{"to": "090-1234-5678"}]}`)
	for _, rows := range []string{strings.Repeat("x\n", 1_000_001), "09012345679\n" + strings.Repeat("x\n", 1_000_000)} {
		if answer := a.Do("POST", at+"/members?mode=replace", "to\n"+rows, asCSV); answer.Status != 422 || answer.Code() != "too_many_recipients" {
			t.Errorf("answer = %d %s", answer.Status, answer.Text)
		}
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s/members?mode=replace HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: text/csv\r\nContent-Length: 1000\r\n\r\nto\n09012345679\n", at, apitest.Key)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, _ := io.ReadAll(answer.Body); answer.StatusCode != 400 || !strings.Contains(string(text), string(problem.UploadIncomplete)) {
		t.Errorf("answer = %d %s", answer.StatusCode, text)
	}
	if members := membersOf(t, a.Do("GET", at+"/members", "")); len(members) != 1 || members[0]["to"] != "*********5678" {
		t.Errorf("the members are %v", members)
	}
}

func TestBadLists(t *testing.T) {
	a := apitest.Start(t)
	at := createList(t, a, `{"name": "taken"}`)
	to := at + "/members"
	wide := strings.Repeat("x", 1601)
	seen := map[problem.Code]bool{}
	for name, test := range map[string]struct {
		method, path, body, media string
		status                    int
		want                      string
	}{
		"no name":                      {"POST", lists, `{}`, "", 422, "required at /name"},
		"an empty name":                {"POST", lists, `{"name": " "}`, "", 422, "name_empty at /name"},
		"a name again":                 {"POST", lists, `{"name": "taken"}`, "", 409, "name_taken"},
		"a name again, with members":   {"POST", lists, `{"name": "taken", "members": [{"to": "09012345678"}]}`, "", 409, "name_taken"},
		"no object":                    {"POST", lists, `[]`, "", 422, "wrong_type at "},
		"no JSON":                      {"POST", lists, `{"name"`, "", 400, "malformed_json"},
		"no body":                      {"POST", lists, ``, "", 400, "request_empty"},
		"an unknown field":             {"POST", lists, `{"name": "x", "member": []}`, "", 422, "unknown_field at /member"},
		"members that are no array":    {"POST", lists, `{"name": "x", "members": {}}`, "", 422, "wrong_type at /members"},
		"a list of bad members":        {"POST", lists, `{"name": "x", "members": [{"to": "12"}, 7]}`, "", 422, "phone_number_too_short at /members/0, wrong_type at /members/1"},
		"a file":                       {"POST", lists, "to\n09012345678\n", "text/csv", 415, "unsupported_media_type"},
		"a query":                      {"POST", lists + "?x=y", `{"name": "x"}`, "", 422, "parameter_invalid"},
		"a new name that is taken":     {"PATCH", createList(t, a, `{"name": "other"}`), `{"name": "taken"}`, "", 409, "name_taken"},
		"no new name":                  {"PATCH", at, `{}`, "", 422, "required at /name"},
		"a change of nothing":          {"PATCH", lists + "/999", `{"name": "x"}`, "", 404, "list_not_found"},
		"an end of nothing":            {"DELETE", lists + "/999", "", "", 404, "list_not_found"},
		"no list":                      {"GET", lists + "/999", "", "", 404, "list_not_found"},
		"an id that is none":           {"GET", lists + "/x", "", "", 404, "not_found"},
		"an import into nothing":       {"POST", lists + "/999/members", "to\n09012345678\n", "text/csv", 404, "list_not_found"},
		"an import into no id":         {"POST", lists + "/x/members", "to\n09012345678\n", "text/csv", 404, "not_found"},
		"an export of nothing":         {"GET", lists + "/999/members.csv", "", "", 404, "list_not_found"},
		"no member":                    {"GET", to + "/999", "", "", 404, "member_not_found"},
		"a change of no member":        {"PATCH", to + "/999", `{}`, "", 404, "member_not_found"},
		"an end of no member":          {"DELETE", to + "/999", "", "", 404, "member_not_found"},
		"a mode that is none":          {"POST", to + "?mode=merge", "to\n09012345678\n", "text/csv", 422, "parameter_invalid"},
		"a mode twice":                 {"POST", to + "?mode=add&mode=add", "to\n09012345678\n", "text/csv", 422, "parameter_invalid"},
		"an unknown parameter":         {"POST", to + "?x=y", "to\n09012345678\n", "text/csv", 422, "parameter_invalid"},
		"a page of nowhere":            {"GET", to + "?cursor=x", "", "", 422, "parameter_invalid"},
		"an empty file":                {"POST", to, "\n\n", "text/csv", 400, "csv_empty"},
		"a header only":                {"POST", to + "?mode=replace", "to\n", "text/csv", 422, "import_has_no_members"},
		"no members":                   {"POST", to, `{"members": []}`, "", 422, "import_has_no_members"},
		"members missing":              {"POST", to, `{}`, "", 422, "required at /members"},
		"a field beside members":       {"POST", to, `{"members": [], "mode": "add"}`, "", 422, "unknown_field at /mode"},
		"a member without a number":    {"POST", to, `{"members": [{"params": {}}]}`, "", 422, "required at /members/0"},
		"a member with a typing error": {"POST", to, `{"members": [{"to": "09012345678", "time_zone": "x"}]}`, "", 422, "unknown_field at /members/0"},
		"another country":              {"POST", to, "to\n+44 20 7946 0958\n", "text/csv", 422, "country_not_allowed at /members/0"},
		"no zone":                      {"POST", to, "to,timezone\n09012345678,Mars/Base\n", "text/csv", 422, "timezone_unknown at /members/0"},
		"the machine's zone":           {"POST", to, "to,timezone\n09012345678,Local\n", "text/csv", 422, "timezone_unknown at /members/0"},
		"no locale":                    {"POST", to, "to,locale\n09012345678,japanese!\n", "text/csv", 422, "locale_unknown at /members/0"},
		"a name for no placeholder":    {"POST", to, `{"members": [{"to": "09012345678", "params": {"e-mail": "x"}}]}`, "", 422, "param_name_invalid at /members/0"},
		"a name twice":                 {"POST", to, `{"members": [{"to": "09012345678", "params": {"a": "x", " a": "y"}}]}`, "", 422, "param_name_invalid at /members/0"},
		"a long value":                 {"POST", to, "to,a\n09012345678," + wide + "\n", "text/csv", 422, "param_invalid at /members/0"},
		"a NUL":                        {"POST", to, `{"members": [{"to": "09012345678", "params": {"a": "x\u0000y"}}]}`, "", 422, "param_invalid at /members/0"},
		"no column of numbers":         {"POST", to, "phone\n09012345678\n", "text/csv", 422, "csv_without_to"},
		"a column twice":               {"POST", to, "to,a,a\n1,2,3\n", "text/csv", 422, "csv_duplicate_column"},
		"an open quote":                {"POST", to, "to,a\n09012345678,\"x\n", "text/csv", 400, "csv_unclosed_quote"},
		"an endless row":               {"POST", to, "to,a\n09012345678,\"" + strings.Repeat("x", 2<<20), "text/csv", 400, "csv_row_too_long"},
		"no encoding":                  {"POST", to, "to,a\n09012345678,\xff\xff\x81\n", "text/csv", 400, "csv_unknown_encoding"},
		"another type":                 {"POST", to, "x", "text/plain", 415, "unsupported_media_type"},
	} {
		t.Run(name, func(t *testing.T) {
			headers := []string{"If-Match: *"}
			if test.media != "" {
				headers = append(headers, "Content-Type: "+test.media)
			}
			checkProblem(t, a.Do(test.method, test.path, test.body, headers...), test.status, test.want, seen)
		})
	}
	for _, code := range listCodes {
		if !seen[code] {
			t.Errorf("no test shows the code %s", code)
		}
	}
	if got := a.Do("GET", at, ""); got.Body["members_count"] != 0. {
		t.Errorf("something was imported: %s", got.Text)
	}
	if got := a.Log(); strings.Contains(got, "12345678") {
		t.Error("the log repeats a number")
	}
}

func TestTemplatesAndListsAreChangedByWhoHasReadThem(t *testing.T) {
	a := clinic(t)
	for at, body := range map[string]string{templates + "/1": `{"name": "%s"}`, lists + "/1": `{"name": "%s"}`} {
		change := func(name string, headers ...string) apitest.Answer {
			return a.Do("PATCH", at, fmt.Sprintf(body, name), headers...)
		}
		read := a.Do("GET", at, "")
		first := change("first", ifMatch(read))
		if first.Status != http.StatusOK || first.Header.Get("ETag") == read.Header.Get("ETag") {
			t.Errorf("%s: the first of two = %d %s, ETag %s", at, first.Status, first.Text, first.Header.Get("ETag"))
		}
		if second := change("second", ifMatch(read)); second.Status != http.StatusPreconditionFailed || second.Code() != "etag_stale" {
			t.Errorf("%s: the second of two = %d %s", at, second.Status, second.Text)
		}
		if blind := change("blind"); blind.Status != http.StatusPreconditionRequired || blind.Code() != "if_match_missing" {
			t.Errorf("%s: without an ETag = %d %s", at, blind.Status, blind.Text)
		}
		if forced := change("forced", "If-Match: *"); forced.Status != http.StatusOK {
			t.Errorf("%s: of whatever there is = %d %s", at, forced.Status, forced.Text)
		}
	}
	archived := a.Do("PATCH", templates+"/1", `{"archived": true}`, ifMatch(a.Do("GET", templates+"/1", "")))
	if late := a.Do("PATCH", templates+"/1", `{"archived": false}`, `If-Match: "1"`); archived.Status != 200 || late.Status != 412 {
		t.Errorf("archived = %d %s, and brought back by who has read an older one = %d %s", archived.Status, archived.Text, late.Status, late.Text)
	}
}

func TestAnExportIsOfOneMoment(t *testing.T) {
	a := apitest.Start(t)
	const members = 12_000
	before, after := strings.Repeat("a", 1500), strings.Repeat("b", 1500) // more than connections buffer
	file := func(value string) string {
		var text strings.Builder
		text.WriteString("to,x\n")
		for i := range members {
			fmt.Fprintf(&text, "0901%07d,%s\n", i, value)
		}
		return text.String()
	}
	list := createList(t, a, `{"name": "l"}`) + "/members"
	wantReport(t, a.Do("POST", list, file(before), asCSV), fmt.Sprintf("%d 0 0 0 0 0 %d", members, members))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.URL+list+".csv", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+apitest.Key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.CopyN(io.Discard, response.Body, 1000); err != nil {
		t.Fatal(err)
	}
	wantReport(t, a.Do("POST", list+"?mode=replace", file(after), asCSV), fmt.Sprintf("0 %d 0 0 0 0 %d", members, members))
	rest, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if rows := strings.Count(string(rest), "\n"); rows != members && rows != members+1 || strings.Contains(string(rest), "bbb") {
		t.Errorf("of %d members %d are exported, some of them of later", members, rows)
	}
}
