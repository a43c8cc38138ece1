package notify

import (
	"slices"
	"testing"
)

func TestFinalStatuses(t *testing.T) {
	final := []Status{Success, Failed, Unknown, Skipped, Canceled}
	for _, s := range Statuses {
		if got, want := s.Final(), slices.Contains(final, s); got != want {
			t.Errorf("%s.Final() = %v, want %v", s, got, want)
		}
	}
}

func TestNoMoveOfOursEndsInSuccessOrLeavesAFinalStatus(t *testing.T) {
	for _, m := range Moves {
		if m.To == Success || m.To == Pending {
			t.Errorf("%v: only the carrier's word says so", m)
		}
		if m.From.Final() {
			t.Errorf("%v leaves a final status", m)
		}
		if m.From == Held || m.To == Held {
			t.Errorf("%v: HELD is never stored", m)
		}
	}
}
