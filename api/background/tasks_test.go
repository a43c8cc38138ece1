package background

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTasksBeyondTheLimitWaitAndBeyondThatAreRefused(t *testing.T) {
	tasks := NewTasks(2, 1)
	release := make(chan struct{})
	var ran atomic.Int32
	task := func(context.Context) { <-release; ran.Add(1) }
	for i, want := range []bool{true, true, true, false, false} {
		if got := tasks.Submit(task); got != want {
			t.Errorf("task %d: submitted = %v, want %v", i, got, want)
		}
	}
	close(release)
	if err := tasks.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ran.Load(); got != 3 {
		t.Errorf("%d tasks ran, want 3", got)
	}
}

func TestAPlaceIsFreeAgainAfterATask(t *testing.T) {
	tasks := NewTasks(1, 0)
	for range 3 {
		done := make(chan struct{})
		for !tasks.Submit(func(context.Context) { close(done) }) {
			// The goroutine of the task before has not given its place back yet.
		}
		<-done
	}
	if err := tasks.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestDrainCancelsWhatTakesTooLong(t *testing.T) {
	tasks := NewTasks(1, 5)
	stuck := func(ctx context.Context) { <-ctx.Done() }
	tasks.Submit(stuck)
	tasks.Submit(stuck)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tasks.Drain(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Drain = %v, want %v", err, context.Canceled)
	}
	if tasks.Submit(stuck) {
		t.Error("a task was taken after Drain")
	}
}
