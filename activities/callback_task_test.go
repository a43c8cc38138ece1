package activities_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/notify"
)

// toBeCalledBack is a call whose caller an operator is to call back, and the call centre's workspace.
func toBeCalledBack(t *testing.T) (b *bench, workspace string, id uuid.UUID) {
	t.Helper()
	b = newInboundBench(t, notify.InboundPolicy{})
	policy := b.callCentre()
	if err := b.Store.SaveInboundPolicy(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	return b, policy.WorkspaceSID, b.rings("+819012345678", time.Minute, "", notify.WordWaiting, notify.WordHungUp)
}

// followToTheEnd does what the call's workflow does: it looks at the call until nothing is left to be done, and tries
// again after errors.
func (b *bench) followToTheEnd(id uuid.UUID) {
	for range 100 {
		next, err := b.FollowInbound(b.t.Context(), id)
		if err == nil && next.Done {
			return
		}
		time.Sleep(min(max(next.In, 20*time.Millisecond), time.Second))
	}
	b.t.Error("the call is never done with")
}

// wantOneTask checks that TaskRouter has one task, and that the ledger knows it.
func (b *bench) wantOneTask(workspace string, id uuid.UUID) {
	b.t.Helper()
	b.behave(`{}`)
	tasks := b.tasks(workspace)
	if len(tasks) != 1 {
		b.t.Fatalf("%d tasks, want 1", len(tasks))
	}
	c, err := b.Store.InboundCall(b.t.Context(), id)
	if err != nil || c.FollowUpTaskSID == nil || *c.FollowUpTaskSID != tasks[0]["sid"] {
		b.t.Errorf("the ledger has task %v of %v, error %v", shown(c.FollowUpTaskSID), tasks[0]["sid"], err)
	}
}

func TestTwoWorkersMakeOneTaskOfCallingBack(t *testing.T) {
	b, workspace, id := toBeCalledBack(t)
	b.behave(`{"latency_ms": 300}`) // each has listed before the other one creates
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() { b.followToTheEnd(id) })
	}
	workers.Wait()
	b.wantOneTask(workspace, id)
}

func TestATaskWhoseAnswerWasLostIsFoundThoughTheListIsBehind(t *testing.T) {
	for _, fault := range []string{"accept_then_drop", "http_500_after_accept", "html_503_after_accept"} {
		t.Run(fault, func(t *testing.T) {
			b, workspace, id := toBeCalledBack(t)
			b.behave(`{"fault": {"kind": "` + fault + `", "count": 1}, "task_list_lag_ms": 150}`)
			b.followToTheEnd(id)
			b.wantOneTask(workspace, id)
		})
	}
}

func TestATaskOfAWorkerThatDiedIsFoundThoughTheListIsBehind(t *testing.T) {
	b, workspace, id := toBeCalledBack(t)
	b.Terms.Lease = 500 * time.Millisecond
	b.behave(`{"latency_ms": 300, "task_list_lag_ms": 1000}`)
	ctx, die := context.WithCancel(t.Context())
	defer die()
	b.posting = die
	if _, err := b.FollowInbound(ctx, id); err == nil {
		t.Fatal("the worker did not die in between")
	}
	b.posting = nil
	b.behave(`{"task_list_lag_ms": 1000}`)
	b.Terms.AmbiguityWindow = time.Second
	b.followToTheEnd(id)
	b.wantOneTask(workspace, id)
}

func TestATaskThatWasNeverMadeIsMadeAfterTwoListsWithoutIt(t *testing.T) {
	b, workspace, id := toBeCalledBack(t)
	b.behave(`{"fault": {"kind": "http_500", "count": 1}}`)
	began := time.Now()
	b.followToTheEnd(id)
	if took := time.Since(began); took < b.Terms.AmbiguityWindow {
		t.Errorf("it was made again after %v, before the window was over", took)
	}
	b.wantOneTask(workspace, id)
}

func TestATaskThatTwilioRefusesForNowIsMadeAtTheNextTry(t *testing.T) {
	b, workspace, id := toBeCalledBack(t)
	b.Terms.AmbiguityWindow = time.Hour
	b.behave(`{"fault": {"kind": "rate_limited", "count": 2}}`)
	b.followToTheEnd(id)
	b.wantOneTask(workspace, id)
}

