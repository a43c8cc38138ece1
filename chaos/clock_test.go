package chaos

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/todoku/todoku/bench/rig"
	"github.com/todoku/todoku/devstack"
	"github.com/todoku/todoku/simulator"
)

// TestClocksThatDiffer lets one clock differ from all others, in both directions, while callbacks and answers are lost:
// what was sent is found at a time that our clocks do not show, and is sent once. Our own processes have another clock
// in the long run only, for their program is built anew; Temporal's clock then differs from ours.
func TestClocksThatDiffer(t *testing.T) {
	each, twilio, database := 5, []time.Duration{-10 * time.Second}, []time.Duration{10 * time.Second}
	if *long {
		each, twilio = 50, []time.Duration{-time.Hour, -time.Minute, -10 * time.Second, 10 * time.Second, time.Minute, time.Hour}
		database = twilio
	}
	for _, offset := range twilio {
		t.Run(fmt.Sprintf("Twilio's by %s", offset), func(t *testing.T) {
			loseAnswers(t, start(t, nil), each, offset)
		})
	}
	for _, offset := range database {
		t.Run(fmt.Sprintf("the database's by %s", offset), func(t *testing.T) {
			database, err := rig.StartDatabase(t.Context(), offset)
			if errors.Is(err, devstack.ErrNoFakeTime) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(database.Stop)
			loseAnswers(t, startWith(t, rig.Options{Database: database}), each, 0)
		})
	}
	if !*long {
		return
	}
	program, err := rig.BuildShifted(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, offset := range twilio {
		t.Run(fmt.Sprintf("our processes' by %s", offset), func(t *testing.T) {
			r := startWith(t, rig.Options{
				Program: program, Settings: map[string]string{rig.ClockShift: fmt.Sprint(int(offset.Seconds()))},
			})
			loseAnswers(t, r, each, -offset) // the simulator is one of our processes: its clock is right again
		})
	}
}

// loseAnswers sends notifications of which the carrier accepts each and answers none, and tells of none; its clock is so
// far ahead of its machine's.
func loseAnswers(t *testing.T, r *rig.Rig, each int, clock time.Duration) {
	t.Helper()
	behave(t, r, func(b *simulator.Behaviour) {
		b.ClockOffsetMS = int(clock.Milliseconds())
		b.Callbacks = simulator.Lost
		b.Fault = &simulator.Fault{Kind: simulator.AcceptThenDrop, Count: new(each)}
	})
	var requests []rig.Request
	for n := range each {
		requests = append(requests, single(n))
	}
	accepted := accept(t, r, requests...)
	await(t, time.Minute, "every answer was lost", func(ctx context.Context) (bool, error) {
		left, err := r.Simulator.FaultsLeft(ctx)
		return left == 0, err
	})
	audit(t, r, accepted)
}
