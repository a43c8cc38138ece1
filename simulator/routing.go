package simulator

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// How tasks find their workers. Everything here runs while the world is locked.

// enterTask gives a new task its place in the workspace and its first queue.
func (w *world) enterTask(ws *workspace, t *task) {
	t.ws, t.status, t.telling = ws, "pending", &delivery{}
	t.keepReservations(w)
	t.filter, t.targets = t.workflow.routing.targets(t.known)
	w.tellTask(t, "task.created", nil)
	w.afterSeconds(t.timeout, func() {
		if !t.over() && t.status != "assigned" {
			w.cancelTask(t, "Task TTL Exceeded")
		}
	})
	w.enterTarget(t)
}

// enterTarget tells of the target that the task has come to, and lets it leave it when its time is over.
func (w *world) enterTarget(t *task) {
	if len(t.targets) == 0 {
		w.tellTask(t, "workflow.timeout", nil)
		w.cancelTask(t, "Workflow timed out")
		return
	}
	target := t.targets[0]
	if target.skipIf != "" && len(t.targets) > 1 && t.skips(target) {
		t.targets = t.targets[1:]
		w.tellTask(t, "workflow.skipped", nil)
		w.enterTarget(t)
		return
	}
	t.enteredAt = time.Now()
	if target.priority != nil {
		t.priority = *target.priority
	}
	w.tellTask(t, "workflow.target-matched", nil)
	w.tellTask(t, "task-queue.entered", nil)
	if target.timeout == nil {
		return
	}
	left := len(t.targets)
	w.afterSeconds(*target.timeout, func() {
		if t.over() || t.status == "assigned" || len(t.targets) != left {
			return
		}
		w.leaveTarget(t)
	})
}

// leaveTarget sends a task that nobody took in time on to the next target, or out of the workflow. One that is
// reserved just then goes on once the reservation is over.
func (w *world) leaveTarget(t *task) {
	if t.status == "reserved" {
		w.timetable.after(w.second()/10, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			if !t.over() && t.status != "assigned" {
				w.leaveTarget(t)
			}
		})
		return
	}
	w.tellTask(t, "task-queue.timeout", nil)
	t.targets = t.targets[1:]
	w.enterTarget(t)
	w.route(t.ws)
}

// skips evaluates the only conditions that Twilio documents for skip_if.
func (t *task) skips(target routingTarget) bool {
	switch target.skipIf {
	case "1==1", "1 == 1":
		return true
	case "workers.available == 0", "workers.available==0":
		return !slices.ContainsFunc(t.ws.workers.order, func(k *worker) bool {
			return k.activity.available && target.queue.target.holds(k.known)
		})
	}
	return false
}

// route reserves what can be reserved: the task of the highest priority first, then the oldest one, for the worker
// who has been free for the longest time.
func (w *world) route(ws *workspace) {
	free := slices.DeleteFunc(slices.Clone(ws.workers.order), func(k *worker) bool { return !k.free() })
	if len(free) == 0 {
		return
	}
	slices.SortStableFunc(free, func(a, b *worker) int { return a.freeSince.Compare(b.freeSince) })
	waiting := slices.DeleteFunc(slices.Clone(ws.tasks.order), func(t *task) bool { return t.status != "pending" })
	slices.SortStableFunc(waiting, func(a, b *task) int { return b.priority - a.priority })
	for _, t := range waiting {
		i := slices.IndexFunc(free, func(k *worker) bool { return t.suits(k) })
		if i < 0 {
			continue
		}
		w.reserve(t, free[i])
		if free = slices.Delete(free, i, i+1); len(free) == 0 {
			return
		}
	}
}

func (t *task) suits(k *worker) bool {
	target := t.targets[0]
	return target.queue.target.holds(k.known) && (target.workers == nil ||
		target.workers.holds(map[string]any{"task": t.known, "worker": k.known}))
}

func (w *world) reserve(t *task, k *worker) {
	r := &reservation{identity: t.reservations.identify(t.account, ""), task: t, worker: k, status: "pending"}
	t.reservations.add(r)
	t.status, t.reservation, k.reservation = "reserved", r, r
	k.moveTo(w, t.queue().reservationActivity)
	w.tellTask(t, "reservation.created", r)
	w.afterSeconds(integerOf(t.workflow.reservationTimeout), func() {
		if r.status == "pending" {
			w.endReservation(r, "timeout", t.ws.timeoutActivity)
		}
	})
	if t.workflow.assignmentCallbackURL != "" {
		w.background(func() { w.askForInstruction(r) })
	}
}

// endReservation frees task and worker of a reservation that nobody accepted.
func (w *world) endReservation(r *reservation, status string, next *activity) {
	t, k := r.task, r.worker
	r.status, r.updatedAt = status, time.Now()
	t.reservation, k.reservation = nil, nil
	k.freeSince = time.Now()
	if t.status == "reserved" {
		t.status = "pending"
	}
	w.tellTask(t, "reservation."+status, r)
	k.moveTo(w, next)
	if status == "timeout" {
		w.bringBack(k)
	}
	w.route(t.ws)
}

// bringBack has a simulated operator who was taken out of service come back to it, if they do that.
func (w *world) bringBack(k *worker) {
	if after := w.behaviour.Operators.ReturnAfterMS; after != nil {
		w.timetable.after(milliseconds(*after), func() { w.resume(k) })
	}
}

// resume makes a worker available again, unless he is already.
func (w *world) resume(k *worker) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range k.ws.activities.order {
		if a.available && !k.activity.available {
			k.moveTo(w, a)
		}
	}
	w.route(k.ws)
}

