package cli

import (
	"bytes"
	"net/url"
	"os"
	"strings"
	"testing"
)

// batch is an answer of the API about a batch.
func batch(state, counts string) string {
	return `{"id":"` + someID + `","channel":"SMS","state":"` + state + `","total":3,"counts":{` + counts + `},"percent":33.3,"sends_per_second":2.5,` +
		`"send_at":"2026-04-01T01:00:00Z","created_at":"2026-04-01T01:00:00Z","rejected_count":1,"rejected":[{"row":4,"code":"x","detail":"it is no number"}],` +
		`"workflow_id":"batch/` + someID + `","template_id":3,"template_version":2}`
}

func TestAFileIsSentAndFollowed(t *testing.T) {
	term := newTerminal(t)
	term.writeFile("r.csv", "to,name\n090-1234-5678,x\n")
	requests := standInAPI(t, says(202, batch("running", `"accepted":3`)),
		says(200, batch("running", `"pending":1,"success":2`)), says(200, strings.Replace(batch("finished", `"success":3`), "33.3", "100", 1)))
	out := term.succeeds("batch", "send", "--csv", "r.csv", "--template", "3", "--name", "春のお知らせ", "--send-at", "2026-04-01 09:00")
	want := "3 are accepted: batch " + someID + "\n1 row is rejected: todoku batch show " + someID + "\n" +
		"33.3 % of 3, 3 accepted, 2.5/s\n100.0 % of 3, 3 success, 2.5/s\n"
	if out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	first := (*requests)[0]
	asked, err := url.ParseRequestURI(first.Path)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := asked.Query().Encode(), "channel=SMS&name=%E6%98%A5%E3%81%AE%E3%81%8A%E7%9F%A5%E3%82%89%E3%81%9B&send_at=2026-04-01T09%3A00%3A00%2B09%3A00&template_id=3"; got != want {
		t.Errorf("asked for\n%s, want\n%s", got, want)
	}
	if first.file != "to,name\n090-1234-5678,x\n" {
		t.Errorf("uploaded %q", first.file)
	}
}

func TestABatchWhoseRowsFailedEndsWithOneAlsoAsJSON(t *testing.T) {
	term := newTerminal(t)
	term.writeFile("r.csv", "to,name\n090-1234-5678,x\n")
	answers := []answer{says(202, batch("running", `"accepted":3`)), says(200, batch("finished", `"failed":3`))}
	standInAPI(t, append(answers, answers...)...)
	code, out, errOut := term.run("batch", "send", "--csv", "r.csv", "--template", "3", "--json")
	if code != exitFailed || !strings.Contains(out, `"failed": 3`) || strings.Contains(out, `"accepted": 3`) || errOut != "" {
		t.Errorf("it ends with %d, prints\n%s\nand says\n%s\nwant 1 and the finished batch", code, out, errOut)
	}
	if code, out, _ := term.run("batch", "send", "--csv", "r.csv", "--template", "3", "--json", "--detach"); code != 0 || !strings.Contains(out, `"accepted": 3`) {
		t.Errorf("with --detach it ends with %d and prints\n%s", code, out)
	}
}

func TestAFileOfWhichNothingCanBeSentNamesItsRows(t *testing.T) {
	term := newTerminal(t)
	term.writeFile("r.csv", "to,time\n1,25:00\n")
	empty := refuses(422, `{"title":"The batch has nobody to send to","status":422,"code":"batch_empty","errors":[`+
		`{"pointer":"/recipients/0","detail":"it is no number"},{"pointer":"/recipients/1/params/time","detail":"it is no time"}]}`)
	standInAPI(t, empty)
	want := "todoku batch send: The batch has nobody to send to\n  row 1               it is no number\n  row 2 /params/time  it is no time\n"
	if code, _, errOut := term.run("batch", "send", "--csv", "r.csv", "--template", "3"); code != exitFailed || errOut != want {
		t.Errorf("it ends with %d and says\n%s, want\n%s", code, errOut, want)
	}
	if code, _, errOut := term.run("batch", "send", "--csv", "r.csv", "--template", "3", "--json"); code != exitFailed || !strings.Contains(errOut, "/recipients/0") {
		t.Errorf("as JSON it ends with %d and says\n%s", code, errOut)
	}
}

