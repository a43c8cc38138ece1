package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/todoku/todoku/bench/rig"
)

// The paces that are watched, with this many workers.
const (
	smsInterval   = 100 * time.Millisecond
	callInterval  = 500 * time.Millisecond
	pacingWorkers = 3
)

// measurePacing accepts more SMS and calls at once than can be sent, and looks at the moments at which
// they reach the carrier.
func (s sizes) measurePacing(ctx context.Context, report *Report) error {
	if s.pacing == 0 {
		return nil
	}
	say("starting the product at its default pace, %d workers", pacingWorkers)
	r, err := rig.Start(ctx, rig.Options{Workers: pacingWorkers, Settings: map[string]string{
		"SMS_SEND_INTERVAL": smsInterval.String(), "CALL_SEND_INTERVAL": callInterval.String(),
	}})
	if err != nil {
		return err
	}
	defer r.Stop()
	var requests []rig.Request
	calls := int(s.pacing / callInterval)
	for i := range int(s.pacing / smsInterval) {
		if i < calls {
			requests = append(requests, rig.Request{Channel: "CALL", To: rig.Number(i), Body: text})
		}
		requests = append(requests, rig.Request{Channel: "SMS", To: rig.Number(i), Body: text})
	}
	if _, err := r.API.SendAll(ctx, s.connections, requests); err != nil {
		return err
	}
	if left, err := r.Ledger.AwaitSettled(ctx, "", patience); err != nil || left > 0 {
		return fmt.Errorf("%d paced notifications did not settle: %w", left, err)
	}
	messages, err := r.Simulator.Messages(ctx)
	if err != nil {
		return err
	}
	report.add(pace(messages, smsInterval, "SMS"))
	made, err := r.Simulator.Calls(ctx)
	if err != nil {
		return err
	}
	report.add(pace(made, callInterval, "calls"))
	return nil
}

// pace holds the moments of one sender's creates against its interval.
func pace(creates []rig.Create, interval time.Duration, what string) figure {
	f := figure{
		what: fmt.Sprintf("pace of %d %s at %v, %d workers", len(creates), what, interval, pacingWorkers),
		must: "99 % of gaps ≥ 80 %, none < 50 %, 11 creates span ≥ 10 intervals − 20 ms, 99 % of the rate used",
	}
	if len(creates) < 12 {
		f.measured = "too few creates"
		return f
	}
	at := make([]time.Time, len(creates))
	for i, create := range creates {
		at[i] = create.CreatedAt
	}
	slices.SortFunc(at, time.Time.Compare)

	wide, least, longest, span := 0, time.Hour, 1, time.Hour
	for i := 1; i < len(at); i++ {
		gap := at[i].Sub(at[i-1])
		least = min(least, gap)
		if gap > at[longest].Sub(at[longest-1]) {
			longest = i
		}
		if gap >= interval*8/10 {
			wide++
		}
		if i >= 10 {
			span = min(span, at[i].Sub(at[i-10]))
		}
	}
	gaps := len(at) - 1
	share := float64(wide) / float64(gaps)
	used := float64(gaps) * float64(interval) / float64(at[gaps].Sub(at[0]))
	f.measured = fmt.Sprintf("%.1f %% of gaps ≥ 80 %%, gaps of %s to %s (after create %d), least span of 11 %s, %.1f %% of the rate used",
		100*share, inMS(least), inMS(at[longest].Sub(at[longest-1])), longest, inMS(span), 100*used)
	f.holds = share >= 0.99 && least >= interval/2 && span >= 10*interval-20*time.Millisecond && used >= 0.99
	return f
}
