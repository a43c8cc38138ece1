package starter_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/devstack/devstacktest"
	"github.com/todoku/todoku/starter"
	"github.com/todoku/todoku/workflows"
)

func TestMain(m *testing.M) { devstacktest.Main(m) }

func dial(t *testing.T) *starter.Starter {
	t.Helper()
	t.Setenv("TEMPORAL_ADDRESS", devstacktest.Temporal(t))
	s, err := starter.Dial("", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func ensure(t *testing.T, s *starter.Starter) *client.ScheduleDescription {
	t.Helper()
	if err := s.EnsureReconcileSchedule(t.Context()); err != nil {
		t.Fatal(err)
	}
	return describeReconcile(t, s)
}

func describeReconcile(t *testing.T, s *starter.Starter) *client.ScheduleDescription {
	t.Helper()
	return describe(t, s, starter.ReconcileScheduleID)
}

// await waits until the schedule is as it was asked to be, which it is a moment later. What is asked for
// in between may undo it.
func await(t *testing.T, handle client.ScheduleHandle, what string, holds func(*client.Schedule) bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		have, err := handle.Describe(t.Context())
		if err == nil && holds(&have.Schedule) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("waited in vain until the schedule %s: %v", what, err)
		}
	}
}

func TestWorkersMakeTheReconcileScheduleOnceAndMendIt(t *testing.T) {
	s := dial(t)
	handle := s.Client().ScheduleClient().GetHandle(t.Context(), starter.ReconcileScheduleID)
	t.Cleanup(func() { _ = handle.Delete(context.Background()) })

	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			if err := s.EnsureReconcileSchedule(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	made := ensure(t, s)
	if made.Info.LastUpdateAt.Unix() > 0 {
		t.Error("a schedule that is right was updated")
	}

	err := handle.Update(t.Context(), client.ScheduleUpdateOptions{DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
		in.Description.Schedule.Spec.Intervals[0].Every = 24 * time.Hour
		in.Description.Schedule.Policy.Overlap = enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL
		return &client.ScheduleUpdate{Schedule: &in.Description.Schedule}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	await(t, handle, "is changed", func(s *client.Schedule) bool { return s.Spec.Intervals[0].Every == 24*time.Hour })
	if err := handle.Pause(t.Context(), client.SchedulePauseOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, handle, "is paused", func(s *client.Schedule) bool { return s.State.Paused })
	mended := ensure(t, s).Schedule
	if mended.Spec.Intervals[0].Every != activities.ReconcileInterval || mended.Policy.Overlap != enums.SCHEDULE_OVERLAP_POLICY_SKIP ||
		mended.Policy.CatchupWindow != time.Minute {
		t.Errorf("the schedule is %+v with %+v: it was not mended", mended.Spec, mended.Policy)
	}
	if !mended.State.Paused {
		t.Error("a paused schedule goes on")
	}

	if err := handle.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again := ensure(t, s); again.Schedule.State.Paused {
		t.Error("the schedule that replaces a deleted one is paused")
	}
}

// interrupted is a client whose updates of Schedules are interrupted after they have looked.
type interrupted struct {
	client.Client
	meanwhile func()
}

func (c interrupted) ScheduleClient() client.ScheduleClient {
	return interruptedSchedules{c.Client.ScheduleClient(), c.meanwhile}
}

type interruptedSchedules struct {
	client.ScheduleClient
	meanwhile func()
}

func (c interruptedSchedules) GetHandle(ctx context.Context, id string) client.ScheduleHandle {
	return interruptedSchedule{c.ScheduleClient.GetHandle(ctx, id), c.meanwhile}
}

type interruptedSchedule struct {
	client.ScheduleHandle
	meanwhile func()
}

func (c interruptedSchedule) Update(ctx context.Context, options client.ScheduleUpdateOptions) error {
	update := options.DoUpdate
	options.DoUpdate = func(seen client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
		c.meanwhile()
		return update(seen)
	}
	return c.ScheduleHandle.Update(ctx, options)
}

// A worker looks at the schedule, somebody pauses it, and the worker mends what it has seen.
func TestAPauseDuringAMendStays(t *testing.T) {
	s := dial(t)
	ensure(t, s)
	handle := s.Client().ScheduleClient().GetHandle(t.Context(), starter.ReconcileScheduleID)
	t.Cleanup(func() { _ = handle.Delete(context.Background()) })
	err := handle.Update(t.Context(), client.ScheduleUpdateOptions{DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
		in.Description.Schedule.Spec.Intervals[0].Every = 24 * time.Hour
		return &client.ScheduleUpdate{Schedule: &in.Description.Schedule}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	await(t, handle, "is changed", func(s *client.Schedule) bool { return s.Spec.Intervals[0].Every == 24*time.Hour })
	var once sync.Once
	s.Through(func(c client.Client) client.Client {
		return interrupted{c, func() {
			once.Do(func() {
				if err := handle.Pause(t.Context(), client.SchedulePauseOptions{Note: "by hand"}); err != nil {
					t.Error(err)
				}
			})
		}}
	})
	if err := s.EnsureReconcileSchedule(t.Context()); err != nil {
		t.Fatal(err)
	}
	// What is asked for after the mend is seen after it.
	err = handle.Update(t.Context(), client.ScheduleUpdateOptions{DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
		in.Description.Schedule.Policy.CatchupWindow = time.Hour
		return &client.ScheduleUpdate{Schedule: &in.Description.Schedule}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	await(t, handle, "is changed once more", func(s *client.Schedule) bool { return s.Policy.CatchupWindow == time.Hour })
	if seen := describeReconcile(t, s); !seen.Schedule.State.Paused || seen.Schedule.State.Note != "by hand" {
		t.Errorf("the pause was undone: %+v", seen.Schedule.State)
	}
	if mended := ensure(t, s).Schedule; mended.Spec.Intervals[0].Every != activities.ReconcileInterval || !mended.State.Paused {
		t.Errorf("the next look left it %+v, paused %v", mended.Spec, mended.State.Paused)
	}
}

func TestTheScheduleStartsReconcile(t *testing.T) {
	s := dial(t)
	ensure(t, s)
	handle := s.Client().ScheduleClient().GetHandle(t.Context(), starter.ReconcileScheduleID)
	t.Cleanup(func() { _ = handle.Delete(context.Background()) })
	if err := handle.Trigger(t.Context(), client.ScheduleTriggerOptions{}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		have, err := handle.Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(have.Info.RunningWorkflows) == 1 {
			id := have.Info.RunningWorkflows[0].WorkflowID
			run, err := s.Client().DescribeWorkflow(t.Context(), id, "")
			if err != nil {
				t.Fatal(err)
			}
			info, config := run.RawResponse.WorkflowExecutionInfo, run.RawResponse.ExecutionConfig
			if !strings.HasPrefix(id, "reconcile-") || info.Type.Name != "Reconcile" || config.TaskQueue.Name != workflows.TaskQueue ||
				config.WorkflowExecutionTimeout.AsDuration() != workflows.ReconcileTimeout {
				t.Errorf("it started %s, a %s with %+v", id, info.Type.Name, config)
			}
			return
		}
		if time.Now().After(end) {
			t.Fatal("it started nothing")
		}
	}
}
