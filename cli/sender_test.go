package cli

import (
	"strings"
	"testing"
)

func TestSendersAreListedWithWhatStoppedThem(t *testing.T) {
	term := newTerminal(t)
	standInAPI(t, says(200, `{"items":[
		{"id":1,"channel":"SMS","address":"********0006","state":"running","send_interval_ms":100,"next_slot_at":null,"waiting":0,"queued":3,"queue_limit":600,"stopped_at":null,"stop_code":null,"stop_reason":null},
		{"id":2,"channel":"CALL","address":"********0006","state":"stopped","send_interval_ms":0,"next_slot_at":null,"waiting":12,"stopped_at":"2026-04-01T01:00:00Z","stop_code":"20003","stop_reason":"the credentials are wrong"},
		{"id":3,"channel":"SMS","address":"********0010","state":"running","send_interval_ms":100,"waiting":0,"slowed_at":"2026-04-01T01:00:00Z","slow_code":"429"}]}`))
	want := `ID  CHANNEL  ADDRESS       PACE            WAITING  QUEUED    STATE
1   SMS      ********0006  one each 100ms  0        3 of 600  running
2   CALL     ********0006  no pacing       12       0         stopped (20003): the credentials are wrong
3   SMS      ********0010  one each 100ms  0        0         running; slowed down by Twilio (429) at 2026-04-01 10:00:00 JST
`
	if out := term.succeeds("sender", "list"); out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}

func TestSenderIsResumed(t *testing.T) {
	term := newTerminal(t)
	requests := standInAPI(t, says(200, `{"id":2,"channel":"CALL","address":"********0006","state":"running","waiting":12}`))
	if out := term.succeeds("sender", "resume", "2"); out != "sender 2 is running; 12 wait to be sent\n" {
		t.Errorf("it prints %q", out)
	}
	if r := (*requests)[0]; r.Method != "POST" || r.Path != "/api/v1/senders/2/resume" {
		t.Errorf("asked %+v", r)
	}
}

func TestNoSendersYet(t *testing.T) {
	term := newTerminal(t)
	standInAPI(t, says(200, `{"items":[]}`))
	if out := term.succeeds("sender", "list"); !strings.Contains(out, "no senders yet") {
		t.Errorf("it prints %q", out)
	}
}