func TestWhatIsMissingIsLookedForByCommands(t *testing.T) {
	term := newTerminal(t)
	standInAPI(t, refuses(422, `{"title":"No such template","status":422,"errors":[{"pointer":"/template_id","detail":"there is no template with this id: see GET /api/v1/templates"}]}`),
		refuses(404, `{"title":"No such list","status":404,"detail":"there is no list: see GET /api/v1/lists"}`))
	if _, _, errOut := term.run("batch", "send", "--list", "1", "--template", "3"); !strings.HasSuffix(errOut, "see `todoku template list`\n") {
		t.Errorf("it says %s", errOut)
	}
	if _, _, errOut := term.run("list", "show", "9"); !strings.HasSuffix(errOut, "see `todoku list list`\n") {
		t.Errorf("it says %s", errOut)
	}
}

func TestWhatABatchWouldBeIsShown(t *testing.T) {
	term := newTerminal(t)
	term.writeFile("r.csv", "to\n1\n")
	standInAPI(t, says(200, `{"dry_run":true,"total":10,"skipped":1,"segments":27,"estimated_seconds":90,"rejected_count":1200,"rejected_by_code":{"b":200,"a":1000},"rejected":[{"row":4,"code":"x","detail":"it is no number"}]}`))
	out := term.succeeds("batch", "send", "--csv", "r.csv", "--body", "x", "--dry-run")
	for _, want := range []string{"1200\n  a                    1000\n  b                    200\n", "notifications", "10", "27", "1m30s", "row 4", "it is no number", "Nothing was accepted"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

func TestTheFirstTextsAndTheEncodingAreShown(t *testing.T) {
	term := newTerminal(t)
	term.writeFile("r.csv", "to\n1\n")
	standInAPI(t, says(200, `{"dry_run":true,"total":1,"encoding":"shift_jis","examples":[{"row":2,"text":"佐藤様\n明日です"}],"warnings":[{"code":"x","detail":"it uses no column"}]}`))
	out := term.succeeds("batch", "send", "--csv", "r.csv", "--body", "x", "--dry-run")
	for _, want := range []string{"encoding", "shift_jis", "row 2 would get:\n  佐藤様\n  明日です\n", "warning", "it uses no column"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

func TestWarningsOfABatchAreShown(t *testing.T) {
	term := newTerminal(t)
	term.writeFile("r.csv", "to,name\n1,x\n")
	warned := strings.Replace(batch("running", `"accepted":3`), "{", `{"warnings":[{"code":"x","detail":"it uses no column"}],`, 1)
	standInAPI(t, says(202, warned))
	if out := term.succeeds("batch", "send", "--csv", "r.csv", "--body", "x", "--detach"); !strings.Contains(out, "warning: it uses no column\n") {
		t.Errorf("it says %s", out)
	}
}

func TestATerminalIsWarnedBeforeAFileIsSent(t *testing.T) {
	term := newTerminal(t)
	term.writeFile("r.csv", "to,name,timezone\n1,x,\n")
	screen, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0) // a character device, as a terminal is
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	const withName, without = `{"id":3,"body":"Hello {{name}}","params":["name"]}`, `{"id":3,"body":"Hello","params":[]}`
	for _, test := range []struct {
		args, warns string
		answers     []answer
	}{
		{"--body Hello", "uses no column of the file (name)", nil},
		{"--template 3", "uses no column of the file (name)", []answer{says(200, without)}},
		{"--template 3", "", []answer{says(200, withName)}},
	} {
		requests := standInAPI(t, append(test.answers, refuses(422, `{"title":"x","status":422}`))...)
		var errOut bytes.Buffer
		Main(t.Context(), strings.Fields("batch send --detach --csv r.csv "+test.args), strings.NewReader(""), screen, &errOut)
		warned, _, _ := strings.Cut(errOut.String(), "todoku:")
		if strings.Contains(warned, "warning") != (test.warns != "") || !strings.Contains(warned, test.warns) || len(*requests) == 0 {
			t.Errorf("%s says %s", test.args, errOut.String())
		}
	}
}

func TestAListIsSentTo(t *testing.T) {
	term := newTerminal(t)
	requests := standInAPI(t, says(200, `{"dry_run":true,"total":10}`), says(202, batch("running", `"accepted":3`)))
	term.succeeds("batch", "send", "--list", "1", "--template", "3", "--dry-run")
	term.succeeds("batch", "send", "--list", "1", "--template", "3", "--name", "x", "--allow-duplicates", "--detach")
	preview, sent := (*requests)[0], (*requests)[1]
	if preview.Path != "/api/v1/batches?dry_run=true" || preview.Body["list_id"] != 1. || preview.key != "" {
		t.Errorf("asked %+v", preview)
	}
	if sent.Path != "/api/v1/batches" || sent.Body["template_id"] != 3. || sent.Body["allow_duplicates"] != true || sent.Body["name"] != "x" || sent.key == "" {
		t.Errorf("asked %+v", sent)
	}
}

func TestABatchIsShownListedAndControlled(t *testing.T) {
	term := newTerminal(t)
	standInAPI(t, says(200, batch("running", `"pending":1,"success":2`)), says(200, `{"items":[`+batch("paused", `"held":3`)+`],"next_cursor":"abc"}`),
		says(200, strings.Replace(batch("paused", `"held":2,"success":1`), `"total"`, `"in_flight":1,"total"`, 1)))
	if out := term.succeeds("batch", "show", someID); !strings.Contains(out, "3, version 2") || !strings.Contains(out, "  success") || !strings.Contains(out, "it is no number") {
		t.Errorf("the batch is shown as\n%s", out)
	}
	if out := term.succeeds("batch", "list"); !strings.Contains(out, "paused") || !strings.Contains(out, "--cursor abc") {
		t.Errorf("the list is\n%s", out)
	}
	if out := term.succeeds("batch", "pause", someID); !strings.Contains(out, "is paused: 33.3 % of 3, 2 held, 1 success") || !strings.Contains(out, "1 were being sent") {
		t.Errorf("pausing says\n%s", out)
	}
}

func TestABatchIsPausedForAReason(t *testing.T) {
	term := newTerminal(t)
	requests := standInAPI(t, says(200, batch("paused", `"held":3`)))
	term.succeeds("batch", "pause", someID, "--reason", "文面を確認中 & 保留")
	term.succeeds("batch", "pause", someID)
	if got, want := (*requests)[0].Path, "/api/v1/batches/"+someID+"/pause?reason=%E6%96%87%E9%9D%A2%E3%82%92%E7%A2%BA%E8%AA%8D%E4%B8%AD+%26+%E4%BF%9D%E7%95%99"; got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
	if got, want := (*requests)[1].Path, "/api/v1/batches/"+someID+"/pause"; got != want {
		t.Errorf("without a reason asked for %s, want %s", got, want)
	}
}

func TestABatchThatWaitsForItsSenderSaysSo(t *testing.T) {
	term := newTerminal(t)
	standInAPI(t, says(200, batch("running", `"held":2,"success":1`)), says(200, batch("running", `"held":2,"success":1`)), says(200, batch("paused", `"held":3`)))
	if out := term.succeeds("batch", "show", someID); !strings.Contains(out, "running, but its sender is stopped: `todoku sender list` says why") {
		t.Errorf("the batch is shown as\n%s", out)
	}
	if out := term.succeeds("batch", "resume", someID); !strings.Contains(out, "2 held, 1 success, its sender is stopped") {
		t.Errorf("resuming it says\n%s", out)
	}
	if out := term.succeeds("batch", "show", someID); strings.Contains(out, "sender") {
		t.Errorf("a paused batch is shown as\n%s", out)
	}
}

func TestResultsAreAFileOrNothing(t *testing.T) {
	term := newTerminal(t)
	whole := answer{status: 200, contentType: "text/csv; charset=utf-8", body: "\ufeffrow,to,status\r\n1,090-1234-5678,SUCCESS\r\n"}
	masked := answer{status: 200, contentType: whole.contentType, body: "\ufeffrow,to,status\r\n1,*********5678,SUCCESS\r\n"}
	refusal := refuses(404, `{"type":"/docs#batch_not_found","title":"No such batch","status":404,"detail":"there is no batch","code":"batch_not_found"}`)
	requests := standInAPI(t, whole, whole, masked, refusal)
	if out := term.succeeds("batch", "results", someID); out != whole.body {
		t.Errorf("the results are %q", out)
	}
	if out := term.succeeds("batch", "results", someID, "--out", "r.csv"); out != "written to r.csv\n" {
		t.Errorf("it says %q", out)
	}
	if text, err := os.ReadFile("r.csv"); err != nil || string(text) != whole.body {
		t.Errorf("the file is %q, error %v", text, err)
	}
	if out := term.succeeds("batch", "results", someID, "--out", "m.csv"); !strings.Contains(out, "its numbers are masked: give a key with the scope pii") {
		t.Errorf("of a file with masked numbers it says %q", out)
	}
	if code, _, errOut := term.run("batch", "results", someID, "--out", "q.csv"); code != exitFailed || !strings.Contains(errOut, "there is no batch") {
		t.Errorf("it ends with %d and says %q", code, errOut)
	}
	if _, err := os.Stat("q.csv"); err == nil {
		t.Error("a file is left of what was refused")
	}
	if got, want := (*requests)[0].Path, "/api/v1/batches/"+someID+"/results.csv"; got != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
}

func TestABatchIsSlowedDownAndMoved(t *testing.T) {
	term := newTerminal(t)
	own := strings.Replace(batch("running", `"accepted":3`), `"total"`, `"send_interval_ms":2000,"total"`, 1)
	requests := standInAPI(t, says(200, own), says(200, batch("running", `"accepted":3`)), says(200, batch("scheduled", `"accepted":3`)))
	if out := term.succeeds("batch", "pace", someID, "--interval", "2s"); !strings.Contains(out, "sends one each 2s at most: 33.3 % of 3, 3 accepted") {
		t.Errorf("slowing it down says\n%s", out)
	}
	if out := term.succeeds("batch", "pace", someID, "--interval", "0s"); !strings.Contains(out, "goes at its sender's pace") {
		t.Errorf("giving its pace up says\n%s", out)
	}
	if out := term.succeeds("batch", "reschedule", someID, "--send-at", "2026-04-01 10:00"); !strings.Contains(out, "is not sent before 2026-04-01 10:00:00 JST") {
		t.Errorf("moving it says\n%s", out)
	}
	slower, sendersPace, moved := (*requests)[0], (*requests)[1], (*requests)[2]
	if slower.Method != "PATCH" || slower.Path != "/api/v1/batches/"+someID || slower.Body["send_interval_ms"] != 2000. || len(slower.Body) != 1 {
		t.Errorf("asked %+v", slower)
	}
	if sendersPace.Body["send_interval_ms"] != 0. || moved.Body["send_at"] != "2026-04-01T10:00:00+09:00" || len(moved.Body) != 1 {
		t.Errorf("asked %+v and %+v", sendersPace, moved)
	}
}

func TestAFileThatCannotBeReadIsNotTheAPIsFault(t *testing.T) {
	term := newTerminal(t)
	if err := os.Mkdir("folder", 0o700); err != nil {
		t.Fatal(err)
	}
	standInAPI(t, answer{status: 400})
	for _, args := range [][]string{{"batch", "send", "--csv", "folder", "--body", "x"}, {"list", "import", "1", "--csv", "folder"}, {"batch", "send", "--csv", "nowhere.csv", "--body", "x"}} {
		code, _, errOut := term.run(args...)
		if code != exitFailed || !strings.Contains(errOut, "read --csv: ") || strings.Contains(errOut, "may or may not") || strings.Contains(errOut, "asking again") {
			t.Errorf("%v ends with %d and says %q", args, code, errOut)
		}
	}
}

func TestABatchIsSentOnceUnderAKeyOfOnesOwn(t *testing.T) {
	term := newTerminal(t)
	term.writeFile("r.csv", "to\n090-1234-5678\n")
	requests := standInAPI(t, says(202, batch("running", `"accepted":3`)))
	term.succeeds("batch", "send", "--csv", "r.csv", "--body", "x", "--detach", "--idempotency-key", "spring-2026")
	if got := (*requests)[0].key; got != "spring-2026" {
		t.Errorf("sent under the key %q", got)
	}
}

// check is an answer of the API about a check against Twilio's list.
func check(state, more string) string {
	return `{"batch_id":"` + someID + `","state":"` + state + `","requested_at":"2026-04-01T01:00:00Z",` + more + `"workflow_id":"carrier-check/` + someID + `"}`
}

func TestABatchIsCheckedAgainstTwilio(t *testing.T) {
	term := newTerminal(t)
	requests := standInAPI(t, says(202, check("waiting", "")), says(200, check("running", "")),
		says(200, check("finished", `"finished_at":"2026-04-01T01:00:00Z","agrees":true,"compared":3,"listed":5,"differences":[],`)))
	if out := term.succeeds("batch", "check", someID); !strings.Contains(out, "shown by Twilio") || !strings.HasSuffix(out, "The ledger and Twilio agree.\n") {
		t.Errorf("the check is shown as\n%s", out)
	}
	for i, want := range []string{"POST", "GET", "GET"} {
		if got := (*requests)[i]; got.Method != want || !strings.HasSuffix(got.Path, "/batches/"+someID+"/carrier-check") {
			t.Errorf("request %d is %s %s", i, got.Method, got.Path)
		}
	}

	differing := check("finished", `"finished_at":"2026-04-01T01:00:00Z","agrees":false,"counts":{"extra_at_carrier":1},"differences":[`+
		`{"kind":"extra_at_carrier","row":7,"notification_id":"`+someID+`","to":"*********5678","status":"SUCCESS","twilio_sid":"SM1","carrier_status":"delivered"}],`)
	standInAPI(t, says(202, differing), says(200, differing), says(202, check("failed", `"finished_at":"2026-04-01T01:00:00Z","failure":"the carrier was away",`)))
	if code, out, _ := term.run("batch", "check", someID); code != exitFailed || !strings.Contains(out, "*********5678") || !strings.Contains(out, "delivered") {
		t.Errorf("a difference ends with %d and\n%s", code, out)
	}
	if out := term.succeeds("batch", "check", "--last", someID); !strings.Contains(out, "extra_at_carrier") {
		t.Errorf("the latest result is shown as\n%s", out)
	}
	if code, out, _ := term.run("batch", "check", someID); code != exitFailed || out != "the check is failed: the carrier was away\n" {
		t.Errorf("a failure ends with %d and\n%s", code, out)
	}
}

func TestBatchUsage(t *testing.T) {
	term := newTerminal(t)
	for _, args := range [][]string{
		{"send"}, {"send", "--csv", "x"}, {"send", "--body", "x"}, {"send", "--csv", "x", "--list", "1", "--body", "x"}, {"send", "--csv", "x", "--body", "x", "--template", "1"}, {"send", "--csv", "x", "--body", "x", "--send-at", "soon"},
		{"show"}, {"show", "1"}, {"pause", "x"}, {"check"}, {"check", "x"}, {"results"}, {"results", "x"}, {"results", someID, "x"},
		{"pace", someID}, {"pace", someID, "--interval", "2"}, {"pace", someID, "--interval", "1ns"}, {"pace", someID, "--interval", "-1s"}, {"pace", someID, "--interval", "61m"}, {"pace", "x", "--interval", "2s"}, {"reschedule", someID}, {"reschedule", someID, "--send-at", "soon"},
		{"send", "--csv", "x", "--body", "x", "--idempotency-key", ""}, {"list", "--limit", "0"},
	} {
		if code, _, errOut := term.run(append([]string{"batch"}, args...)...); code != exitUsage || errOut == "" {
			t.Errorf("%v ends with %d and says %q", args, code, errOut)
		}
	}
}
