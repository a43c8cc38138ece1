package simulator

import (
	"maps"
	"slices"
	"strings"
)

// workspace is one TaskRouter workspace and everything in it.
// https://www.twilio.com/docs/taskrouter/api/workspace
type workspace struct {
	identity
	token                            string // signs its callbacks
	eventCallbackURL, eventsFilter   string
	multiTaskEnabled                 string
	queueOrder                       string
	defaultActivity, timeoutActivity *activity
	activities                       collection[*activity]
	queues                           collection[*taskQueue]
	workers                          collection[*worker]
	workflows                        collection[*workflow]
	tasks                            collection[*task]
}

var workspaceFields = []field{
	webURL("EventCallbackUrl", 0),
	boolean("MultiTaskEnabled"),
	oneOf("PrioritizeQueueOrder", 0, "FIFO", "LIFO"),
	oneOf("Template", 0, "NONE", "FIFO"),
	sidOf("DefaultActivitySid", "WA", 0),
	sidOf("TimeoutActivitySid", "WA", 0),
}

// defaultActivities are there in every new workspace, whichever template it has.
var defaultActivities = []struct {
	name      string
	available bool
}{{"Offline", false}, {"Available", true}, {"Unavailable", false}}

func (w *world) keepWorkspaces(a *account) {
	a.workspaces = collection[*workspace]{
		key: "workspaces", prefix: "WS", url: taskRouterURL + "/v1/Workspaces",
		make: func(f *form, id identity) *workspace {
			ws := &workspace{identity: id, token: a.token, multiTaskEnabled: "true", queueOrder: "FIFO"}
			ws.furnish(w)
			ws.change(f)
			return ws
		},
		change: func(ws *workspace, f *form) {
			ws.token = a.token
			ws.change(f)
		},
		release: func(ws *workspace, f *form) {
			for _, t := range ws.tasks.order {
				if !t.over() {
					f.refuse(20001, "Cannot delete workspace %s: it has tasks that are not over.", ws.sid)
				}
			}
		},
	}
}

// furnish makes the workspace's collections, and the activities that every workspace begins with.
func (ws *workspace) furnish(w *world) {
	ws.keepActivities()
	ws.keepQueues()
	ws.keepWorkers(w)
	ws.keepWorkflows(w)
	ws.keepTasks(w)
	for _, known := range defaultActivities {
		a := &activity{identity: ws.activities.identify(ws.account, known.name), ws: ws, available: known.available}
		ws.activities.add(a)
	}
	ws.defaultActivity = ws.activities.order[0]
	ws.timeoutActivity = ws.activities.order[0]
}

func (ws *workspace) change(f *form) {
	f.check(workspaceFields)
	f.takeName(&ws.identity)
	f.take("EventCallbackUrl", &ws.eventCallbackURL)
	f.take("EventsFilter", &ws.eventsFilter)
	f.take("MultiTaskEnabled", &ws.multiTaskEnabled)
	f.take("PrioritizeQueueOrder", &ws.queueOrder)
	ws.takeActivity(f, "DefaultActivitySid", &ws.defaultActivity)
	ws.takeActivity(f, "TimeoutActivitySid", &ws.timeoutActivity)
	for _, name := range ws.filteredEvents() {
		if !slices.Contains(eventTypes, name) {
			f.refuse(20001, "Invalid parameter EventsFilter: there is no event %s.", name)
		}
	}
}

