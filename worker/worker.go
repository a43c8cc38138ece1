// Package worker runs the workflows and activities on their task queues, and the relay, which
// starts workflows for notifications that have none.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/panics"
	"github.com/todoku/todoku/starter"
	"github.com/todoku/todoku/store"
	"github.com/todoku/todoku/workflows"
)

// stopLimit is how long a worker that stops lets running activities finish. It is longer than the
// lease of a claim and the carrier's answer together, so a graceful stop leaves nothing ambiguous.
const stopLimit = 30 * time.Second

// Worker carries notifications until its context ends.
type Worker struct {
	Starter    *starter.Starter
	Store      *store.Store
	Activities *activities.Activities
	Log        *slog.Logger

	// Admitted reports whether the ledger belongs to the account that is sent through. Nothing is sent
	// before it has returned nil. Nil: the caller knows.
	Admitted func(context.Context) error
}

// Run works until ctx ends, then lets what is in flight finish. It waits for Temporal as long as it
// takes, and reports at /readyz on the listener whether it has found it; /healthz and /metrics are
// there too.
func (w *Worker) Run(ctx context.Context, listener net.Listener) error {
	health := newHealth(w.Store, w.Starter, w.Log)
	server := newServer(health.handler())
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()

	g := panics.NewGroup()
	g.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve health: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		<-serving.Done()
		return server.Close()
	})
	g.Go(func() error {
		defer stopServing()
		return w.work(ctx, health)
	})
	return g.Wait()
}

// newServer answers short requests without a body. A client that is slow, or says nothing, holds no connection.
func newServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
}

func (w *Worker) work(ctx context.Context, health *health) error {
	if !w.awaitTemporal(ctx, health) {
		return nil
	}
	w.Store.GuardClaims()
	workers, senders := w.workers()
	if err := start(workers); err != nil {
		return err
	}
	beside, stopBeside := context.WithCancel(ctx)
	defer stopBeside()
	sending := panics.NewGroup()
	sending.Go(func() error {
		if !w.awaitAdmission(beside) {
			senders = nil
			return nil
		}
		if err := start(senders); err != nil {
			senders = nil
			stopBeside()
			return err
		}
		health.working.Store(true)
		w.Log.Info("worker runs", "namespace", w.Starter.Namespace())
		return nil
	})
	w.background(beside) // until ctx ends, or nothing can be sent
	startErr := sending.Wait()
	health.working.Store(false)

	stopping := panics.NewGroup()
	for _, each := range slices.Concat(workers, senders) {
		stopping.Go(func() error {
			each.Stop()
			return nil
		})
	}
	return errors.Join(startErr, stopping.Wait())
}

// start starts all of them, or none.
func start(workers []worker.Worker) error {
	for i, each := range workers {
		if err := each.Start(); err != nil {
			for _, started := range workers[:i] {
				started.Stop()
			}
			return fmt.Errorf("start worker: %w", err)
		}
	}
	return nil
}

// awaitAdmission waits until the ledger belongs to the account and was held against what Twilio has, and
// reports whether it does: not when ctx ended first. Callers, status checks and schedules do not wait.
func (w *Worker) awaitAdmission(ctx context.Context) bool {
	for first := true; ; first = false {
		err := w.admit(ctx)
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil:
			return true
		case first:
			w.Log.Warn("nothing is sent before the ledger was held against Twilio: trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(time.Second):
		}
	}
}

func (w *Worker) admit(ctx context.Context) error {
	if w.Admitted != nil {
		if err := w.Admitted(ctx); err != nil {
			return err
		}
	}
	return w.Activities.CompareLedger(ctx)
}