// answered is another call of the same caller, who speaks with an operator.
func (b *bench) answered() {
	b.t.Helper()
	now := b.rings("+819012345678", 0, "", notify.WordAnswered)
	if _, err := b.Store.WithdrawFollowUps(b.t.Context(), now); err != nil {
		b.t.Fatal(err)
	}
}

func TestATaskOfCallingBackIsCanceledOnceTheCallerIsAnswered(t *testing.T) {
	b, workspace, id := toBeCalledBack(t)
	b.followToTheEnd(id)
	for range 2 {
		b.answered()
		b.followToTheEnd(id)
	}
	status, why := b.tasks(workspace)[0]["assignment_status"], b.becauseOf(id)
	if status != "canceled" || why != notify.FollowUpSpoken {
		t.Errorf("the task is %v, because %q", status, why)
	}
}

func TestATaskWhoseAnswerWasLostIsCanceledOnceTheCallerIsAnswered(t *testing.T) {
	b, workspace, id := toBeCalledBack(t)
	b.behave(`{"fault": {"kind": "accept_then_drop", "count": 1}, "task_list_lag_ms": 150}`)
	if _, err := b.FollowInbound(t.Context(), id); err == nil {
		t.Fatal("the lost answer is no error")
	}
	b.answered()
	b.followToTheEnd(id)
	b.behave(`{}`)
	tasks, why := b.tasks(workspace), b.becauseOf(id)
	if len(tasks) != 1 || tasks[0]["assignment_status"] != "canceled" || why != notify.FollowUpSpoken {
		t.Errorf("the tasks are %v, because %q", tasks, why)
	}
}

func TestATaskThatWasNeverPostedIsNotMadeOnceTheCallerIsAnswered(t *testing.T) {
	for _, fault := range []string{"rate_limited", "http_500"} {
		t.Run(fault, func(t *testing.T) {
			b, workspace, id := toBeCalledBack(t)
			b.behave(`{"fault": {"kind": "` + fault + `", "count": 1}}`)
			if _, err := b.FollowInbound(t.Context(), id); err == nil {
				t.Fatal("the refusal is no error")
			}
			b.answered()
			b.followToTheEnd(id)
			if tasks := b.tasks(workspace); len(tasks) != 0 || b.becauseOf(id) != notify.FollowUpSpoken {
				t.Errorf("the tasks are %v, because %q", tasks, b.becauseOf(id))
			}
		})
	}
}

func TestATaskThatAnOperatorHasStays(t *testing.T) {
	b, workspace, id := toBeCalledBack(t)
	b.followToTheEnd(id)
	activity := ""
	for _, a := range b.twilio("/v1/Workspaces/" + workspace + "/Activities")["activities"].([]any) {
		if a := a.(map[string]any); a["available"] == true {
			activity = a["sid"].(string)
		}
	}
	b.twilio("/v1/Workspaces/"+workspace+"/Workers", "FriendlyName", "aoi", "ActivitySid", activity, "Attributes", "{}")
	task := "/v1/Workspaces/" + workspace + "/Tasks/" + b.tasks(workspace)[0]["sid"].(string)
	reservation := b.twilio(task + "/Reservations")["reservations"].([]any)[0].(map[string]any)["sid"].(string)
	b.twilio(task+"/Reservations/"+reservation, "ReservationStatus", "accepted")
	b.answered()
	b.followToTheEnd(id)
	if status := b.tasks(workspace)[0]["assignment_status"]; status != "assigned" || b.becauseOf(id) != "" {
		t.Errorf("the task is %v, because %q", status, b.becauseOf(id))
	}
}

// An event may tell of the task before a list shows it.
func TestATaskThatAnEventTellsOfIsNotLookedFor(t *testing.T) {
	b, workspace, id := toBeCalledBack(t)
	b.Terms.AmbiguityWindow = time.Hour
	b.behave(`{"fault": {"kind": "accept_then_drop", "count": 1}}`)
	if _, err := b.FollowInbound(t.Context(), id); err == nil {
		t.Fatal("the lost answer is no error")
	}
	sid := b.tasks(workspace)[0]["sid"].(string)
	b.behave(`{"task_list_lag_ms": 3600000}`)
	if _, err := b.Store.RecordInbound(t.Context(), notify.InboundEvent{
		CallID: id, TaskSID: sid, Key: "EV1", Kind: "task.created", Word: notify.WordCallbackTask, At: time.Now(),
		Source: notify.FromWebhook,
	}); err != nil {
		t.Fatal(err)
	}
	b.followToTheEnd(id)
	b.wantOneTask(workspace, id)
}