// filteredEvents are the events that the workspace's callback URL wants to hear of; none: all.
func (ws *workspace) filteredEvents() []string {
	var names []string
	for name := range strings.SplitSeq(ws.eventsFilter, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// takeActivity puts the activity that the parameter names into its place; an empty one takes it out.
func (ws *workspace) takeActivity(f *form, name string, into **activity) {
	sid := f.text(name)
	if sid == "" {
		if f.given(name) {
			*into = nil
		}
		return
	}
	a, ok := ws.activities.get(sid)
	if !ok {
		f.refuse(20001, "Invalid parameter %s: there is no activity %s.", name, sid)
		return
	}
	*into = a
}

// links are the URLs of what belongs to a member.
func (i *identity) links(names map[string]string) map[string]string {
	links := make(map[string]string, len(names))
	for name, path := range names {
		links[name] = i.url + path
	}
	return links
}

func (ws *workspace) show() any {
	shown := map[string]any{
		"account_sid": ws.account, "sid": ws.sid, "friendly_name": ws.name, "url": ws.url,
		"date_created": iso8601(ws.createdAt), "date_updated": iso8601(ws.updatedAt),
		"event_callback_url": ws.eventCallbackURL, "events_filter": orNull(ws.eventsFilter),
		"multi_task_enabled": strings.EqualFold(ws.multiTaskEnabled, "true"), "prioritize_queue_order": ws.queueOrder,
		"links": ws.links(map[string]string{
			"activities": "/Activities", "task_queues": "/TaskQueues", "workers": "/Workers",
			"workflows": "/Workflows", "tasks": "/Tasks", "task_channels": "/TaskChannels", "events": "/Events",
			"statistics": "/Statistics", "real_time_statistics": "/RealTimeStatistics",
			"cumulative_statistics": "/CumulativeStatistics",
		}),
	}
	maps.Copy(shown, ws.defaultActivity.naming("default_activity"))
	maps.Copy(shown, ws.timeoutActivity.naming("timeout_activity"))
	return shown
}

// activity is what a worker can be doing, which makes him available for tasks or not.
// https://www.twilio.com/docs/taskrouter/api/activity
type activity struct {
	identity
	ws        *workspace
	available bool
}

func (ws *workspace) keepActivities() {
	ws.activities = collection[*activity]{
		key: "activities", prefix: "WA", url: ws.url + "/Activities",
		make: func(f *form, id identity) *activity {
			a := &activity{identity: id, ws: ws}
			f.check([]field{boolean("Available")})
			f.takeName(&a.identity)
			a.available = strings.EqualFold(f.text("Available"), "true")
			return a
		},
		// Available cannot be changed: Twilio answers with success and leaves it.
		change: func(a *activity, f *form) { f.takeName(&a.identity) },
		release: func(a *activity, f *form) {
			used := a == ws.defaultActivity || a == ws.timeoutActivity
			for _, k := range ws.workers.order {
				used = used || k.activity == a
			}
			for _, q := range ws.queues.order {
				used = used || q.assignmentActivity == a || q.reservationActivity == a
			}
			if used {
				f.refuse(20001, "Cannot delete activity %s: it is in use.", a.sid)
			}
		},
	}
}

// naming are the two fields by which other resources name the activity, or nulls.
func (a *activity) naming(role string) map[string]any {
	if a == nil {
		return map[string]any{role + "_sid": nil, role + "_name": nil}
	}
	return map[string]any{role + "_sid": a.sid, role + "_name": a.name}
}

func (a *activity) show() any {
	return map[string]any{
		"account_sid": a.account, "sid": a.sid, "friendly_name": a.name, "url": a.url,
		"date_created": iso8601(a.createdAt), "date_updated": iso8601(a.updatedAt),
		"available": a.available, "workspace_sid": a.ws.sid,
		"links": map[string]string{"workspace": a.ws.url},
	}
}

// taskQueue is where tasks wait for the workers that its expression picks.
// https://www.twilio.com/docs/taskrouter/api/task-queue
type taskQueue struct {
	identity
	ws                                      *workspace
	targetWorkers                           string
	target                                  expression
	taskOrder                               string
	maxReservedWorkers                      string
	assignmentActivity, reservationActivity *activity
}

var queueFields = []field{
	integerBetween("MaxReservedWorkers", 1, 50, 0),
	oneOf("TaskOrder", 0, "FIFO", "LIFO"),
	sidOf("AssignmentActivitySid", "WA", 0),
	sidOf("ReservationActivitySid", "WA", 0),
}

func (ws *workspace) keepQueues() {
	ws.queues = collection[*taskQueue]{
		key: "task_queues", prefix: "WQ", url: ws.url + "/TaskQueues",
		make: func(f *form, id identity) *taskQueue {
			q := &taskQueue{identity: id, ws: ws, targetWorkers: "1==1", taskOrder: "FIFO", maxReservedWorkers: "1"}
			q.change(f)
			return q
		},
		change: (*taskQueue).change,
		release: func(q *taskQueue, f *form) {
			for _, flow := range ws.workflows.order {
				if flow.routing.names(q.sid) {
					f.refuse(20001, "Cannot delete task queue %s: workflow %s routes to it.", q.sid, flow.sid)
				}
			}
		},
	}
}

func (q *taskQueue) change(f *form) {
	f.check(queueFields)
	f.takeName(&q.identity)
	target := q.targetWorkers
	if f.take("TargetWorkers", &target); target == "" {
		target = "1==1"
	}
	parsed, err := parseExpression(target)
	if err != nil {
		f.refuse(20001, "Invalid TargetWorkers expression: %v", err)
		return
	}
	q.targetWorkers, q.target = target, parsed
	f.take("TaskOrder", &q.taskOrder)
	f.take("MaxReservedWorkers", &q.maxReservedWorkers)
	q.ws.takeActivity(f, "AssignmentActivitySid", &q.assignmentActivity)
	q.ws.takeActivity(f, "ReservationActivitySid", &q.reservationActivity)
}

func (q *taskQueue) show() any {
	shown := map[string]any{
		"account_sid": q.account, "sid": q.sid, "friendly_name": q.name, "url": q.url,
		"date_created": iso8601(q.createdAt), "date_updated": iso8601(q.updatedAt),
		"target_workers": q.targetWorkers, "task_order": q.taskOrder, "workspace_sid": q.ws.sid,
		"max_reserved_workers": integerOf(q.maxReservedWorkers),
		"links": q.links(map[string]string{
			"statistics": "/Statistics", "real_time_statistics": "/RealTimeStatistics",
			"cumulative_statistics": "/CumulativeStatistics",
		}),
	}
	maps.Copy(shown, q.assignmentActivity.naming("assignment_activity"))
	maps.Copy(shown, q.reservationActivity.naming("reservation_activity"))
	return shown
}
