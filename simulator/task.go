package simulator

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// task is one piece of work on its way to a worker. https://www.twilio.com/docs/taskrouter/api/task
//
//	pending ──▶ reserved ──▶ assigned ──▶ (wrapping) ──▶ completed
//	   ▲ ╰─────────┤ rejected or timed out
//	   ╰───────────╯                        canceled, from pending and reserved
type task struct {
	identity
	ws           *workspace
	workflow     *workflow
	status       string
	attributes   string
	known        map[string]any // attributes, decoded
	priority     int
	channel      string
	timeout      int // seconds that it may live
	reason       string
	filter       string
	targets      []routingTarget // those that are left; the first is the present one
	enteredAt    time.Time       // the present queue
	reservation  *reservation    // the one that is not over
	reservations collection[*reservation]
	stay         *stay     // of the caller who waits for it; nil: it was made over the API
	telling      *delivery // what the workspace's callback URL is told of it
}

var taskFields = []field{
	integerBetween("Timeout", 1, 1209600, 0),
	integerBetween("Priority", 0, 1<<31-1, 0),
	sidOf("WorkflowSid", "WW", 0),
	sidOf("TaskQueueSid", "WQ", 0),
	dateTime("VirtualStartTime", 0),
}

var taskUpdateFields = []field{
	integerBetween("Priority", 0, 1<<31-1, 0),
	oneOf("AssignmentStatus", 0, "pending", "reserved", "assigned", "canceled", "completed", "wrapping"),
	dateTime("VirtualStartTime", 0),
}

const defaultTaskTimeout = 86400 // seconds

func (ws *workspace) keepTasks(w *world) {
	ws.tasks = collection[*task]{
		key: "tasks", prefix: "WT", url: ws.url + "/Tasks",
		make: func(f *form, id identity) *task {
			f.check(taskFields)
			t := &task{identity: id, channel: cmp.Or(f.text("TaskChannel"), "default"), timeout: defaultTaskTimeout}
			t.readAttributes(f)
			t.workflow = ws.workflowFor(f)
			if f.has("Timeout") {
				t.timeout = integerOf(f.text("Timeout"))
			}
			t.priority = integerOf(f.text("Priority"))
			if f.failed == nil {
				w.enterTask(ws, t)
			}
			return t
		},
		change: func(t *task, f *form) { t.change(w, f) },
		release: func(t *task, f *form) {
			if !t.over() {
				w.cancelTask(t, "deleted")
			}
		},
		settle: func() { w.route(ws) },
		filter: func(f *form) func(*task) bool {
			wanted := f.values["AssignmentStatus"]
			var fits expression
			if f.has("EvaluateTaskAttributes") {
				var err error
				if fits, err = parseExpression(f.text("EvaluateTaskAttributes")); err != nil {
					f.refuse(20001, "EvaluateTaskAttributes: %v", err)
				}
			}
			lag := milliseconds(w.behaviour.TaskListLagMS)
			return func(t *task) bool {
				return time.Since(t.createdAt) >= lag && (len(wanted) == 0 || slices.Contains(wanted, t.status)) &&
					(!f.has("WorkflowSid") || t.workflow.sid == f.text("WorkflowSid")) && (fits == nil || fits.holds(t.known))
			}
		},
	}
}

// workflowFor is the workflow that a create names, or the only one that there is.
func (ws *workspace) workflowFor(f *form) *workflow {
	if !f.has("WorkflowSid") && len(ws.workflows.order) == 1 {
		return ws.workflows.order[0]
	}
	flow, ok := ws.workflows.get(f.text("WorkflowSid"))
	if !ok {
		f.refuse(20001, "There is no workflow %q.", f.text("WorkflowSid"))
	}
	return flow
}

func (t *task) readAttributes(f *form) {
	text := cmp.Or(f.text("Attributes"), "{}")
	var known map[string]any
	if err := json.Unmarshal([]byte(text), &known); err != nil || known == nil {
		f.refuse(20001, "Invalid parameter Attributes: it must be a JSON object.")
		return
	}
	t.attributes, t.known = text, known
}

// change is an update over the API. Status and attributes cannot be changed together.
func (t *task) change(w *world, f *form) {
	f.check(taskUpdateFields)
	status := f.text("AssignmentStatus")
	switch {
	case status != "" && f.given("Attributes"):
		f.refuse(20001, "AssignmentStatus and Attributes cannot be updated together.")
	case status == "canceled" && (t.status == "pending" || t.status == "reserved"),
		status == "completed" && (t.status == "assigned" || t.status == "wrapping"),
		status == "wrapping" && t.status == "assigned", status == "":
	default:
		f.refuse(20001, "Cannot change the assignment status from %s to %s.", t.status, status)
	}
	if f.given("Attributes") {
		t.readAttributes(f)
	}
	if f.failed != nil {
		return
	}
	f.take("Reason", &t.reason)
	if f.has("Priority") {
		t.priority = integerOf(f.text("Priority"))
	}
	switch status {
	case "canceled":
		w.cancelTask(t, t.reason)
	case "completed":
		w.completeTask(t, t.reason)
	case "wrapping":
		t.status = status
		t.reservation.status = status
		w.tellTask(t, "task.wrapup", nil)
		w.tellTask(t, "reservation.wrapup", t.reservation)
	default:
		w.tellTask(t, "task.updated", nil)
	}
}

func (t *task) over() bool { return t.status == "canceled" || t.status == "completed" }

