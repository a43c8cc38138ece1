// Package group writes together what arrives together: one statement and one commit for many
// requests cost little more than for one.
package group

import (
	"context"
	"sync"
	"time"

	"github.com/todoku/todoku/panics"
)

// The shape of groups. A value that finds nothing being written is written at once, alone; others
// wait for those that come within the window. To start a statement and to commit it takes the database
// as long as a few values, so a group is large; but not so large that it takes in all that a carrier has
// in flight, who then waits for one lane while the other has nothing to write.
const (
	size  = 128
	lanes = 2 // groups that are written at the same time

	// limit is how long a group may take from its first value on. The groups before it began before it,
	// so that nobody waits for longer, whatever the database does.
	limit = 10 * time.Second
)

// How long the first value of a group waits for others.
const (
	Prompt  = 8 * time.Millisecond  // somebody waits for the answer before he asks for more
	Patient = 25 * time.Millisecond // nobody is held up: the carrier waits 15 s for an answer
)

// Write writes values in one transaction and returns a result for each, in their order. It ends when
// ctx does.
type Write[T, R any] func(ctx context.Context, values ...T) ([]R, error)

// Writer collects values into groups and writes them. It is safe for concurrent use.
type Writer[T, R any] struct {
	window   time.Duration
	write    Write[T, R]
	hopeless func(error) bool

	mu      sync.Mutex
	open    *group[T, R]   // takes values; nil: the next value begins another
	full    []*group[T, R] // wait for a lane, before the open one
	running int
}

// group is what is written together.
type group[T, R any] struct {
	ctx     context.Context // ends at the limit
	release context.CancelFunc
	ripe    bool // its window has ended, or it has none
	values  []T
	done    chan struct{}
	written []outcome[R] // by the places of the values, once it is done
}

type outcome[R any] struct {
	result R
	err    error
}

// NewWriter makes a Writer whose values wait for others for as long as the window: Prompt or Patient.
// When a group fails, each of its members is written alone, so that one bad value spoils no other;
// unless the error is hopeless: then it is that of all.
func NewWriter[T, R any](window time.Duration, write Write[T, R], hopeless func(error) bool) *Writer[T, R] {
	return &Writer[T, R]{window: window, write: write, hopeless: hopeless}
}

// Do writes a value with those that arrive at the same time, and returns after the commit; or with an
// error when ctx ends, or after 10 s: then the value may be written all the same.
func (w *Writer[T, R]) Do(ctx context.Context, value T) (R, error) {
	g, place := w.add(value)
	select {
	case <-g.done:
		return g.written[place].result, g.written[place].err
	case <-ctx.Done():
		var none R
		return none, ctx.Err()
	}
}

func (w *Writer[T, R]) add(value T) (g *group[T, R], place int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == nil {
		w.begin()
	}
	g, place = w.open, len(w.open.values)
	if g.values = append(g.values, value); len(g.values) == size {
		w.full, w.open = append(w.full, g), nil
	}
	w.start()
	return g, place
}

// begin opens a group. Its window begins, unless nothing is being written.
func (w *Writer[T, R]) begin() {
	g := &group[T, R]{done: make(chan struct{}), ripe: w.running == 0}
	g.ctx, g.release = context.WithTimeout(context.Background(), limit)
	if !g.ripe {
		time.AfterFunc(w.window, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			g.ripe = true
			w.start()
		})
	}
	w.open = g
}

// start writes what waits for nothing but a lane, as far as lanes are free.
func (w *Writer[T, R]) start() {
	for w.running < lanes {
		var next *group[T, R]
		switch {
		case len(w.full) > 0:
			next, w.full = w.full[0], w.full[1:]
		case w.open != nil && w.open.ripe:
			next, w.open = w.open, nil
		default:
			return
		}
		w.running++
		go w.run(next)
	}
}

func (w *Writer[T, R]) run(g *group[T, R]) {
	g.written = w.together(g.ctx, g.values)
	g.release()
	close(g.done)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running--
	w.start()
}

func (w *Writer[T, R]) together(ctx context.Context, values []T) []outcome[R] {
	results, err := w.once(ctx, values)
	written := make([]outcome[R], len(values))
	for i := range values {
		switch {
		case err == nil:
			written[i].result = results[i]
		case len(values) > 1 && !w.hopeless(err):
			written[i] = w.together(ctx, values[i:i+1])[0]
		default:
			written[i].err = err
		}
	}
	return written
}

func (w *Writer[T, R]) once(ctx context.Context, values []T) (results []R, err error) {
	err = panics.Catch(func() (err error) { // a panic would end the process, and not one request
		results, err = w.write(ctx, values...)
		return err
	})
	return results, err
}
