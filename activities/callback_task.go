package activities

import (
	"context"
	"errors"
	"time"

	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/store"
)

// errNoWorkspace ends with an apply: the next try after it makes the task.
var errNoWorkspace = errors.New(
	"a task of calling back waits: nothing is set up at TaskRouter; todoku taskrouter apply sets it up")

// callbackTask takes the next step towards the one task of calling back that was decided upon for a call, or towards
// the end of one that was withdrawn. It returns how long to wait before the step after it; 0: there is none, or it is
// due.
//
// TaskRouter has no idempotency key. So the intent is written before the task is posted, and a task that may have been
// posted is looked for: only two complete lists without it, AMBIGUITY_WINDOW apart, let it be posted again.
func (a *Activities) callbackTask(ctx context.Context, c store.InboundCall) (wait time.Duration, err error) {
	policy, err := a.Store.InboundPolicy(ctx)
	if err != nil {
		return 0, err
	}
	if !policy.SetUp() {
		return 0, errNoWorkspace
	}
	deadline := time.Now().Add(a.Terms.lease()) // before the database counts from its own moment
	task, err := a.Store.ClaimCallbackTask(ctx, c.ID, policy.WorkspaceSID, a.Terms.lease()+a.Terms.answerLimit())
	if err != nil {
		return 0, err
	}
	post := func() error {
		sid, err := a.Carrier.CreateCallbackTask(ctx, carrier.CallbackTask{
			WorkspaceSID: policy.WorkspaceSID, WorkflowSID: policy.WorkflowSID, CallID: c.ID, Called: valueOf(c.To),
			Attributes: policy.TaskAttributes, Deadline: deadline,
		})
		switch class := carrier.ClassOf(err); {
		case err == nil:
			return a.Store.MarkInboundTask(ctx, c.ID, sid)
		case class == "" || class == carrier.Ambiguous:
			return errors.Join(err, a.Store.CallbackTaskInDoubt(detached(ctx), task))
		}
		return errors.Join(err, a.Store.CallbackTaskRefused(detached(ctx), task))
	}
	switch task.Step {
	case store.CallbackPost:
		return 0, post()
	case store.CallbackWait:
		return task.In, nil
	case store.CallbackOver:
		return 0, nil
	}
	if task.TaskSID == "" {
		if task.TaskSID, err = a.Carrier.FindCallbackTask(ctx, task.WorkspaceSID, c.ID); err != nil {
			return 0, errors.Join(err, a.Store.CallbackTaskInDoubt(detached(ctx), task))
		}
	}
	window := a.Terms.AmbiguityWindow
	switch {
	case task.TaskSID != "" && task.Withdrawn:
		return 0, a.cancelCallbackTask(ctx, task)
	case task.TaskSID != "":
		return 0, a.Store.MarkInboundTask(ctx, c.ID, task.TaskSID)
	case task.Absent < window:
		return max(window-max(task.Absent, 0), time.Millisecond), a.Store.CallbackTaskAbsent(ctx, task)
	}
	deadline = time.Now().Add(a.Terms.lease())
	again, err := a.Store.RepostCallbackTask(ctx, &task, policy.WorkspaceSID, a.Terms.lease()+a.Terms.answerLimit())
	if err != nil || !again {
		return 0, err
	}
	return 0, post()
}

// cancelCallbackTask takes a task back that was withdrawn, unless an operator has it.
func (a *Activities) cancelCallbackTask(ctx context.Context, task store.CallbackTask) error {
	canceled, err := a.Carrier.CancelTask(ctx, task.WorkspaceSID, task.TaskSID)
	if err != nil {
		return errors.Join(err, a.Store.CallbackTaskInDoubt(detached(ctx), task))
	}
	return a.Store.CloseWithdrawnTask(ctx, task, canceled)
}