// queue is where the task is, nil before and after.
func (t *task) queue() *taskQueue {
	if len(t.targets) == 0 {
		return nil
	}
	return t.targets[0].queue
}

// params are what callbacks tell of a task.
func (t *task) params() map[string]string {
	params := map[string]string{
		"TaskSid": t.sid, "TaskAttributes": t.attributes, "TaskPriority": strconv.Itoa(t.priority),
		"TaskAge":               strconv.Itoa(int(time.Since(t.createdAt) / time.Second)),
		"TaskAssignmentStatus":  t.status,
		"TaskChannelUniqueName": t.channel,
		"WorkflowSid":           t.workflow.sid,
		"WorkflowName":          t.workflow.name,
		"WorkflowFilterName":    t.filter,
		"TaskDateCreated":       strconv.FormatInt(t.createdAt.Unix(), 10),
		"TaskQueueEnteredDate":  strconv.FormatInt(t.enteredAt.Unix(), 10),
	}
	if q := t.queue(); q != nil {
		maps.Copy(params, map[string]string{
			"TaskQueueSid": q.sid, "TaskQueueName": q.name, "TaskQueueTargetExpression": q.targetWorkers,
		})
	}
	switch t.status {
	case "canceled":
		params["TaskCanceledReason"] = t.reason
	case "completed":
		params["TaskCompletedReason"] = t.reason
	}
	return params
}

func (t *task) show() any {
	shown := map[string]any{
		"account_sid": t.account, "sid": t.sid, "url": t.url, "workspace_sid": t.ws.sid,
		"date_created": iso8601(t.createdAt), "date_updated": iso8601(t.updatedAt),
		"age": int(time.Since(t.createdAt) / time.Second), "assignment_status": t.status,
		"attributes": t.attributes, "addons": "{}", "priority": t.priority, "reason": orNull(t.reason),
		"task_queue_entered_date": iso8601(t.enteredAt), "task_queue_sid": nil, "task_queue_friendly_name": nil,
		"task_channel_sid": "TC" + phoneNumberSID(t.channel)[2:], "task_channel_unique_name": t.channel,
		"timeout": t.timeout, "workflow_sid": t.workflow.sid, "workflow_friendly_name": t.workflow.name,
		"virtual_start_time": iso8601(t.createdAt), "ignore_capacity": false, "routing_target": nil,
		"links": map[string]string{
			"workspace": t.ws.url, "workflow": t.workflow.url, "reservations": t.url + "/Reservations",
		},
	}
	if q := t.queue(); q != nil {
		shown["task_queue_sid"], shown["task_queue_friendly_name"] = q.sid, q.name
	}
	return shown
}

// reservation is a task that is offered to a worker.
// https://www.twilio.com/docs/taskrouter/api/reservations
type reservation struct {
	identity
	task             *task
	worker           *worker
	status           string
	instructed       bool // it is known what to do with it
	postWorkActivity *activity
	document         string // URL of what an operator hears who is called by the instruction call
}

func (t *task) keepReservations(w *world) {
	t.reservations = collection[*reservation]{
		key: "reservations", prefix: "WR", url: t.url + "/Reservations",
		change: func(r *reservation, f *form) { r.change(w, f) },
	}
}

var reservationFields = []field{
	oneOf("ReservationStatus", 0, "pending", "accepted", "rejected", "timeout", "canceled", "rescinded", "wrapping",
		"completed"),
	sidOf("WorkerActivitySid", "WA", 0),
	sidOf("DequeuePostWorkActivitySid", "WA", 0),
	sidOf("PostWorkActivitySid", "WA", 0),
}

// change is an update over the API: what an answer to the assignment callback can say too, or the worker's word.
func (r *reservation) change(w *world, f *form) {
	f.check(reservationFields)
	if r.status != "pending" {
		f.refuseWith(&failure{
			Code: 40144, Status: http.StatusBadRequest,
			Message: "Reservation " + r.sid + " is no longer pending: it is " + r.status + ".",
		})
	}
	var do instruction
	switch {
	case f.has("Instruction"):
		do = instruction{
			Instruction:      f.text("Instruction"),
			ActivitySID:      f.text("WorkerActivitySid"),
			PostWorkActivity: f.text("DequeuePostWorkActivitySid") + f.text("PostWorkActivitySid"),
		}
	case f.text("ReservationStatus") == "accepted":
		do = instruction{Instruction: "accept"}
	case f.text("ReservationStatus") == "rejected":
		do = instruction{Instruction: "reject", ActivitySID: f.text("WorkerActivitySid")}
	default:
		f.refuse(20001, "ReservationStatus can be set to accepted or rejected only.")
	}
	if f.failed != nil {
		return
	}
	if err := w.follow(r, do); err != nil {
		f.refuse(20001, "%v", err)
	}
}

func (r *reservation) params() map[string]string {
	params := map[string]string{"ReservationSid": r.sid, "ReservationStatus": r.status}
	maps.Copy(params, r.worker.params())
	return params
}

func (r *reservation) show() any {
	return map[string]any{
		"account_sid": r.account, "sid": r.sid, "url": r.url, "workspace_sid": r.task.ws.sid,
		"date_created": iso8601(r.createdAt), "date_updated": iso8601(r.updatedAt),
		"reservation_status": r.status, "task_sid": r.task.sid,
		"worker_sid": r.worker.sid, "worker_name": r.worker.name,
		"links": map[string]string{
			"task": r.task.url, "worker": r.worker.url, "workspace": r.task.ws.url,
		},
	}
}
