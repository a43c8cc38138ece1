package worker_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/store"
)

const callCentre = `workspace: Support
queues: [{name: Sales}, {name: Everyone}]
operators: [{name: aoi, contact_uri: 'client:aoi'}]
routing: {default: {queue: Everyone}}
calls: {number: '+15005550006'}
`

// writes is how often something was changed at TaskRouter, or at a number.
func (h *house) writes() int { h.t.Helper(); return h.twilio.Stats().Writes }

// awaitTaskRouterRun waits until a run is over.
func (h *house) awaitTaskRouterRun(id uuid.UUID) store.TaskRouterRun {
	h.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		run, err := h.store.TaskRouterRun(h.t.Context(), id)
		switch {
		case err != nil:
			h.t.Fatal(err)
		case run.FinishedAt != nil && run.Problem != nil:
			h.t.Fatalf("the run ended with %s", *run.Problem)
		case run.FinishedAt != nil:
			return run
		case time.Now().After(end):
			h.t.Fatal("the run is not over after a minute")
		}
	}
}

func TestAppliesThatAreAskedForTogetherAreDoneOneAfterTheOther(t *testing.T) {
	h := newHouse(t)
	ids := make([]uuid.UUID, 8)
	var rivals errgroup.Group
	for i := range ids {
		ids[i] = uuid.Must(uuid.NewV7())
		rivals.Go(func() error {
			if _, err := h.store.AddTaskRouterRun(t.Context(), ids[i], activities.TaskRouterApply, "f", callCentre); err != nil {
				return err
			}
			return h.starter.StartTaskRouter(t.Context())
		})
	}
	if err := rivals.Wait(); err != nil {
		t.Fatal(err)
	}
	changes := 0
	for _, id := range ids {
		changes += len(h.awaitTaskRouterRun(id).Changes)
	}
	// A workspace, two queues, a worker, a workflow, the flow that calls fall back on, and the number.
	if n := h.writes(); n != 7 || changes != 8 { // with the policy, which is ours
		t.Errorf("%d writes, and %d changes in all runs, want 7 and 8", n, changes)
	}
}

func TestARunWhoseWorkflowNobodyStartedIsCarriedOutAllTheSame(t *testing.T) {
	h := newHouse(t)
	id := uuid.Must(uuid.NewV7())
	if _, err := h.store.AddTaskRouterRun(t.Context(), id, activities.TaskRouterPlan, "f", callCentre); err != nil {
		t.Fatal(err)
	}
	if run := h.awaitTaskRouterRun(id); len(run.Changes) != 8 {
		t.Errorf("it has found %v", run.Changes)
	}
}
