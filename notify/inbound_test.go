package notify

import (
	"testing"
	"time"
)

func TestEveryEndOutranksTheEndsBelowIt(t *testing.T) {
	ranks := map[int]InboundWord{}
	for word, m := range inboundMeanings {
		if m.Exit == "" || word == WordMissed { // which shares the rank of being hung up, and counts then
			continue
		}
		if other, taken := ranks[m.ExitRank]; taken || m.ExitRank < 1 || !m.Exit.Final() {
			t.Errorf("%s has the rank %d of %s", word, m.ExitRank, other)
		}
		ranks[m.ExitRank] = word
	}
	if m := WordCallbackRequested.Meaning(); m.ExitRank <= WordTurnedAway.Meaning().ExitRank || m.ExitRank <= WordTimedOut.Meaning().ExitRank {
		t.Error("a wish to be called back does not outrank the end of which it is made")
	}
	if m := WordNoted.Meaning(); m != (InboundMeaning{}) {
		t.Errorf("what is noted does %+v", m)
	}
}

func TestOnlySixStatesAreFinal(t *testing.T) {
	n := 0
	for _, s := range InboundStates {
		if s.Final() {
			n++
		}
	}
	if n != 6 || InboundAnswered.Final() {
		t.Errorf("%d states are final", n)
	}
}

func TestOpeningHours(t *testing.T) {
	office := InboundPolicy{Timezone: "Asia/Tokyo", Hours: []OpeningHours{
		{Days: []time.Weekday{time.Monday, time.Tuesday}, From: "09:00", Until: "18:00"},
		{Days: []time.Weekday{time.Saturday}, From: "22:00", Until: "02:30"},
		{Days: []time.Weekday{time.Thursday}, From: "00:00", Until: "24:00"},
	}}
	for at, want := range map[string]bool{
		"2026-03-30T09:00:00+09:00": true, // a Monday
		"2026-03-30T08:59:59+09:00": false,
		"2026-03-31T17:59:59+09:00": true,
		"2026-03-31T18:00:00+09:00": false,
		"2026-03-30T00:30:00Z":      true, // 09:30 in Tokyo
		"2026-04-01T12:00:00+09:00": false,
		"2026-04-02T23:59:59+09:00": true,
		"2026-04-04T22:00:00+09:00": true,
		"2026-04-05T02:29:00+09:00": true, // the night after Saturday
		"2026-04-05T02:30:00+09:00": false,
		"2026-04-04T01:00:00+09:00": false, // the night before
	} {
		moment, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := office.Open(moment); err != nil || got != want {
			t.Errorf("at %s it is open: %v, want %v; error %v", at, got, want, err)
		}
	}
	if open, err := (InboundPolicy{}).Open(time.Now()); err != nil || !open {
		t.Error("without hours it is not always open")
	}
	for name, p := range map[string]InboundPolicy{
		"a zone that is none": {Timezone: "Asia/Edo", Hours: office.Hours},
		"a time that is none": {Hours: []OpeningHours{{From: "9 am", Until: "18:00"}}},
		"no time at all":      {Hours: []OpeningHours{{From: "09:00", Until: "09:00"}}},
	} {
		if _, err := p.Open(time.Now()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestWhatIsWantedForWhom(t *testing.T) {
	all := FollowUps{
		Abandoned: FollowUp{FollowUpSMS, "a"}, TimedOut: FollowUp{FollowUpCall, "t"}, Full: FollowUp{FollowUpSMS, "f"},
		Closed: FollowUp{FollowUpSMS, "c"}, Requested: FollowUp{Action: FollowUpTask},
	}
	for _, test := range []struct {
		state  InboundState
		reason string
		want   FollowUp
	}{
		{InboundAbandoned, "", all.Abandoned}, {InboundTimedOut, "", all.TimedOut}, {InboundCallback, "", all.Requested},
		{InboundTurnedAway, TurnedAwayClosed, all.Closed}, {InboundTurnedAway, TurnedAwayBusy, all.Full}, {InboundTurnedAway, TurnedAwayRush, all.Full},
		{InboundTurnedAway, TurnedAwayFull, all.Full}, {InboundTurnedAway, TurnedAwayError, all.Full}, {InboundTurnedAway, TurnedAwayNotSetUp, FollowUp{}},
		{InboundFinished, "", FollowUp{}}, {InboundAnswered, "", FollowUp{}},
	} {
		if got := all.For(test.state, test.reason); got != test.want {
			t.Errorf("%s %s: %+v, want %+v", test.state, test.reason, got, test.want)
		}
	}
}

func TestTheIDOfACallFollowsFromItsSID(t *testing.T) {
	const sid = "CA00000000000000000000000000000001"
	if a, b := InboundID(sid), InboundID(sid); a != b || a == InboundID("CA00000000000000000000000000000002") || a.Version() != 5 {
		t.Errorf("%s and %s", a, b)
	}
}
