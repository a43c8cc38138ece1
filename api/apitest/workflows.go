package apitest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/google/uuid"

	"github.com/todoku/todoku/notify"
)

// Workflows records what would reach Temporal.
type Workflows struct {
	mu      sync.Mutex
	started []uuid.UUID
	batches []uuid.UUID
	settled []Signal
	woken   []string
	syncs   int

	taskRouter int
	down       bool
	held       chan struct{} // while not nil, starts and signals wait for it to be closed
	waiting    int
	panics     bool
}

// Signal is one word to a workflow.
type Signal struct {
	WorkflowID string
	Status     notify.Status
}

func newWorkflows() *Workflows { return &Workflows{} }

// Down makes every call fail.
func (w *Workflows) Down() { w.mu.Lock(); w.down = true; w.mu.Unlock() }

// Up ends Down.
func (w *Workflows) Up() { w.mu.Lock(); w.down = false; w.mu.Unlock() }

// Panic makes the address of a workflow's page panic, which every answer about a notification needs.
func (w *Workflows) Panic() { w.mu.Lock(); w.panics = true; w.mu.Unlock() }

// Hold makes every call wait until Release.
func (w *Workflows) Hold() { w.mu.Lock(); w.held = make(chan struct{}); w.mu.Unlock() }

// Release ends Hold.
func (w *Workflows) Release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held != nil {
		close(w.held)
		w.held = nil
	}
}

// Waiting is how many calls wait for Release.
func (w *Workflows) Waiting() int { w.mu.Lock(); defer w.mu.Unlock(); return w.waiting }

// Started lists the notifications whose workflows were started.
func (w *Workflows) Started() []uuid.UUID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.started)
}

// Signals lists what workflows were told.
func (w *Workflows) Signals() []Signal {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.settled)
}

var errDown = errors.New("no connection to Temporal")

// StartTaskRouter implements the API's Starter.
func (w *Workflows) StartTaskRouter(ctx context.Context) error {
	return w.call(ctx, func() { w.taskRouter++ })
}

// TaskRouterStarts is how often the workflow of TaskRouter was asked for.
func (w *Workflows) TaskRouterStarts() int { w.mu.Lock(); defer w.mu.Unlock(); return w.taskRouter }

// call waits, fails or records, as the test wants it.
func (w *Workflows) call(ctx context.Context, record func()) error {
	w.mu.Lock()
	held := w.held
	if held != nil {
		w.waiting++
	}
	w.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if held != nil {
		w.waiting--
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case w.down:
		return errDown
	}
	record()
	return nil
}

// StartNotification records a start.
func (w *Workflows) StartNotification(ctx context.Context, id uuid.UUID, _ notify.Channel) error {
	return w.call(ctx, func() { w.started = append(w.started, id) })
}

// StartBatch records a start.
func (w *Workflows) StartBatch(ctx context.Context, _ string, id uuid.UUID, _ notify.Channel) error {
	return w.call(ctx, func() { w.batches = append(w.batches, id) })
}

// Batches lists the batches whose workflows were started.
func (w *Workflows) Batches() []uuid.UUID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.batches)
}

// SyncSchedules records a wish to sync.
func (w *Workflows) SyncSchedules(ctx context.Context, _ bool) error {
	return w.call(ctx, func() { w.syncs++ })
}

// Syncs is how often a sync was asked for.
func (w *Workflows) Syncs() int { w.mu.Lock(); defer w.mu.Unlock(); return w.syncs }

// ScheduleURL is a page of an imagined Web UI.
func (w *Workflows) ScheduleURL(id string) string {
	return "http://ui.example.com/namespaces/default/schedules/" + id
}

// Settled records a signal.
func (w *Workflows) Settled(ctx context.Context, workflowID string, status notify.Status) error {
	return w.call(ctx, func() { w.settled = append(w.settled, Signal{workflowID, status}) })
}

// Wake records a wish to look at the ledger, where the notification's workflow was started.
func (w *Workflows) Wake(ctx context.Context, workflowID string) (alive bool, err error) {
	err = w.call(ctx, func() {
		alive = slices.ContainsFunc(w.started, func(id uuid.UUID) bool { return workflowID == notify.NotificationWorkflowID(id) })
		if alive {
			w.woken = append(w.woken, workflowID)
		}
	})
	return alive, err
}

// Woken lists the workflows that were woken.
func (w *Workflows) Woken() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.woken)
}

// Ping tells whether Temporal is there.
func (w *Workflows) Ping(ctx context.Context) error { return w.call(ctx, func() {}) }

// WorkflowURL is a page of an imagined Web UI.
func (w *Workflows) WorkflowURL(workflowID string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.panics {
		panic("the Web UI is out of order")
	}
	return "http://ui.example.com/namespaces/default/workflows/" + workflowID
}
