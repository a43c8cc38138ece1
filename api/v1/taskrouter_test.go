package v1_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/todoku/todoku/api/apitest"
	"github.com/todoku/todoku/taskrouter"
)

const runs = "/api/v1/taskrouter/runs"

// callCentre is the body of a request with a file.
func callCentre(t *testing.T, action, file string) string {
	t.Helper()
	text, err := json.Marshal(map[string]string{"action": action, "file": file, "file_name": "centre.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const smallCentre = "workspace: Support\nqueues: [{name: Sales}]\nrouting: {default: {queue: Sales}}\n"

func TestARunIsAcceptedAndReadUntilItIsOver(t *testing.T) {
	a := apitest.Start(t)
	created := a.Do("POST", runs, callCentre(t, "apply", smallCentre))
	id, _ := created.Body["id"].(string)
	if created.Status != 202 || created.Header.Get("Location") != runs+"/"+id || created.Body["state"] != "waiting" {
		t.Fatalf("answer = %d %s", created.Status, created.Text)
	}
	run, err := a.Store.NextTaskRouterRun(t.Context())
	if err != nil || run.ID.String() != id || run.File != smallCentre || run.FileName != "centre.yaml" {
		t.Fatalf("the ledger has %+v, error %v", run, err)
	}
	if err := a.Stop(); err != nil || a.Workflows.TaskRouterStarts() != 1 {
		t.Errorf("its workflow was started %d times, error %v", a.Workflows.TaskRouterStarts(), err)
	}
}

func TestWhatARunHasDoneIsShown(t *testing.T) {
	a := apitest.Start(t)
	for _, test := range []struct{ problem, state string }{{"", "done"}, {"centre.yaml:2: no", "failed"}} {
		id := a.Do("POST", runs, callCentre(t, "plan", smallCentre)).Body["id"].(string)
		changes := []taskrouter.Change{{Action: taskrouter.Create, Kind: taskrouter.Queues, Name: "Sales",
			Fields: []taskrouter.FieldChange{{Field: "TargetWorkers", To: "1==1"}}}}
		if err := a.Store.FinishTaskRouterRun(t.Context(), uuid.MustParse(id), changes, []string{"a note"}, test.problem); err != nil {
			t.Fatal(err)
		}
		// The first word about a run stays.
		if err := a.Store.FinishTaskRouterRun(t.Context(), uuid.MustParse(id), nil, nil, "later"); err != nil {
			t.Fatal(err)
		}
		shown := a.Do("GET", runs+"/"+id, "")
		if shown.Status != 200 || shown.Body["state"] != test.state || shown.Body["finished_at"] == nil ||
			!strings.Contains(shown.Text, `"changes":[{"action":"create","kind":"task queue","name":"Sales","fields":[{"field":"TargetWorkers","to":"1==1"}]}],"notes":["a note"]`) {
			t.Errorf("answer = %d %s", shown.Status, shown.Text)
		}
	}
}

func TestWhatWasMadeIsListed(t *testing.T) {
	a := apitest.Start(t)
	note, err := a.Store.IntendTaskRouterObject(t.Context(), taskrouter.Queues, "Sales", "WS1")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Store.TaskRouterObjectMade(t.Context(), note, "WQ1"); err != nil {
		t.Fatal(err)
	}
	if got := a.Do("GET", "/api/v1/taskrouter/objects", ""); got.Status != 200 || strings.TrimSpace(got.Text) != `{"items":[{"kind":"task queue","name":"Sales","sid":"WQ1"}]}` {
		t.Errorf("answer = %d %s", got.Status, got.Text)
	}
}

func TestRunsThatMakeNoSense(t *testing.T) {
	a := apitest.Start(t)
	for name, test := range map[string]struct {
		body   string
		status int
		code   string
		says   string
	}{
		"no file":         {`{"action": "apply"}`, 422, "taskrouter_file_invalid", "taskrouter.yaml: it is empty"},
		"a wrong file":    {callCentre(t, "plan", "workspace: x\nqueues: [{name: a, color: red}]\nrouting: {default: {queue: a}}\n"), 422, "taskrouter_file_invalid", "centre.yaml:2: a queue has no \\\"color\\\""},
		"several things":  {callCentre(t, "plan", "workspace: x\n"), 422, "validation_failed", "centre.yaml:1: the file needs queues"},
		"no action":       {`{"file": "x"}`, 422, "required", "/action"},
		"another action":  {`{"action": "import"}`, 422, "taskrouter_action_unknown", "use plan, apply or destroy"},
		"an action of 1":  {`{"action": 1}`, 422, "wrong_type", "/action"},
		"a file of 1":     {`{"action": "apply", "file": 1}`, 422, "wrong_type", "/file"},
		"a name of lines": {`{"action": "destroy", "file_name": "a\nb"}`, 422, "name_has_control_characters", "/file_name"},
		"an unknown key":  {`{"action": "destroy", "force": true}`, 422, "unknown_field", "/force"},
		"no JSON":         {`action=apply`, 400, "malformed_json", ""},
	} {
		t.Run(name, func(t *testing.T) {
			answer := a.Do("POST", runs, test.body)
			if answer.Status != test.status || answer.Body["code"] != test.code || !strings.Contains(answer.Text, test.says) {
				t.Errorf("answer = %d %s, want %d %s and %s", answer.Status, answer.Text, test.status, test.code, test.says)
			}
		})
	}
	if got := a.Do("GET", runs+"/0190b0a0-0000-7000-8000-000000000000", ""); got.Status != 404 || got.Body["code"] != "taskrouter_run_not_found" {
		t.Errorf("answer = %d %s", got.Status, got.Text)
	}
	a.AddKey("readsonly", "read", "send")
	if got := a.Do("POST", runs, `{"action": "destroy"}`, "Authorization: Bearer readsonly"); got.Status != 403 {
		t.Errorf("a key that may not manage is answered %d %s", got.Status, got.Text)
	}
}

func TestARunIsAcceptedWhileTemporalIsAwayAndRefusedWithoutTheDatabase(t *testing.T) {
	a := apitest.Start(t)
	a.Workflows.Down()
	if got := a.Do("POST", runs, `{"action": "destroy"}`); got.Status != 202 {
		t.Errorf("answer = %d %s", got.Status, got.Text)
	}
	a.Database.Cut()
	if got := a.Do("POST", runs, `{"action": "destroy"}`); got.Status != 503 || got.Body["code"] != "database_unavailable" {
		t.Errorf("answer = %d %s", got.Status, got.Text)
	}
}
