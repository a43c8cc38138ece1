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

func TestOnlyMovesInTheTableAreAllowed(t *testing.T) {
	allowed := map[Move]bool{
		{Accepted, Sending}: true, {Sending, Accepted}: true, {Sending, Failed}: true, {Sending, Unknown}: true,
		{Accepted, Failed}: true, {Pending, Unknown}: true, {Accepted, Skipped}: true, {Accepted, Canceled}: true,
	}
	for _, from := range Statuses {
		for _, to := range Statuses {
			m := Move{from, to}
			if got := m.Allowed(); got != allowed[m] {
				t.Errorf("%s to %s: allowed = %v, want %v", from, to, got, allowed[m])
			}
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

func TestMovesThatEndAClaimNeedItsToken(t *testing.T) {
	need := []Move{GiveBack, Refuse, Doubt}
	for _, m := range Moves {
		if got, want := m.NeedsToken(), slices.Contains(need, m); got != want {
			t.Errorf("%v.NeedsToken() = %v, want %v", m, got, want)
		}
	}
}
