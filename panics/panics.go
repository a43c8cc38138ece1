// Package panics turns panics into errors, so that a goroutine that meets one does not end its process.
package panics

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
)

// Error is a panic that was caught. It holds no values of the program, which may be numbers or texts of
// people: of the panic it has the type, or what the runtime says, and of the stack functions and lines.
type Error struct {
	Cause string
	Stack string // at most 4 kB
}

func (e *Error) Error() string { return "panic: " + e.Cause + "\n" + e.Stack }

const longestStack = 4 << 10

// Catch runs f, and returns its error, or its panic as an *Error.
func Catch(f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = caught(value)
		}
	}()
	return f()
}

// caught makes the error, in the goroutine that panicked, whose stack is still there.
func caught(value any) *Error {
	cause := fmt.Sprintf("%T", value)
	if failure, ok := value.(error); ok {
		if failed, ok := errors.AsType[runtime.Error](failure); ok {
			cause = failed.Error()
		}
	}
	stack := debug.Stack()
	return &Error{Cause: cause, Stack: string(stack[:min(len(stack), longestStack)])}
}

// Group is errgroup.Group, except that a panic of a goroutine is its error.
type Group struct{ inner *errgroup.Group }

// WithContext returns a Group, and a context that the first error ends.
func WithContext(ctx context.Context) (*Group, context.Context) {
	inner, ctx := errgroup.WithContext(ctx)
	return &Group{inner}, ctx
}

// NewGroup returns a Group that lets all of its goroutines finish.
func NewGroup() *Group { return &Group{new(errgroup.Group)} }

// Go runs f in a goroutine, once the limit lets it.
func (g *Group) Go(f func() error) { g.inner.Go(func() error { return Catch(f) }) }

// SetLimit bounds how many goroutines run at the same time.
func (g *Group) SetLimit(n int) { g.inner.SetLimit(n) }

// Wait waits for all goroutines and returns the first error.
func (g *Group) Wait() error { return g.inner.Wait() }
