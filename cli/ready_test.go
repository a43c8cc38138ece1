package cli

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
)

func TestReadySaysWhatIsDown(t *testing.T) {
	term := newTerminal(t)
	for _, test := range []struct {
		name   string
		answer answer
		code   int
		says   string
	}{
		{"an API", says(200, `{"status":"ok","database":"up","schema":"up","temporal":"up"}`), exitDone, "is ready"},
		{"an API without Temporal", says(200, `{"status":"degraded","database":"up","schema":"up","temporal":"down"}`), exitDone, "is ready, but temporal down"},
		{"an API without its database", says(503, `{"status":"down","database":"down","schema":"unknown","temporal":"up"}`), exitFailed, "is not ready: database down, schema unknown"},
		{"an API that stops", says(503, `{"status":"stopping","database":"up","schema":"up","temporal":"up"}`), exitFailed, "is not ready: stopping"},
		{"a worker", says(200, `{"status":"ok"}`), exitDone, "is ready"},
		{"a worker without Temporal", says(503, `{"status":"unavailable","down":["temporal","pollers"]}`), exitFailed, "is not ready: temporal down, pollers down"},
		{"the simulator", says(404, `{"code":20404,"message":"not found","status":404}`), exitFailed, "not as Todoku does"},
		{"another program", says(200, `<html>`), exitFailed, "not as Todoku does"},
	} {
		t.Run(test.name, func(t *testing.T) {
			requests := standInAPI(t, test.answer)
			code, out, errOut := term.run("ready")
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			text, other := out, errOut
			if test.code != exitDone {
				text, other = errOut, out
			}
			if !strings.Contains(text, test.says+"\n") && !strings.Contains(text, test.says+":") || strings.Count(text, "\n") != 1 || other != "" {
				t.Errorf("it prints %q and, to standard error, %q; want one line with %q", out, errOut, test.says)
			}
			for _, r := range *requests {
				if r.Method != http.MethodGet || r.Path != "/readyz" || r.Authorization != "" {
					t.Errorf("it asks %s %s with the authorization %q", r.Method, r.Path, r.Authorization)
				}
			}
		})
	}
}

func TestReadyAsksTheURLGiven(t *testing.T) {
	term := newTerminal(t)
	if code, _, errOut := term.run("ready", "http://127.0.0.1:1"); code != exitFailed || !strings.Contains(errOut, "127.0.0.1:1 (the URL given) cannot be reached") {
		t.Errorf("exit code %d, %s", code, errOut)
	}
}

func TestReadyTakesTheAddressOfTheCheckItself(t *testing.T) {
	term := newTerminal(t)
	requests := standInAPI(t, says(200, `{"status":"ok"}`))
	term.succeeds("ready", os.Getenv("TODOKU_URL")+"/readyz")
	if path := (*requests)[0].Path; path != "/readyz" {
		t.Errorf("it asks for %s", path)
	}
}

func TestReadyPrintsTheAnswerAsJSON(t *testing.T) {
	term := newTerminal(t)
	standInAPI(t, says(200, `{"status":"degraded","database":"up","schema":"up","temporal":"down"}`))
	var answer struct{ Status, Temporal string }
	if err := json.Unmarshal([]byte(term.succeeds("ready", "--json")), &answer); err != nil || answer.Status != "degraded" || answer.Temporal != "down" {
		t.Errorf("it prints %+v, %v", answer, err)
	}
}
