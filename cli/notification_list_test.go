package cli

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestNotificationsAreListed(t *testing.T) {
	term := newTerminal(t)
	page := `{"items":[` + notification(`{"reference":"order-1"}`) + `,` +
		notification(`{"status":"FAILED","error_code":"30003","error_message":"圏外です。"}`) + `],"next_cursor":"abc"}`
	requests := standInAPI(t, says(200, page))
	want := `ID                                    STATUS    CHANNEL  TO             ACCEPTED                 REFERENCE  ERROR
` + someID + `  ACCEPTED  SMS      *********5678  2026-04-01 10:00:00 JST  order-1
` + someID + `  FAILED    SMS      *********5678  2026-04-01 10:00:00 JST             圏外です。 (30003)
There are more: repeat the command with --cursor abc
`
	if out := term.succeeds("notification", "list"); out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	if path := (*requests)[0].Path; path != "/api/v1/notifications?limit=50" {
		t.Errorf("asked for %s", path)
	}
	standInAPI(t, says(200, `{"items":[],"next_cursor":null}`))
	if out := term.succeeds("notification", "list"); !strings.Contains(out, "no such notifications") {
		t.Errorf("an empty list says %q", out)
	}
}

func TestTheListShowsWhatIsSentLater(t *testing.T) {
	term := newTerminal(t)
	standInAPI(t, says(200, `{"items":[`+notification(`{"send_at":"2026-04-02T01:00:00Z"}`)+`,`+notification(`{}`)+`],"next_cursor":null}`))
	want := `ID                                    STATUS    CHANNEL  TO             ACCEPTED                 NOT BEFORE               REFERENCE  ERROR
` + someID + `  ACCEPTED  SMS      *********5678  2026-04-01 10:00:00 JST  2026-04-02 10:00:00 JST
` + someID + `  ACCEPTED  SMS      *********5678  2026-04-01 10:00:00 JST
`
	if out := term.succeeds("notification", "list"); out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}

func TestTheListIsAskedForByFilters(t *testing.T) {
	term := newTerminal(t)
	requests := standInAPI(t, says(200, `{"items":[],"next_cursor":null}`))
	term.succeeds("notification", "list", "--status", "failed,unknown", "--status", "held", "--channel", "sms", "--phone", "+81 90 1234 5678",
		"--reference", "a & b", "--from", "2026-04-01 09:00", "--to", "1h", "--limit", "7", "--cursor", "c")
	asked, err := url.ParseRequestURI((*requests)[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	query := asked.Query()
	to, err := time.Parse(time.RFC3339, query.Get("created_to"))
	if ago := time.Since(to); err != nil || ago < 59*time.Minute || ago > 61*time.Minute {
		t.Errorf("--to 1h became %q", query.Get("created_to"))
	}
	query.Del("created_to")
	want := "channel=SMS&created_from=2026-04-01T09%3A00%3A00%2B09%3A00&cursor=c&limit=7&phone=%2B81+90+1234+5678&reference=a+%26+b&status=FAILED%2CUNKNOWN%2CHELD"
	if got := query.Encode(); got != want {
		t.Errorf("asked for\n%s, want\n%s", got, want)
	}
}

func TestCancelSucceedsOnlyWhereItIsCanceled(t *testing.T) {
	for _, test := range []struct {
		answer answer
		code   int
		says   string
	}{
		{says(200, notification(`{"status":"CANCELED"}`)), exitDone, someID + " is canceled"},
		{says(202, notification(`{"status":"SENDING"}`)), exitFailed, "nobody can tell yet"},
		{refuses(409, `{"title":"Twilio has it already","status":409,"detail":"Twilio has it","code":"already_sent"}`), exitFailed, "Twilio has it"},
	} {
		term := newTerminal(t)
		requests := standInAPI(t, test.answer)
		code, out, errOut := term.run("notification", "cancel", someID)
		if code != test.code || !strings.Contains(out+errOut, test.says) {
			t.Errorf("it ends with %d: %s%s", code, out, errOut)
		}
		if r := (*requests)[0]; r.Method != "POST" || r.Path != "/api/v1/notifications/"+someID+"/cancel" {
			t.Errorf("asked %+v", r)
		}
	}
}

func TestRescheduleMovesTheTime(t *testing.T) {
	term := newTerminal(t)
	requests := standInAPI(t, says(200, notification(`{"send_at":"2026-04-02T01:00:00Z"}`)))
	out := term.succeeds("notification", "reschedule", someID, "--send-at", "2026-04-02 10:00")
	if want := someID + " is not sent before 2026-04-02 10:00:00 JST\n"; out != want {
		t.Errorf("it prints %q, want %q", out, want)
	}
	if r := (*requests)[0]; r.Method != "PATCH" || r.Body["send_at"] != "2026-04-02T10:00:00+09:00" {
		t.Errorf("asked %+v", r)
	}
}

func TestTemplateUpdateSaysTheVersion(t *testing.T) {
	term := newTerminal(t)
	read := says(200, reminder)
	read.etag = `"3"`
	requests := standInAPI(t, read)
	if out := term.succeeds("template", "update", "1", "--body", "{{name}}様"); out != "template 1 is changed: version 2\n" {
		t.Errorf("it prints %q", out)
	}
	if r := (*requests)[1]; r.Method != "PATCH" || r.Path != "/api/v1/templates/1" || r.ifMatch != `"3"` || len(r.Body) != 1 || r.Body["body"] != "{{name}}様" {
		t.Errorf("asked %+v", r)
	}
}
