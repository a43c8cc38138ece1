package v1

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
	"github.com/todoku/todoku/taskrouter"
)

// TaskRouterRun is something that is done at TaskRouter: a plan, an apply or a destroy.
type TaskRouterRun struct {
	ID          uuid.UUID          `json:"id"`
	Action      string             `json:"action" enum:"plan,apply,destroy"`
	State       string             `json:"state" enum:"waiting,done,failed" doc:"Runs are carried out one after the other: one that waits has its turn, or will have."`
	Changes     []TaskRouterChange `json:"changes" nullable:"false" doc:"What a plan found to be done, or what was done, in order. Of a run that failed: what was done before."`
	Notes       []string           `json:"notes" nullable:"false" doc:"What was left alone, and why."`
	Problem     *string            `json:"problem" doc:"Why it failed: the file, its line, and what to do."`
	CreatedAt   time.Time          `json:"created_at"`
	FinishedAt  *time.Time         `json:"finished_at"`
	WorkflowID  string             `json:"workflow_id"`
	WorkflowURL *string            `json:"workflow_url" doc:"The workflow's page in Temporal's Web UI."`
}

// TaskRouterChange is one step of a run.
type TaskRouterChange struct {
	Action taskrouter.Action       `json:"action" enum:"create,update,delete,restore" doc:"restore: a number gets its old webhooks back."`
	Kind   taskrouter.Kind         `json:"kind" enum:"workspace,activity,task queue,worker,workflow,studio flow,phone number,policy"`
	Name   string                  `json:"name"`
	Fields []TaskRouterFieldChange `json:"fields,omitempty" nullable:"false"`
}

// TaskRouterFieldChange is one parameter of Twilio's API. SIDs are written as {kind:name}.
type TaskRouterFieldChange struct {
	Field string `json:"field"`
	From  string `json:"from,omitempty"`
	To    string `json:"to"`
}

// TaskRouterObject is something at Twilio that Todoku made, or a number that it changed.
type TaskRouterObject struct {
	Kind taskrouter.Kind `json:"kind"`
	Name string          `json:"name"`
	SID  string          `json:"sid"`
}

type newTaskRouterRun struct {
	Action   string `json:"action" enum:"plan,apply,destroy" example:"plan"`
	File     string `json:"file,omitempty" doc:"The text of taskrouter.yaml. A destroy needs none: it takes away what Todoku has made."`
	FileName string `json:"file_name,omitempty" maxLength:"255" doc:"What problems call the file." example:"taskrouter.yaml"`
}

type taskRouterRunCreated struct {
	Location string `header:"Location"`
	Body     TaskRouterRun
}

func (a *API) registerTaskRouter(to huma.API) {
	create := operation("create-taskrouter-run", http.MethodPost, "/taskrouter/runs", "TaskRouter", ScopeManage,
		"Set TaskRouter up",
		"plan finds what would be done to make Twilio as the file says; apply does it; destroy takes away what Todoku has made. "+
			"The file is checked at once; the rest is done one run after the other. Nothing that Todoku did not make is deleted.")
	create.DefaultStatus = http.StatusAccepted
	huma.Register(to, withBody(create), a.createTaskRouterRun)

	huma.Register(to, operation("get-taskrouter-run", http.MethodGet, "/taskrouter/runs/{id}", "TaskRouter", ScopeManage,
		"Read a run", "", http.StatusNotFound), a.taskRouterRun)

	huma.Register(to, operation("list-taskrouter-objects", http.MethodGet, "/taskrouter/objects", "TaskRouter", ScopeManage,
		"List what Todoku has made at Twilio", "The oldest first; numbers that it has changed are among them."), a.taskRouterObjects)
}

func (a *API) createTaskRouterRun(ctx context.Context, in *struct{ Body body[newTaskRouterRun] }) (*taskRouterRunCreated, error) {
	want, wrong := in.Body.Value, in.Body.Wrong
	if want.FileName == "" {
		want.FileName = "taskrouter.yaml"
	}
	if strings.ContainsAny(want.FileName, "\r\n") {
		wrong.Add("/file_name", problem.NameControl, "the name has line breaks: remove them")
	}
	switch want.Action {
	case "plan", "apply":
		if _, err := taskrouter.Parse(want.FileName, []byte(want.File)); err != nil && !wrong.At("/file") {
			var problems taskrouter.Problems
			if errors.As(err, &problems) {
				for _, p := range problems {
					wrong.Add("/file", problem.TaskRouterFile, p.String())
				}
			}
		}
	case "destroy":
		want.File = ""
	default:
		if !wrong.At("/action") {
			wrong.Add("/action", problem.TaskRouterAction, "there is no such action: use plan, apply or destroy")
		}
	}
	if len(wrong) > 0 {
		return nil, wrong.Problem()
	}
	run, err := a.Store.AddTaskRouterRun(ctx, uuid.Must(uuid.NewV7()), want.Action, want.FileName, want.File)
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	a.Starts.Submit(func(ctx context.Context) {
		if err := a.Starter.StartTaskRouter(ctx); err != nil {
			a.Logger.WarnContext(ctx, "a run of TaskRouter waits: a worker starts it", "run_id", run.ID, "error", err)
		}
	})
	a.Logger.InfoContext(ctx, "run of TaskRouter accepted", "run_id", run.ID, "action", run.Action)
	return &taskRouterRunCreated{Location: "/api/v1/taskrouter/runs/" + run.ID.String(), Body: a.showTaskRouterRun(run)}, nil
}

func (a *API) taskRouterRun(ctx context.Context, in *struct {
	ID uuid.UUID `path:"id" format:"uuid"`
}) (*struct{ Body TaskRouterRun }, error) {
	run, err := a.Store.TaskRouterRun(ctx, in.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, problem.New(problem.TaskRouterRunNotFound, "there is no run with the id in the path: it is the UUID that the answer to the POST gave")
	case err != nil:
		return nil, a.fail(ctx, err)
	}
	return &struct{ Body TaskRouterRun }{a.showTaskRouterRun(run)}, nil
}

func (a *API) taskRouterObjects(ctx context.Context, _ *struct{}) (*struct{ Body list[TaskRouterObject] }, error) {
	objects, err := a.Store.TaskRouterObjects(ctx)
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	show := func(o store.TaskRouterObject) TaskRouterObject { return TaskRouterObject{o.Kind, o.Name, o.SID} }
	return &struct{ Body list[TaskRouterObject] }{list[TaskRouterObject]{mapped(objects, show)}}, nil
}

func (a *API) showTaskRouterRun(run store.TaskRouterRun) TaskRouterRun {
	shown := TaskRouterRun{
		ID: run.ID, Action: run.Action, State: "waiting", Changes: mapped(run.Changes, showTaskRouterChange), Notes: run.Notes, Problem: run.Problem,
		CreatedAt: run.RequestedAt, FinishedAt: run.FinishedAt, WorkflowID: notify.TaskRouterWorkflowID,
	}
	switch {
	case run.Problem != nil:
		shown.State = "failed"
	case run.FinishedAt != nil:
		shown.State = "done"
	}
	if url := a.Starter.WorkflowURL(notify.TaskRouterWorkflowID); url != "" {
		shown.WorkflowURL = &url
	}
	return shown
}

func showTaskRouterChange(c taskrouter.Change) TaskRouterChange {
	field := func(f taskrouter.FieldChange) TaskRouterFieldChange { return TaskRouterFieldChange(f) }
	return TaskRouterChange{Action: c.Action, Kind: c.Kind, Name: c.Name, Fields: mapped(c.Fields, field)}
}
