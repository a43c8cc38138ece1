package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/bench/rig"
	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/simulator"
	"github.com/todoku/todoku/store"
)

const (
	listTimesOneByOne = 10   // how many times as fast a list must settle as asking for each
	askedOneByOne     = 5000 // so many are, for the time of one
	askedAtOnce       = 8    // as the product does with the few that it asks for one by one
)

// measureListing has batches sent whose callbacks are all lost. It settles a small one by asking for each
// message and writing each answer, and a large one as the product does, by the carrier's list. The
// workers, who would do so by themselves, are stopped in their tracks then.
func (s sizes) measureListing(ctx context.Context, report *Report) error {
	if s.listed == 0 {
		return nil
	}
	say("starting the product without callbacks")
	r, err := rig.Start(ctx, rig.Options{Workers: s.workers, Profiles: s.profiles, Settings: map[string]string{
		"SMS_SEND_INTERVAL": "0s", "STATUS_CHECK_DELAY": "1h",
	}})
	if err != nil {
		return err
	}
	defer r.Stop()
	product, err := newPoller(ctx, r)
	if err != nil {
		return err
	}
	defer product.Store.Close()
	if err := r.Temporal.PauseReconcile(ctx); err != nil {
		return err
	}
	if err := r.Simulator.Behave(ctx, func(b *simulator.Behaviour) { b.Callbacks = simulator.Lost }); err != nil {
		return err
	}
	for _, n := range []int{askedOneByOne, s.listed} {
		if err := sendUnheard(ctx, r, n); err != nil {
			return err
		}
	}
	rows, err := r.Ledger.Rows(ctx, "") // by their age
	if err != nil {
		return err
	}
	few, many := rows[:askedOneByOne], rows[askedOneByOne:]
	frozen, thaw := context.WithCancel(ctx)
	defer thaw()
	go r.Freeze(frozen, rig.PartWorkers)

	defer debug.SetGCPercent(debug.SetGCPercent(workersGCPercent))
	oneByOne, err := effort(r, func() error { return settleOneByOne(ctx, product, few) })
	if err != nil {
		return err
	}
	byList, err := effort(r, func() error {
		_, err := product.CheckStatus(ctx, activities.Ref{WorkflowID: *many[0].WorkflowID})
		return err
	})
	if err != nil {
		return err
	}
	if left, err := r.Ledger.Unsettled(ctx, ""); err != nil || left > 0 {
		return errors.Join(fmt.Errorf("the list left %d unsettled", left), err)
	}
	all := oneByOne.took * time.Duration(len(many)) / time.Duration(len(few))
	report.add(figure{
		what: fmt.Sprintf("%d PENDING rows settled by the carrier's list, read and written", len(many)), must: fmt.Sprintf("at least %d × one by one", listTimesOneByOne),
		measured: fmt.Sprintf("%.2f s, %.1f × one by one", byList.took.Seconds(), all.Seconds()/byList.took.Seconds()),
		beside:   fmt.Sprintf("each fetched and written: %.1f s (%d in %.2f s)", all.Seconds(), len(few), oneByOne.took.Seconds()),
		holds:    all >= listTimesOneByOne*byList.took,
	})
	report.add(figure{
		what:     "of these: processor time of one",
		measured: byList.ofEach(len(many)), beside: oneByOne.ofEach(len(few)),
	})
	return nil
}

// workersGCPercent is the GOGC that a worker has.
const workersGCPercent = 400

// work is what something took, and of whose processor time.
type work struct{ took, asking, postgres, simulator time.Duration }

// effort does something in this process and tells what that took.
func effort(r *rig.Rig, do func() error) (w work, err error) {
	began, before, own := time.Now(), r.CPU(), ownCPU()
	err = do()
	after := r.CPU()
	return work{
		took: time.Since(began), asking: ownCPU() - own,
		postgres: after[rig.PartPostgres] - before[rig.PartPostgres], simulator: after[rig.PartSimulator] - before[rig.PartSimulator],
	}, err
}

func ownCPU() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // it fails for other arguments only
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func (w work) ofEach(n int) string {
	each := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(n) }
	return fmt.Sprintf("%.0f µs (asking %.0f, the statements in Postgres %.0f, simulator %.0f)",
		each(w.asking+w.postgres+w.simulator), each(w.asking), each(w.postgres), each(w.simulator))
}

// newPoller is what asks the carrier in a worker, as a worker has it. What was sent is due at once.
func newPoller(ctx context.Context, r *rig.Rig) (*activities.Activities, error) {
	twilio, err := carrier.New(carrier.Options{AccountSID: account, AuthToken: "simulator", APIURL: r.Simulator.URL})
	if err != nil {
		return nil, err
	}
	ledger, err := store.Open(ctx, r.DatabaseURL())
	return &activities.Activities{Store: ledger, Carrier: twilio, Log: slog.New(slog.DiscardHandler)}, err
}

// sendUnheard sends a batch to n recipients and waits until the carrier has all.
func sendUnheard(ctx context.Context, r *rig.Rig, n int) error {
	b, _, err := r.API.SendBatch(ctx, rig.BatchRequest{
		Query: url.Values{"channel": {"SMS"}, "body": {text}}, File: rig.Recipients(0, n),
	})
	if err != nil {
		return err
	}
	for sent, changed := -1, time.Now(); sent < n; time.Sleep(50 * time.Millisecond) {
		if b, err = r.API.Batch(ctx, b.ID); err != nil {
			return err
		}
		switch pending := b.Counts["pending"]; {
		case pending != sent:
			sent, changed = pending, time.Now()
		case time.Since(changed) > patience:
			return fmt.Errorf("of a batch of %d the carrier has only %d", n, sent)
		}
	}
	return nil
}

// settleOneByOne asks for each message and writes each answer, without what it takes to find out which
// are due.
func settleOneByOne(ctx context.Context, product *activities.Activities, rows []rig.Row) error {
	var g errgroup.Group
	g.SetLimit(askedAtOnce)
	for _, row := range rows {
		g.Go(func() error {
			resource, err := product.Carrier.Fetch(ctx, notify.SMS, *row.TwilioSID)
			if err != nil {
				return err
			}
			resource.NotificationID = row.ID.String()
			settled, err := product.Store.Settle(ctx, resource.Receipt)
			if err == nil && (len(settled) != 1 || !settled[0].JustSettled()) {
				err = fmt.Errorf("%s did not settle %s", resource.Word, row.ID)
			}
			return err
		})
	}
	return g.Wait()
}