// instruction is what an application answers to the assignment callback.
// https://www.twilio.com/docs/taskrouter/handle-assignment-callbacks
type instruction struct {
	Instruction      string `json:"instruction"`
	ActivitySID      string `json:"activity_sid"`
	PostWorkActivity string `json:"post_work_activity_sid"`
	To               string `json:"to"`
	From             string `json:"from"`
	URL              string `json:"url"` // of a call: the document for the operator
}

// follow does what the application wants done with the reservation.
func (w *world) follow(r *reservation, do instruction) error {
	if r.status != "pending" {
		return fmt.Errorf("the reservation is no longer pending: it is %s", r.status)
	}
	var next *activity
	for _, sid := range []string{do.ActivitySID, do.PostWorkActivity} {
		if a, ok := r.task.ws.activities.get(sid); ok {
			next = a
		} else if sid != "" {
			return fmt.Errorf("there is no activity %s", sid)
		}
	}
	switch do.Instruction {
	case "accept":
		r.instructed = true
		w.accept(r)
	case "reject":
		r.instructed = true
		w.endReservation(r, "rejected", next)
	case "dequeue", "conference":
		if r.task.stay == nil {
			return errors.New("the task has no call_sid: it was not made by Enqueue")
		}
		if contact, _ := r.worker.known["contact_uri"].(string); do.To == "" && contact == "" {
			return errors.New("neither the instruction nor the worker says whom to call")
		}
		r.instructed, r.postWorkActivity = true, next
		w.ring(r)
	case "call":
		if !isWebURL(do.URL) || do.From == "" {
			return errors.New("the instruction call needs a url, and a number in from")
		}
		if contact, _ := r.worker.known["contact_uri"].(string); do.To == "" && contact == "" {
			return errors.New("neither the instruction nor the worker says whom to call")
		}
		r.instructed, r.postWorkActivity, r.document = true, next, do.URL
		w.ring(r)
	default:
		return fmt.Errorf("the instruction %q is not known here; known are accept, reject, dequeue, conference and call",
			do.Instruction)
	}
	return nil
}

func (w *world) accept(r *reservation) {
	t := r.task
	r.status, r.updatedAt, t.status = "accepted", time.Now(), "assigned"
	w.tellTask(t, "reservation.accepted", r)
	r.worker.moveTo(w, t.queue().assignmentActivity)
}

// ring calls the operator, who does what operators do at present: answer, reject or vanish.
func (w *world) ring(r *reservation) {
	o := w.behaviour.Operators
	what := rand.IntN(o.Answer + o.Reject + o.Vanish)
	w.timetable.after(o.AnswerAfterMS.pick(), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case r.status != "pending":
		case what < o.Answer:
			w.bridge(r, o.TalkMS.pick())
		case what < o.Answer+o.Reject:
			w.endReservation(r, "rejected", nil)
		default: // he lets it ring until the reservation times out
		}
	})
}

// bridge connects the caller with the operator, who hangs up when they have talked. One who was called by the
// instruction call hears its document first, which may connect him with somebody.
func (w *world) bridge(r *reservation, talk time.Duration) {
	w.accept(r)
	if r.task.stay != nil {
		r.task.stay.answered(r.worker)
	} else {
		w.background(func() { w.askForDocument(r) })
	}
	w.timetable.after(talk, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.hangUp(r.task, "bridged")
	})
}

// hangUp ends a conversation, whoever ends it, and with it the task.
func (w *world) hangUp(t *task, result string) {
	if t.over() {
		return
	}
	w.completeTask(t, "hangup")
	if t.stay != nil {
		t.stay.end(result)
	}
}

func (w *world) completeTask(t *task, reason string) {
	r := t.reservation
	t.status, t.reason, t.updatedAt = "completed", reason, time.Now()
	r.status, r.updatedAt = "completed", t.updatedAt
	t.reservation, r.worker.reservation = nil, nil
	r.worker.freeSince = t.updatedAt
	w.tellTask(t, "reservation.completed", r)
	w.tellTask(t, "task.completed", r)
	if r.worker.moveTo(w, r.postWorkActivity); !r.worker.activity.available {
		k := r.worker
		w.timetable.after(w.behaviour.Operators.WrapUpMS.pick(), func() { w.resume(k) })
	}
	w.route(t.ws)
}

// cancelTask ends a task that nobody has taken; its caller, if he still waits, leaves the queue.
func (w *world) cancelTask(t *task, reason string) {
	if t.over() {
		return
	}
	r := t.reservation
	t.status, t.reason, t.updatedAt = "canceled", reason, time.Now()
	if r != nil {
		w.endReservation(r, "canceled", nil)
	}
	w.tellTask(t, "task.canceled", nil)
	if t.stay != nil {
		t.stay.end("leave")
	}
}

// tellTask tells the workspace's callback URL of an event of a task, or of one of its reservations.
func (w *world) tellTask(t *task, event string, r *reservation) {
	params := t.params()
	if r != nil {
		maps.Copy(params, r.params())
	}
	t.ws.tell(w, event, t.telling, t.over(), params)
}

// afterSeconds has do run after so many seconds of TaskRouter's time, with the world locked.
func (w *world) afterSeconds(seconds int, do func()) {
	w.timetable.after(time.Duration(seconds)*w.second(), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		do()
	})
}

// second is how long one second of calls and tasks takes.
func (w *world) second() time.Duration { return milliseconds(w.behaviour.SecondMS) }
