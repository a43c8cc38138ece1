package chaos

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/todoku/todoku/bench/rig"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/simulator"
)

var callers = flag.Int("callers", 150, "how many people the run of inbound calls lets call, at 100 a second")

// apology is a policy that comes back to everybody with whom nobody has spoken.
var apology = notify.InboundPolicy{
	Greeting: notify.Prompt{Say: "お電話ありがとうございます。"}, CallbackKey: "1", ServiceLevel: 20 * time.Second,
	FollowUps: notify.FollowUps{
		Abandoned: notify.FollowUp{Action: notify.FollowUpSMS, Body: "お電話に出られず申し訳ございません。"},
		TimedOut:  notify.FollowUp{Action: notify.FollowUpSMS, Body: "お電話に出られず申し訳ございません。"},
		Full:      notify.FollowUp{Action: notify.FollowUpSMS, Body: "ただいま電話が混み合っております。"},
		Requested: notify.FollowUp{Action: notify.FollowUpSMS, Body: "折り返しお電話いたします。"},
	},
}

// TestARushOfCallers lets people call at 100 a second, over 50 operators of whom some decline and some
// let it ring, kills the API and a worker with -9 in the middle, and holds what the ledger says of each
// call against what became of it: everybody was answered, called back or told so.
func TestARushOfCallers(t *testing.T) {
	r := start(t, nil)
	if err := r.Simulator.Behave(t.Context(), func(b *simulator.Behaviour) {
		b.SecondMS = 250
		b.Operators = simulator.Operators{
			Answer: 16, Reject: 2, Vanish: 1, AnswerAfterMS: simulator.Span{LeastMS: 100, MostMS: 400}, TalkMS: simulator.Span{LeastMS: 1000, MostMS: 3000},
			WrapUpMS: simulator.Span{LeastMS: 200, MostMS: 500}, ReturnAfterMS: new(1000),
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := r.OpenCallCentre(t.Context(), 50, apology); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := r.Simulator.Ring(t.Context(), simulator.Callers{
		From: rig.Number(0), Calls: *callers, PerSecond: 100, PatienceMS: &simulator.Span{LeastMS: 2000, MostMS: 20000}, Press: &simulator.Press{Digits: "1", Share: .1},
	}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Duration(*callers) * 10 * time.Millisecond / 2)
	r.Kill(r.PIDs(rig.PartAPI)...)
	r.Kill(r.PIDs(rig.PartWorkers)[0])
	t.Logf("%.1f s: killed the API and a worker", time.Since(began).Seconds())

	var rang []rig.Caller
	await(t, 3*time.Minute, "everybody has hung up", func(ctx context.Context) (over bool, err error) {
		rang, err = r.Simulator.Callers(ctx)
		return err == nil && len(rang) == *callers && !slices.ContainsFunc(rang, func(c rig.Caller) bool { return c.EndedAt == nil }), err
	})
	t.Logf("%.1f s: everybody has hung up", time.Since(began).Seconds())
	if left, err := r.Ledger.AwaitInboundClosed(t.Context(), patience); err != nil || left > 0 {
		t.Errorf("%d calls are still open, error %v", left, err)
	}
	t.Logf("%.1f s: nothing is left to be done about any call", time.Since(began).Seconds())
	if _, err := r.Ledger.AwaitSettled(t.Context(), "", patience); err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f s: every SMS has arrived", time.Since(began).Seconds())
	auditCalls(t, r, rang)
}

// fits are the states that a call may have in the ledger, by what the simulator says became of it.
// Whoever presses the key leaves the queue, or hears a message that ends.
var fits = map[string][]notify.InboundState{
	"answered":  {notify.InboundFinished},
	"abandoned": {notify.InboundAbandoned, notify.InboundCallback, notify.InboundTurnedAway},
	"left":      {notify.InboundCallback, notify.InboundTimedOut},
	"ended":     {notify.InboundCallback, notify.InboundTurnedAway},
}

func auditCalls(t *testing.T, r *rig.Rig, rang []rig.Caller) {
	t.Helper()
	ctx := t.Context()
	rows, err := r.Ledger.InboundRows(ctx)
	if err != nil {
		t.Fatal(err)
	}
	ledger := map[string]rig.InboundRow{}
	states := map[string]int{}
	for _, row := range rows {
		ledger[row.CallSID] = row
		name := string(row.State)
		if row.FollowUp != nil {
			name += ", then " + *row.FollowUp
		}
		states[name]++
	}
	sent, err := r.Simulator.ByNumber(ctx)
	if err != nil {
		t.Fatal(err)
	}
	found, outcomes := map[string][]string{}, map[string]int{}
	offend := func(how string, c rig.Caller, row rig.InboundRow) {
		story, _ := r.Ledger.InboundTimeline(ctx, row.ID)
		found[how] = append(found[how], fmt.Sprintf("%s (%s %s) in the ledger %s: %s", c.SID, c.Outcome, c.Problem, row.State, story))
	}
	for _, c := range rang {
		outcomes[c.Outcome]++
		row, kept := ledger[c.SID]
		promised := kept && row.State != notify.InboundFinished
		switch {
		case !kept:
			offend("not in the ledger", c, row)
		case !row.Closed || !row.State.Final():
			offend("open", c, row)
		case !slices.Contains(fits[c.Outcome], row.State):
			offend("in the wrong state", c, row)
		case c.Operator != "" && (row.Operator == nil || *row.Operator != c.Operator):
			offend("with the wrong operator", c, row)
		case promised && len(sent[c.From]) != 1:
			offend(fmt.Sprintf("without exactly one SMS, but %d", len(sent[c.From])), c, row)
		case !promised && len(sent[c.From]) != 0:
			offend("with an SMS for which there was no reason", c, row)
		}
	}
	assignments, err := r.Simulator.Assignments(ctx)
	if err != nil {
		t.Fatal(err)
	}
	open, err := r.Temporal.AwaitClosed(ctx, patience/2)
	if err != nil {
		t.Error(err)
	}
	var table strings.Builder
	line := func(what string, value any) { fmt.Fprintf(&table, "\n  %-36s %v", what, value) }
	line("calls", len(rang))
	for _, outcome := range slices.Sorted(maps.Keys(outcomes)) {
		line("  at the carrier: "+outcome, outcomes[outcome])
	}
	for _, state := range slices.Sorted(maps.Keys(states)) {
		line("  in the ledger: "+state, states[state])
	}
	line("assignment callbacks", assignments.Made)
	line("  failed", assignments.Failed)
	line("  p50, p99, longest", fmt.Sprintf("%.0f ms, %.0f ms, %.0f ms", assignments.P50MS, assignments.P99MS, assignments.MaxMS))
	line("webhooks of calls, p99", fmt.Sprintf("%.0f ms", webhookP99(rang)))
	line("open workflows", len(open))
	t.Logf("audit:%s", table.String())
	for how, stories := range found {
		t.Errorf("%d calls: %s", len(stories), how)
		for _, story := range stories[:min(len(stories), shownOffenders)] {
			t.Log(story)
		}
	}
	if len(open) > 0 {
		t.Errorf("%d workflows are still open", len(open))
	}
}

func webhookP99(rang []rig.Caller) float64 {
	var took []float64
	for _, c := range rang {
		for _, request := range c.Requests {
			took = append(took, request.TookMS)
		}
	}
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}

// TestWhoeverHungUpIsCalledBack lets people give up while no operator is on duty. When the operators
// begin their day, each of those people is given to one of them, once, who is connected with them.
func TestWhoeverHungUpIsCalledBack(t *testing.T) {
	r := start(t, nil)
	policy := apology
	policy.FollowUps.Abandoned = notify.FollowUp{Action: notify.FollowUpTask}
	if err := r.Simulator.Behave(t.Context(), func(b *simulator.Behaviour) { b.Operators.TalkMS = simulator.Span{LeastMS: 100, MostMS: 200} }); err != nil {
		t.Fatal(err)
	}
	if err := r.OpenCallCentre(t.Context(), 3, policy); err != nil {
		t.Fatal(err)
	}
	duty := func(activity string) {
		if err := r.Simulator.Move(t.Context(), activity); err != nil {
			t.Fatal(err)
		}
	}
	duty("Offline")
	const n = 5
	if err := r.Simulator.Ring(t.Context(), simulator.Callers{From: rig.Number(0), Calls: n, PerSecond: 10, PatienceMS: &simulator.Span{LeastMS: 1000, MostMS: 1000}}); err != nil {
		t.Fatal(err)
	}
	await(t, time.Minute, "there is a task for each caller", func(ctx context.Context) (bool, error) {
		rows, err := r.Ledger.InboundRows(ctx)
		return err == nil && len(rows) == n && !slices.ContainsFunc(rows, func(row rig.InboundRow) bool {
			return !row.Closed || row.State != notify.InboundAbandoned || *row.FollowUp != "task"
		}), err
	})
	duty("On duty")
	await(t, time.Minute, "everybody is called back", func(ctx context.Context) (bool, error) {
		dialed, err := r.Simulator.Dialed(ctx)
		slices.Sort(dialed)
		return err == nil && slices.Equal(dialed, []string{rig.Number(0), rig.Number(1), rig.Number(2), rig.Number(3), rig.Number(4)}), err
	})
}

const awayCentre = `workspace: Support
queues: [{name: Everyone}]
operators: [{name: aoi, contact_uri: 'client:aoi', activity: Available}]
routing: {default: {queue: Everyone}}
calls:
  number: '+15005550006'
  away: [申し訳ございません。, We are sorry.]
  follow_up: {missed: {sms: お電話に出られず申し訳ございません。}}
`

// TestCallsWhileTheAPIIsAway keeps the API down while people call. Each hears the fallback at Twilio, is a row soon
// after the API is back, and gets one SMS.
func TestCallsWhileTheAPIIsAway(t *testing.T) {
	for name, callbacks := range map[string]simulator.CallbackMode{
		"until after their end": simulator.Lost, "and their end is told later": simulator.Ordered,
	} {
		t.Run(name, func(t *testing.T) { callWhileTheAPIIsAway(t, callbacks) })
	}
}

func callWhileTheAPIIsAway(t *testing.T, callbacks simulator.CallbackMode) {
	r := start(t, nil)
	if err := r.Simulator.Behave(t.Context(), func(b *simulator.Behaviour) {
		b.SecondMS, b.Callbacks = 250, callbacks
	}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second one has nothing to do
		if err := r.ApplyCallCentre(t.Context(), awayCentre); err != nil {
			t.Fatal(err)
		}
	}
	away, back := context.WithCancel(t.Context())
	defer back()
	go r.KeepDown(away, rig.PartAPI)
	time.Sleep(time.Second)
	const n = 10
	if err := r.Simulator.Ring(t.Context(), simulator.Callers{From: rig.Number(0), Calls: n, PerSecond: 10}); err != nil {
		t.Fatal(err)
	}
	var rang []rig.Caller
	await(t, time.Minute, "everybody has heard the fallback", func(ctx context.Context) (over bool, err error) {
		rang, err = r.Simulator.Callers(ctx)
		return err == nil && len(rang) == n && !slices.ContainsFunc(rang, func(c rig.Caller) bool { return c.EndedAt == nil }), err
	})
	for _, c := range rang {
		heard := slices.ContainsFunc(c.Requests, func(a rig.Asked) bool { return strings.Contains(a.Path, "/Flows/FW") })
		if c.Outcome != "ended" || !heard {
			t.Errorf("the call ended with %s: %s", c.Outcome, c.Problem)
		}
	}
	if rows, err := r.Ledger.InboundRows(t.Context()); err != nil || len(rows) != 0 {
		t.Fatalf("%d rows while the API is away, error %v", len(rows), err)
	}
	back()
	await(t, 2*time.Minute, "each is a row", func(ctx context.Context) (bool, error) {
		if err := r.Temporal.TriggerReconcile(ctx); err != nil {
			return false, err
		}
		time.Sleep(2 * time.Second)
		rows, err := r.Ledger.InboundRows(ctx)
		return err == nil && len(rows) == n, err
	})
	if left, err := r.Ledger.AwaitInboundClosed(t.Context(), patience); err != nil || left > 0 {
		t.Errorf("%d calls are still open, error %v", left, err)
	}
	rows, err := r.Ledger.InboundRows(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if row.State != notify.InboundMissed || row.FollowUp == nil || *row.FollowUp != "sms" {
			t.Errorf("the row is %+v", row)
		}
	}
	if _, err := r.Ledger.AwaitSettled(t.Context(), "", patience); err != nil {
		t.Fatal(err)
	}
	sent, err := r.Simulator.ByNumber(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if got := len(sent[rig.Number(i)]); got != 1 {
			t.Errorf("caller %d got %d SMS, want 1", i, got)
		}
	}
}
