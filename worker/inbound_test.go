package worker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
	"github.com/todoku/todoku/workflows"
)

// tellOfCall records what is told of a call.
func (h *house) tellOfCall(sid string, at time.Time, words ...notify.InboundWord) uuid.UUID {
	h.t.Helper()
	id := notify.InboundID(sid)
	for _, word := range words {
		if _, err := h.store.RecordInbound(h.t.Context(), notify.InboundEvent{
			CallID: id, CallSID: sid, Key: string(word), Kind: string(word), Word: word, At: at, Source: notify.FromWebhook, From: recipient, To: "+15005550006",
			Operator: notify.Operator{SID: "WK00000000000000000000000000000001", Name: "Mari"},
		}); err != nil {
			h.t.Fatal(err)
		}
	}
	return id
}

func newCallSID() string { return "CA" + strings.ReplaceAll(uuid.NewString(), "-", "") }

// awaitCall waits until the call is as the condition says.
func (h *house) awaitCall(id uuid.UUID, what string, is func(store.InboundCall) bool) store.InboundCall {
	h.t.Helper()
	var c store.InboundCall
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var err error
		if c, err = h.store.InboundCall(h.t.Context(), id); err != nil {
			h.t.Fatal(err)
		}
		if is(c) {
			return c
		}
	}
	h.t.Fatalf("it did not come to this: %s; the call is %+v", what, c)
	return c
}

func closed(c store.InboundCall) bool  { return c.ClosedAt != nil }
func started(c store.InboundCall) bool { return c.WorkflowID != nil }

func (h *house) saySorry() {
	h.t.Helper()
	if err := h.store.SaveInboundPolicy(h.t.Context(), notify.InboundPolicy{WorkflowSID: "WW1", FollowUps: notify.FollowUps{
		Abandoned: notify.FollowUp{Action: notify.FollowUpSMS, Body: "We are sorry that we missed your call."},
	}}); err != nil {
		h.t.Fatal(err)
	}
}

func TestWhoeverHungUpGetsOneSMS(t *testing.T) {
	h := newHouse(t)
	h.saySorry()
	id := h.tellOfCall(newCallSID(), time.Now().Add(-time.Minute), notify.WordWaiting, notify.WordHungUp)
	c := h.awaitCall(id, "it is followed up", closed)
	var outcome workflows.InboundOutcome
	if err := h.starter.Client().GetWorkflow(t.Context(), notify.InboundWorkflowID(id), "").Get(t.Context(), &outcome); err != nil {
		t.Fatal(err)
	}
	if outcome != (workflows.InboundOutcome{State: notify.InboundAbandoned, FollowUp: notify.FollowUpSMS}) {
		t.Errorf("the workflow ends with %+v", outcome)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		n, err := h.store.Notification(t.Context(), *c.NotificationID)
		if err != nil {
			t.Fatal(err)
		}
		if n.Status == notify.Success {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the SMS is %s", n.Status)
		}
	}
	if n := h.creates(); n != 1 {
		t.Errorf("%d creates, want 1", n)
	}
}

func TestAWorkflowHearsWhatHappensToItsCall(t *testing.T) {
	h := newHouse(t)
	sid := newCallSID()
	began := time.Now().Add(-time.Minute)
	id := h.tellOfCall(sid, began, notify.WordReceived, notify.WordWaiting)
	h.awaitCall(id, "it has a workflow", started)
	h.tellOfCall(sid, began.Add(time.Second), notify.WordReserved, notify.WordAnswered)
	h.tellOfCall(sid, began.Add(2*time.Second), notify.WordFinished)
	h.awaitCall(id, "it is over", closed)
	var outcome workflows.InboundOutcome
	if err := h.starter.Client().GetWorkflow(t.Context(), notify.InboundWorkflowID(id), "").Get(t.Context(), &outcome); err != nil {
		t.Fatal(err)
	}
	if outcome != (workflows.InboundOutcome{State: notify.InboundFinished, Operator: "WK00000000000000000000000000000001", FollowUp: notify.FollowUpNone}) {
		t.Errorf("the workflow ends with %+v", outcome)
	}
}

func TestACallWhoseWorkflowIsGoneIsFollowedByAnother(t *testing.T) {
	h := newHouse(t)
	h.saySorry()
	sid := newCallSID()
	began := time.Now().Add(-time.Minute)
	id := h.tellOfCall(sid, began, notify.WordWaiting)
	h.awaitCall(id, "it has a workflow", started)
	if err := h.starter.Client().TerminateWorkflow(t.Context(), notify.InboundWorkflowID(id), "", "lost, for the test"); err != nil {
		t.Fatal(err)
	}
	h.tellOfCall(sid, began.Add(time.Second), notify.WordHungUp)
	if c := h.awaitCall(id, "it is followed up", closed); !strings.HasSuffix(*c.WorkflowID, "/r1") || *c.FollowUp != "sms" {
		t.Errorf("%+v", c)
	}
}

// No operator is asked to call a caller back who has spoken with another operator meanwhile.
func TestATaskOfCallingBackIsCanceledWhenTheCallerIsAnswered(t *testing.T) {
	h := newHouse(t)
	run := uuid.Must(uuid.NewV7())
	file := strings.Replace(callCentre, "'+15005550006'}", "'+15005550006', follow_up: {abandoned: task}}", 1)
	if _, err := h.store.AddTaskRouterRun(t.Context(), run, activities.TaskRouterApply, "f", file); err != nil {
		t.Fatal(err)
	}
	h.awaitTaskRouterRun(run)
	missed := h.tellOfCall(newCallSID(), time.Now().Add(-time.Minute), notify.WordWaiting, notify.WordHungUp)
	c := h.awaitCall(missed, "there is a task", closed)
	if c.FollowUp == nil || *c.FollowUp != "task" || c.FollowUpTaskSID == nil {
		t.Fatalf("the call is %+v", c)
	}
	sid, caller := newCallSID(), notify.PhoneNumber{E164: recipient}
	if _, err := h.store.RecordInbound(t.Context(), notify.InboundEvent{
		CallID: notify.InboundID(sid), CallSID: sid, Key: "answered", Kind: "answered", Word: notify.WordAnswered, At: time.Now(), Source: notify.FromWebhook,
		From: recipient, FromHash: caller.Hash(nil), To: "+15005550006",
	}); err != nil {
		t.Fatal(err)
	}
	c = h.awaitCall(missed, "the task is withdrawn", func(c store.InboundCall) bool { return closed(c) && *c.FollowUp == "none" })
	if *c.FollowUpReason != notify.FollowUpSpoken || !strings.HasSuffix(*c.WorkflowID, "/r1") {
		t.Errorf("the call is %+v", c)
	}
}
