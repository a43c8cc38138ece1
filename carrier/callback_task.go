package carrier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"time"

	"github.com/google/uuid"
	taskrouter "github.com/twilio/twilio-go/rest/taskrouter/v1"
)

// CallbackTask is a task for an operator to call somebody back. It names the call and not the number.
type CallbackTask struct {
	WorkspaceSID string
	WorkflowSID  string
	CallID       uuid.UUID      // of ours, whose caller is to be called
	Called       string         // the number that was called: the operator's phone shows it
	Attributes   map[string]any // beside ours, for the workflow's filters

	// Deadline is when the claim of the task's worker runs out: nothing is written to the wire after it. Zero: none.
	Deadline time.Time
}

// CreateCallbackTask makes the task, once, and returns its SID. TaskRouter has no idempotency key: after an ambiguous
// error the task is looked for before it is created again.
func (c *Client) CreateCallbackTask(ctx context.Context, task CallbackTask) (sid string, err error) {
	attributes := maps.Clone(task.Attributes)
	if attributes == nil {
		attributes = map[string]any{}
	}
	attributes[CallbackAttribute], attributes["type"], attributes["to"] = task.CallID, "callback", task.Called
	encoded, err := json.Marshal(attributes)
	if err != nil {
		return "", fmt.Errorf("write the attributes of a task: %w", err)
	}
	e, service := c.beginTasks(ctx, "create a task of calling back")
	e.deadline = task.Deadline
	params := new(taskrouter.CreateTaskParams).SetWorkflowSid(task.WorkflowSID).SetAttributes(string(encoded))
	made, err := service.CreateTask(task.WorkspaceSID, params)
	if err := e.failure(err); err != nil {
		return "", err
	}
	if sid = text(made.Sid); !taskSID.MatchString(sid) {
		return "", e.undecodable("its SID is not one of a task")
	}
	return sid, nil
}

// FindCallbackTask looks for the task of calling back that names a call, and returns its SID. It is empty where the
// complete list of the workspace's tasks, which may be behind, has none, or where the workspace is gone.
func (c *Client) FindCallbackTask(ctx context.Context, workspaceSID string, call uuid.UUID) (sid string, err error) {
	named := fmt.Sprintf("%s == '%s'", CallbackAttribute, call)
	list := new(taskrouter.ListTaskParams).SetEvaluateTaskAttributes(named).SetPageSize(50)
	var at *url.URL
	for {
		e, service := c.beginTasks(ctx, "look for a task of calling back")
		e.page = at
		page, err := service.PageTask(workspaceSID, list, "", "")
		if err := e.failure(err); err != nil {
			if failed, ok := errors.AsType[*Error](err); ok && failed.NotFound() {
				return "", nil
			}
			return "", err
		}
		if page.Tasks == nil { // an empty page says "tasks": []
			return "", e.undecodable("it is not a page of tasks")
		}
		for _, found := range page.Tasks {
			if readAttributes(text(found.Attributes)).CallBack == call {
				return text(found.Sid), nil
			}
		}
		if text(page.Meta.NextPageUrl) == "" {
			return "", nil
		}
		if at = e.follow(*page.Meta.NextPageUrl); at == nil {
			return "", e.undecodable("its next page is not a page of the same list")
		}
	}
}

// CancelTask cancels a task that no operator has, and reports whether it is canceled. A task that an operator has, or
// had, stays as it is, and so does one that is gone: TaskRouter deletes tasks some minutes after their end.
func (c *Client) CancelTask(ctx context.Context, workspaceSID, sid string) (canceled bool, err error) {
	for tries := 1; ; tries++ {
		e, service := c.beginTasks(ctx, "fetch a task")
		task, err := service.FetchTask(workspaceSID, sid)
		if err := e.failure(err); err != nil {
			if failed, ok := errors.AsType[*Error](err); ok && failed.NotFound() {
				return false, nil
			}
			return false, err
		}
		switch text(task.AssignmentStatus) {
		case "canceled":
			return true, nil
		case "pending", "reserved":
		default:
			return false, nil
		}
		e, service = c.beginTasks(ctx, "cancel a task")
		cancel := new(taskrouter.UpdateTaskParams).SetAssignmentStatus("canceled").SetReason("an operator has spoken with the caller")
		_, err = service.UpdateTask(workspaceSID, sid, cancel)
		err = e.failure(err)
		if err == nil {
			return true, nil
		}
		// An operator may have taken it in between, so that Twilio refuses: the task itself says it.
		if tries > 1 {
			return false, err
		}
	}
}

// beginTasks is begin, for TaskRouter.
func (c *Client) beginTasks(ctx context.Context, op string) (*exchange, *taskrouter.ApiService) {
	e := &exchange{client: c, ctx: ctx, op: op, limit: singleAnswerLimit, private: []string{c.accountSID, c.authToken}}
	return e, taskrouter.NewApiService(e.handler())
}
