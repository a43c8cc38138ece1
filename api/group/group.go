// Package group writes together what arrives together: one statement and one commit for many
// requests cost little more than for one.
package group

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// The shape of groups. A value that finds nothing being written is written at once, alone; others
// wait for those that come within the window. To start a statement and to commit it takes the database
// as long as a score of values, so a group that everybody can wait for is a large one.
const (
	size  = 256
	lanes = 2                // groups that are written at the same time
	limit = 10 * time.Second // for one group
)

// How long the first value of a group waits for others.
const (
	Prompt  = 8 * time.Millisecond  // somebody waits for the answer before he asks for more
	Patient = 25 * time.Millisecond // nobody is held up: the carrier waits 15 s for an answer
)

// Write writes values in one transaction and returns a result for each, in their order.
type Write[T, R any] func(ctx context.Context, values ...T) ([]R, error)

// Writer collects values into groups and writes them. It is safe for concurrent use.
type Writer[T, R any] struct {
	window   time.Duration
	write    Write[T, R]
	hopeless func(error) bool

	mu      sync.Mutex
	waiting []*member[T, R] // in the order in which they came
	timer   *time.Timer     // ends the window of those that wait
	ripe    bool            // their window has ended, and no lane was free
	running int
}

type member[T, R any] struct {
	value  T
	result R
	err    error
	done   chan struct{}
}

// NewWriter makes a Writer whose values wait for others for as long as the window: Prompt or Patient.
// When a group fails, each of its members is written alone, so that one bad value spoils no other;
// unless the error is hopeless: then it is that of all.
func NewWriter[T, R any](window time.Duration, write Write[T, R], hopeless func(error) bool) *Writer[T, R] {
	return &Writer[T, R]{window: window, write: write, hopeless: hopeless}
}

// Do writes a value with those that arrive at the same time, and returns after the commit. When ctx
// ends first, the value may still be written.
func (w *Writer[T, R]) Do(ctx context.Context, value T) (R, error) {
	m := &member[T, R]{value: value, done: make(chan struct{})}
	w.add(m)
	select {
	case <-m.done:
		return m.result, m.err
	case <-ctx.Done():
		var none R
		return none, ctx.Err()
	}
}

func (w *Writer[T, R]) add(m *member[T, R]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(w.waiting, m)
	switch {
	case len(w.waiting) >= size, len(w.waiting) == 1 && w.running == 0:
		w.start()
	case len(w.waiting) == 1:
		w.open()
	}
}

// open begins the window of those that wait.
func (w *Writer[T, R]) open() {
	w.timer = time.AfterFunc(w.window, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.waiting) > 0 {
			w.start()
		}
	})
}

// start writes a group as soon as a lane is free.
func (w *Writer[T, R]) start() {
	if w.running == lanes {
		w.ripe = true
		return
	}
	if w.timer != nil {
		w.timer.Stop()
	}
	n := min(len(w.waiting), size)
	members := w.waiting[:n:n]
	w.waiting, w.ripe = w.waiting[n:], false
	if len(w.waiting) > 0 {
		w.open()
	}
	w.running++
	go w.run(members)
}

func (w *Writer[T, R]) run(members []*member[T, R]) {
	w.together(members)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running--
	if len(w.waiting) >= size || w.ripe && len(w.waiting) > 0 {
		w.start()
	}
}

func (w *Writer[T, R]) together(members []*member[T, R]) {
	err := w.once(members)
	if err != nil && len(members) > 1 && !w.hopeless(err) {
		for i := range members {
			w.together(members[i : i+1])
		}
		return
	}
	for _, m := range members {
		m.err = err
		close(m.done)
	}
}

func (w *Writer[T, R]) once(members []*member[T, R]) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil { // here it would end the process, and not one request
			err = fmt.Errorf("panic while writing a group: %v\n%s", cause, debug.Stack())
		}
	}()
	values := make([]T, len(members))
	for i, m := range members {
		values[i] = m.value
	}
	results, err := w.write(ctx, values...)
	if err != nil {
		return err
	}
	for i, m := range members {
		m.result = results[i]
	}
	return nil
}
