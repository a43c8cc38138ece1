// Package background runs what a request sets off and does not wait for.
package background

import (
	"context"
	"log/slog"
	"sync"

	"github.com/todoku/todoku/panics"
)

// Tasks runs functions beside the requests, a bounded number at a time. What finds no place is
// refused, so a slow server behind the tasks costs neither memory nor time: whoever submits must
// have another way to get the work done. It is safe for concurrent use.
type Tasks struct {
	ctx     context.Context
	cancel  context.CancelFunc
	atOnce  int
	waiting int

	mu      sync.Mutex
	running int
	queue   []func(context.Context)
	closed  bool
	idle    chan struct{} // closed when nothing runs any more, after Drain began
}

// NewTasks runs at most atOnce functions at one time and lets at most waiting others wait.
func NewTasks(atOnce, waiting int) *Tasks {
	ctx, cancel := context.WithCancel(context.Background())
	return &Tasks{ctx: ctx, cancel: cancel, atOnce: atOnce, waiting: waiting, idle: make(chan struct{})}
}

// Submit runs do soon and reports whether it found a place. The context of do ends when Drain runs
// out of time.
func (t *Tasks) Submit(do func(context.Context)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return false
	case t.running < t.atOnce:
		t.running++
		go t.run(do)
		return true
	case len(t.queue) < t.waiting:
		t.queue = append(t.queue, do)
		return true
	}
	return false
}

func (t *Tasks) run(do func(context.Context)) {
	for do != nil {
		t.runOne(do)
		do = t.next()
	}
}

// runOne logs a panic, which would end the process.
func (t *Tasks) runOne(do func(context.Context)) {
	if err := panics.Catch(func() error { do(t.ctx); return nil }); err != nil {
		slog.Error("a task beside the requests failed", "error", err)
	}
}

// next takes the longest waiting task, or gives the place back.
func (t *Tasks) next() (do func(context.Context)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) > 0 {
		do, t.queue = t.queue[0], t.queue[1:]
		return do
	}
	t.running--
	if t.closed && t.running == 0 {
		close(t.idle)
	}
	return nil
}

// Drain refuses new tasks and waits for those that have a place. When ctx ends first, it cancels
// their contexts, waits for them to return, and returns ctx's error.
func (t *Tasks) Drain(ctx context.Context) error {
	t.mu.Lock()
	if !t.closed {
		t.closed = true
		if t.running == 0 {
			close(t.idle)
		}
	}
	t.mu.Unlock()
	defer t.cancel()
	select {
	case <-t.idle:
		return nil
	case <-ctx.Done():
		t.mu.Lock()
		t.queue = nil
		t.mu.Unlock()
		t.cancel()
		<-t.idle
		return ctx.Err()
	}
}