// workers makes one Temporal worker for each task queue, so that none can starve another. Those of the
// queues on which notifications are sent are apart.
func (w *Worker) workers() (all, senders []worker.Worker) {
	c := w.Starter.Client()
	w.Activities.Workflows, w.Activities.Shards, w.Activities.Batches, w.Activities.Schedules = w.Starter, w.Starter, w.Starter, w.Starter
	carry := worker.New(c, workflows.TaskQueue, worker.Options{
		DisableRegistrationAliasing: true,
		LocalActivityWorkerOnly:     true, // activities have queues of their own
		WorkerStopTimeout:           stopLimit,
	})
	carry.RegisterWorkflow(workflows.Notification)
	carry.RegisterWorkflow(workflows.Shard)
	carry.RegisterWorkflow(workflows.Batch)
	carry.RegisterWorkflow(workflows.Reconcile)
	carry.RegisterWorkflow(workflows.InboundCall)
	carry.RegisterWorkflow(workflows.TaskRouter)
	carry.RegisterWorkflow(workflows.CarrierCheck)
	all = []worker.Worker{carry}
	for _, queue := range []string{
		activities.SendSMSQueue, activities.SendCallQueue, activities.StatusCheckQueue, activities.InboundQueue, activities.TaskRouterQueue,
	} {
		act := worker.New(c, queue, worker.Options{
			DisableRegistrationAliasing: true,
			DisableWorkflowWorker:       true,
			WorkerStopTimeout:           stopLimit,
			Interceptors:                []interceptor.WorkerInterceptor{&catchPanics{}},
		})
		registerActivities(act, w.Activities, queue)
		if queue == activities.SendSMSQueue || queue == activities.SendCallQueue {
			senders = append(senders, act)
		} else {
			all = append(all, act)
		}
	}
	// Runs of schedules, and their sync, have their workflows beside their activities: a flood of
	// notifications does not delay them either.
	for queue, workflow := range map[string]any{activities.ReminderQueue: workflows.RunSchedule, activities.SyncQueue: workflows.SyncSchedules} {
		both := worker.New(c, queue, worker.Options{
			DisableRegistrationAliasing: true,
			WorkerStopTimeout:           stopLimit,
			Interceptors:                []interceptor.WorkerInterceptor{&catchPanics{}},
		})
		both.RegisterWorkflow(workflow)
		registerActivities(both, w.Activities, queue)
		all = append(all, both)
	}
	return all, senders
}

// registerActivities registers the activities of one task queue, and no others.
func registerActivities(r worker.ActivityRegistry, a *activities.Activities, queue string) {
	for _, activity := range map[string][]any{
		activities.SendSMSQueue:     {a.Send, a.CarryBatch},
		activities.SendCallQueue:    {a.Send, a.CarryBatch},
		activities.StatusCheckQueue: {a.LookUp, a.CheckStatus, a.Reconcile, a.CompareBatch, a.GiveUpCarrierCheck},
		activities.InboundQueue:     {a.FollowInbound},
		activities.TaskRouterQueue:  {a.CarryOutTaskRouter},
		activities.ReminderQueue:    {a.RunSchedule},
		activities.SyncQueue:        {a.SyncSchedules},
	}[queue] {
		r.RegisterActivity(activity)
	}
}

// catchPanics makes errors of the panics of activities. Temporal's SDK does so too, but writes the value of
// the panic, which may be a number or a text, into the workflow's history.
type catchPanics struct {
	interceptor.WorkerInterceptorBase
}

func (*catchPanics) InterceptActivity(ctx context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &catchingActivity{interceptor.ActivityInboundInterceptorBase{Next: next}}
}

type catchingActivity struct {
	interceptor.ActivityInboundInterceptorBase
}

