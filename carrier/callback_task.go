package carrier

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

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
}

// EnsureCallbackTask makes the task, unless TaskRouter has one for the same call, and returns its SID.
// TaskRouter has no idempotency key: a task whose answer was lost is found by its attributes at the next
// try.
func (c *Client) EnsureCallbackTask(ctx context.Context, task CallbackTask) (sid string, err error) {
	list := new(taskrouter.ListTaskParams).SetEvaluateTaskAttributes(fmt.Sprintf("%s == '%s'", CallbackAttribute, task.CallID)).SetPageSize(50)
	e, service := c.beginTasks(ctx, "look for a task of calling back")
	page, err := service.PageTask(task.WorkspaceSID, list, "", "")
	if err := e.failure(err); err != nil {
		return "", err
	}
	for _, found := range page.Tasks {
		if readAttributes(text(found.Attributes)).CallBack == task.CallID {
			return text(found.Sid), nil
		}
	}
	attributes := maps.Clone(task.Attributes)
	if attributes == nil {
		attributes = map[string]any{}
	}
	attributes[CallbackAttribute], attributes["type"], attributes["to"] = task.CallID, "callback", task.Called
	encoded, err := json.Marshal(attributes)
	if err != nil {
		return "", fmt.Errorf("write the attributes of a task: %w", err)
	}
	e, service = c.beginTasks(ctx, "create a task of calling back")
	made, err := service.CreateTask(task.WorkspaceSID, new(taskrouter.CreateTaskParams).SetWorkflowSid(task.WorkflowSID).SetAttributes(string(encoded)))
	if err := e.failure(err); err != nil {
		return "", err
	}
	if sid = text(made.Sid); !taskSID.MatchString(sid) {
		return "", e.undecodable("its SID is not one of a task")
	}
	return sid, nil
}

// beginTasks is begin, for TaskRouter.
func (c *Client) beginTasks(ctx context.Context, op string) (*exchange, *taskrouter.ApiService) {
	e := &exchange{client: c, ctx: ctx, op: op, limit: singleAnswerLimit, private: []string{c.accountSID, c.authToken}}
	return e, taskrouter.NewApiService(e.handler())
}
