package cli

import (
	"encoding/json"
	"strings"
	"testing"
)

const (
	smallCentre = "workspace: Support\nqueues: [{name: Sales}]\nrouting: {default: {queue: Sales}}\n"
	runID       = "0190b0a0-0000-7000-8000-000000000000"
)

// runOfTaskRouter is a run as the API shows it.
func runOfTaskRouter(action, state, changes, more string) answer {
	return says(200, `{"id":"`+runID+`","action":"`+action+`","state":"`+state+`","changes":[`+changes+`],"notes":[]`+more+`}`)
}

func TestAPlanShowsWhatWouldBeDone(t *testing.T) {
	term := newTerminal(t)
	term.writeFile("taskrouter.yaml", smallCentre)
	long := strings.Repeat("x", 200)
	requests := standInAPI(t, runOfTaskRouter("plan", "waiting", "", ""), runOfTaskRouter("plan", "waiting", "", ""), runOfTaskRouter("plan", "done",
		`{"action":"create","kind":"task queue","name":"Sales","fields":[{"field":"TargetWorkers","to":"1==1"}]},
		{"action":"update","kind":"workflow","name":"Reception","fields":[{"field":"Configuration","from":"`+long+`a","to":"`+long+`b"},{"field":"AssignmentCallbackUrl","to":"https://x.example.com"}]},
		{"action":"delete","kind":"worker","name":"aoi\u001b[2J"}`, ""))
	want := `+ task queue "Sales"
~ workflow "Reception"
    Configuration: …xxxxxxxxxxxxxxxxxxxxxxxxxa -> …xxxxxxxxxxxxxxxxxxxxxxxxxb
    AssignmentCallbackUrl: (empty) -> https://x.example.com
- worker "aoi�[2J"
1 to create, 1 to update, 1 to delete
`
	if out := term.succeeds("taskrouter", "plan"); out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	if r := (*requests)[0]; r.Method != "POST" || r.Path != "/api/v1/taskrouter/runs" || r.Body["action"] != "plan" || r.Body["file"] != smallCentre || r.Body["file_name"] != "taskrouter.yaml" {
		t.Errorf("asked %+v", r)
	}
	if r := (*requests)[2]; r.Method != "GET" || r.Path != "/api/v1/taskrouter/runs/"+runID {
		t.Errorf("asked %+v", r)
	}
}

func TestAnApplySaysWhatWasDone(t *testing.T) {
	term := newTerminal(t)
	term.input = smallCentre
	standInAPI(t, runOfTaskRouter("apply", "done", `{"action":"create","kind":"task queue","name":"Sales"}`, ""))
	if out := term.succeeds("taskrouter", "apply", "-f", "-"); out != "+ task queue \"Sales\"\n1 created\n" {
		t.Errorf("it prints %q", out)
	}
	standInAPI(t, runOfTaskRouter("apply", "done", "", ""))
	if out := term.succeeds("taskrouter", "apply", "-f", "-"); out != "nothing is to be changed\n" {
		t.Errorf("it prints %q", out)
	}
}

func TestAnApplyThatFailsSaysWhyAndWhatNext(t *testing.T) {
	term := newTerminal(t)
	term.writeFile("taskrouter.yaml", smallCentre)
	failed := runOfTaskRouter("apply", "failed", `{"action":"create","kind":"workspace","name":"Support"}`, `,"problem":"taskrouter.yaml:2: task queue \"Sales\": no"`)
	standInAPI(t, failed)
	code, out, errOut := term.run("taskrouter", "apply")
	want := "+ workspace \"Support\"\nit came to an end early: taskrouter.yaml:2: task queue \"Sales\": no\nMend that and give the command again: what was done stays, and the rest is done then.\n"
	if code != exitFailed || out != want || errOut != "" {
		t.Errorf("it ended with %d\n%s%s", code, out, errOut)
	}
	standInAPI(t, failed)
	code, out, _ = term.run("taskrouter", "apply", "--json")
	var run struct{ State string }
	if err := json.Unmarshal([]byte(out), &run); code != exitFailed || err != nil || run.State != "failed" {
		t.Errorf("with --json it ended with %d\n%s", code, out)
	}
}

func TestWhatIsWrongWithAFileIsSaidWithItsLines(t *testing.T) {
	term := newTerminal(t)
	requests := standInAPI(t, says(500, "{}"))
	term.writeFile("centre.yaml", "workspace: Support\nqueues: [{name: Sales}, {name: Sales}]\nrouting: {default: {queue: Buying}}\n")
	code, _, errOut := term.run("taskrouter", "apply", "--file", "centre.yaml")
	want := "todoku taskrouter apply: the file is wrong\ncentre.yaml:2: the queue Sales is there twice: line 2 has it too\ncentre.yaml:3: there is no queue \"Buying\" in this file\n"
	if code != exitFailed || errOut != want || len(*requests) != 0 {
		t.Errorf("it ended with %d after %d requests\n%s", code, len(*requests), errOut)
	}
	code, _, errOut = term.run("taskrouter", "plan")
	if code != exitFailed || errOut != "todoku taskrouter plan: there is no taskrouter.yaml: write one, as taskrouter.example.yaml is, or say with --file where it is\n" {
		t.Errorf("it ended with %d\n%s", code, errOut)
	}
}

func TestDestroyAsksFirst(t *testing.T) {
	objects := says(200, `{"items":[{"kind":"task queue","name":"Sales","sid":"WQ1"}]}`)
	for name, test := range map[string]struct {
		input string
		args  []string
		code  int
		asked int
		says  string
	}{
		"no":        {"no\n", nil, exitFailed, 1, "the answer was not yes"},
		"nobody":    {"", nil, exitFailed, 1, "the answer was not yes"},
		"yes":       {"yes\n", nil, exitDone, 2, "Todoku made this at Twilio:\n  task queue \"Sales\"\n"},
		"not asked": {"", []string{"--yes"}, exitDone, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			term := newTerminal(t)
			term.input = test.input
			answers := []answer{objects, runOfTaskRouter("destroy", "done", `{"action":"delete","kind":"task queue","name":"Sales"}`, "")}
			if test.args != nil {
				answers = answers[1:]
			}
			requests := standInAPI(t, answers...)
			code, out, errOut := term.run(append([]string{"taskrouter", "destroy"}, test.args...)...)
			if code != test.code || len(*requests) != test.asked || !strings.Contains(errOut, test.says) {
				t.Errorf("it ended with %d after %d requests\n%s%s", code, len(*requests), out, errOut)
			}
			if code == exitDone && out != "- task queue \"Sales\"\n1 deleted\n" {
				t.Errorf("it prints %q", out)
			}
		})
	}
	term := newTerminal(t)
	standInAPI(t, says(200, `{"items":[]}`))
	if code, _, errOut := term.run("taskrouter", "destroy"); code != exitFailed || !strings.Contains(errOut, "there is nothing to take away") {
		t.Errorf("it ended with %d\n%s", code, errOut)
	}
}
