package simulator

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// eventTypes are the events that a workspace's callback URL can ask for. Transfers, and reservations that fail, do not
// happen here.
// https://www.twilio.com/docs/taskrouter/api/event/reference
var eventTypes = []string{
	"task.created", "task.updated", "task.canceled", "task.wrapup", "task.completed", "task.deleted",
	"task-queue.entered", "task-queue.moved", "task-queue.timeout",
	"workflow.target-matched", "workflow.entered", "workflow.timeout", "workflow.skipped",
	"reservation.created", "reservation.accepted", "reservation.rejected", "reservation.timeout",
	"reservation.canceled", "reservation.rescinded", "reservation.completed", "reservation.wrapup", "reservation.failed",
	"task.transfer-initiated", "task.transfer-attempt-failed", "task.transfer-failed", "task.transfer-canceled",
	"task.transfer-completed",
	"worker.activity.update",
}

// lastEvents are the last that is told of a task.
var lastEvents = []string{"task.completed", "task.canceled"}

// tell has the workspace's callback URL told of an event, in the way of the present behaviour's callbacks: the
// events of one task, or of one worker, are the ones that can be reversed, shuffled or repeated. The world is locked.
func (ws *workspace) tell(w *world, event string, of *delivery, over bool, params map[string]string) {
	wanted := ws.filteredEvents()
	if ws.eventCallbackURL == "" || len(wanted) > 0 && !slices.Contains(wanted, event) {
		return
	}
	now := time.Now()
	form := url.Values{
		"AccountSid": {ws.account}, "WorkspaceSid": {ws.sid}, "WorkspaceName": {ws.name},
		"EventType": {event}, "Sid": {newSID("EV")}, "EventDescription": {strings.ReplaceAll(event, ".", " ")},
		"Timestamp":   {strconv.FormatInt(now.Unix(), 10)},
		"TimestampMs": {strconv.FormatInt(now.UnixMilli(), 10)},
	}
	for name, value := range params {
		form.Set(name, value)
	}
	resource, _, _ := strings.Cut(event, ".")
	resource = strings.TrimSuffix(resource, "-queue")
	form.Set("ResourceType", resource)
	form.Set("ResourceSid", params[strings.ToUpper(resource[:1])+resource[1:]+"Sid"])

	due := callback{
		hook:   ws.hook(ws.eventCallbackURL),
		status: event,
		params: sorted(form),
		token:  randomHex(),
	}
	mode := w.behaviour.Callbacks
	if resource == "worker" && mode != Lost {
		mode = Ordered // there is no last event of a worker
	}
	over = over && slices.Contains(lastEvents, event)
	w.pass(events{w}, of, of.arrange(mode, []callback{due}, over))
}

func (ws *workspace) hook(address string) *hook {
	return newHook(address, http.MethodPost, ws.token)
}

// events notes the attempts to tell of TaskRouter's events: only how many there were.
type events struct{ w *world }

func (e events) note(attempt)  { e.w.events++ }
func (e events) label() string { return "TaskRouter event" }