func (a *catchingActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (result any, err error) {
	err = panics.Catch(func() error {
		var failure error
		result, failure = a.Next.ExecuteActivity(ctx, in)
		return failure
	})
	return result, err
}

// awaitTemporal waits until Temporal answers and has our search attributes, as far as it may be asked, and
// reports whether it does: not when ctx ended first.
func (w *Worker) awaitTemporal(ctx context.Context, health *health) bool {
	for said := ""; ; {
		err := w.Starter.EnsureSearchAttributes(ctx)
		attributes, lacking := errors.AsType[*starter.AttributesError](err)
		health.attributes.Store(attributes)
		switch {
		case err == nil:
			return true
		case lacking && attributes.Unknown:
			w.Log.Warn("search attributes are not known", "error", err)
			return true
		case lacking && said != err.Error():
			said = err.Error()
			w.Log.Error("nothing is sent before search attributes are there: waiting for them", "error", err)
		case !lacking && said == "":
			said = err.Error()
			w.Log.Warn("Temporal does not answer yet: waiting for it", "error", err)
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(time.Second):
		}
	}
}

const (
	// keysAreKept is how long the answer to a request with an Idempotency-Key is remembered.
	keysAreKept = 48 * time.Hour
	// runsAreKept is how long runs of TaskRouter are remembered, whose files have numbers in them.
	runsAreKept = 30 * 24 * time.Hour
)

// background runs the relay, and every few minutes repairs what others may have removed and forgets
// what is too old.
func (w *Worker) background(ctx context.Context) {
	g := panics.NewGroup()
	g.Go(func() error {
		relay := Relay{Store: w.Store, Starter: w.Starter, Log: w.Log, ShardSize: w.Activities.Terms.ShardSize}
		relay.Run(ctx)
		return nil
	})
	g.Go(func() error {
		batches := Batches{Store: w.Store, Starter: w.Starter, Log: w.Log}
		batches.Run(ctx)
		return nil
	})
	g.Go(func() error {
		schedules := Schedules{Store: w.Store, Starter: w.Starter, Log: w.Log}
		schedules.Run(ctx)
		return nil
	})
	g.Go(func() error {
		inbound := Inbound{Store: w.Store, Starter: w.Starter, Log: w.Log, CheckAfter: w.Activities.Terms.StatusCheckDelay}
		inbound.Run(ctx)
		return nil
	})
	g.Go(func() error {
		queues := CarrierQueues{Activities: w.Activities, Log: w.Log}
		queues.Run(ctx)
		return nil
	})
	g.Go(func() error {
		taskRouter := TaskRouter{Store: w.Store, Starter: w.Starter, Log: w.Log}
		taskRouter.Run(ctx)
		return nil
	})
	g.Go(func() error {
		// After a fail-over or a restart of the database claims are held until this was done.
		repeat(ctx, w.Log, "comparison", time.Second, "nothing is sent before the ledger was compared with what Twilio has", func(ctx context.Context) error {
			if !w.Store.ClaimsHeld() {
				return nil
			}
			return w.Activities.CompareLedger(ctx)
		})
		return nil
	})
	g.Go(func() error {
		every := time.NewTicker(3 * time.Minute)
		defer every.Stop()
		for {
			for _, do := range []func(context.Context){w.repair, w.forget} {
				if err := panics.Catch(func() error { do(ctx); return nil }); err != nil {
					w.Log.Error("a task of the background failed, and is tried again", "error", err)
				}
			}
			select {
			case <-ctx.Done():
				return nil
			case <-every.C:
			}
		}
	})
	_ = g.Wait() // none fails
}

// repair makes what Temporal must have besides workflows.
func (w *Worker) repair(ctx context.Context) {
	err := w.Starter.EnsureSearchAttributes(ctx)
	if attributes, lacking := errors.AsType[*starter.AttributesError](err); lacking && attributes.Unknown {
		err = nil // said at the start
	}
	err = errors.Join(err, w.Starter.EnsureReconcileSchedule(ctx))
	if err != nil && ctx.Err() == nil {
		w.Log.Warn("search attributes and schedules could not be checked", "error", err)
	}
}

// forget purges what is kept for a time only.
func (w *Worker) forget(ctx context.Context) {
	if _, err := w.Store.PurgeIdempotencyKeys(ctx, keysAreKept); err != nil && ctx.Err() == nil {
		w.Log.Warn("old idempotency keys stay for now", "error", err)
	}
	if _, err := w.Store.PurgeTaskRouterRuns(ctx, runsAreKept); err != nil && ctx.Err() == nil {
		w.Log.Warn("old runs of TaskRouter stay for now", "error", err)
	}
}
