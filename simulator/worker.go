package simulator

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"time"
)

// worker is an operator: one who takes a task at a time while his activity is an available one.
// https://www.twilio.com/docs/taskrouter/api/worker
type worker struct {
	identity
	ws          *workspace
	activity    *activity
	attributes  string
	known       map[string]any // attributes, decoded
	changedAt   time.Time      // of the activity
	freeSince   time.Time      // the longest free one is reserved first
	reservation *reservation   // the one that keeps him from other tasks
	telling     *delivery      // what the workspace's callback URL is told of him
}

var workerFields = []field{sidOf("ActivitySid", "WA", 0)}

func (ws *workspace) keepWorkers(w *world) {
	ws.workers = collection[*worker]{
		key: "workers", prefix: "WK", url: ws.url + "/Workers",
		make: func(f *form, id identity) *worker {
			k := &worker{
				identity: id, ws: ws, activity: ws.defaultActivity, attributes: "{}", known: map[string]any{},
				changedAt: id.createdAt, freeSince: id.createdAt, telling: &delivery{},
			}
			k.change(f)
			return k
		},
		change: func(k *worker, f *form) {
			before := k.activity
			if k.change(f); f.failed == nil && k.activity != before {
				k.moved(w)
			}
		},
		release: func(k *worker, f *form) {
			switch {
			case k.reservation != nil:
				f.refuse(20001, "Cannot delete worker %s: he has a reservation that is not over.", k.sid)
			case k.activity.available:
				f.refuse(20001, "Cannot delete worker %s while his activity is available.", k.sid)
			}
		},
		settle: func() { w.route(ws) },
		filter: func(f *form) func(*worker) bool {
			f.check([]field{sidOf("ActivitySid", "WA", 0), sidOf("TaskQueueSid", "WQ", 0)})
			return func(k *worker) bool {
				return (!f.has("ActivitySid") || k.activity.sid == f.text("ActivitySid")) &&
					(!f.has("ActivityName") || k.activity.name == f.text("ActivityName"))
			}
		},
	}
}

func (k *worker) change(f *form) {
	f.check(workerFields)
	f.takeName(&k.identity)
	for _, other := range k.ws.workers.order {
		if other != k && strings.EqualFold(other.name, k.name) {
			f.refuse(20001, "A worker with FriendlyName %s exists already.", k.name)
		}
	}
	if f.given("Attributes") {
		var known map[string]any
		if err := json.Unmarshal([]byte(f.text("Attributes")), &known); err != nil || known == nil {
			f.refuse(20001, "Invalid parameter Attributes: it must be a JSON object.")
		}
		if f.failed == nil {
			k.attributes, k.known = f.text("Attributes"), known
		}
	}
	if f.has("ActivitySid") {
		k.ws.takeActivity(f, "ActivitySid", &k.activity)
	}
}

// moveTo changes what the worker is doing, nil for nothing else. The world is locked.
func (k *worker) moveTo(w *world, a *activity) {
	if a == nil || a == k.activity {
		return
	}
	k.activity = a
	k.moved(w)
}

func (k *worker) moved(w *world) {
	k.changedAt = time.Now()
	k.freeSince = k.changedAt
	k.ws.tell(w, "worker.activity.update", k.telling, false, k.params())
}

// free reports whether a task can be reserved for the worker.
func (k *worker) free() bool { return k.activity.available && k.reservation == nil }

// params are what callbacks tell of a worker.
func (k *worker) params() map[string]string {
	return map[string]string{
		"WorkerSid": k.sid, "WorkerName": k.name, "WorkerAttributes": k.attributes,
		"WorkerActivitySid": k.activity.sid, "WorkerActivityName": k.activity.name,
	}
}

func (k *worker) show() any {
	shown := map[string]any{
		"account_sid": k.account, "sid": k.sid, "friendly_name": k.name, "url": k.url,
		"date_created": iso8601(k.createdAt), "date_updated": iso8601(k.updatedAt),
		"date_status_changed": iso8601(k.changedAt), "attributes": k.attributes,
		"available": k.activity.available, "workspace_sid": k.ws.sid,
		"links": k.links(map[string]string{
			"channels": "/Channels", "activity": "/Activity", "worker_statistics": "/Statistics",
			"reservations": "/Reservations",
		}),
	}
	maps.Copy(shown, k.activity.naming("activity"))
	return shown
}

// integerOf is a parameter that was checked to be an integer.
func integerOf(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
