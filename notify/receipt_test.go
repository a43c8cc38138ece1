package notify

import (
	"strings"
	"testing"
)

func TestCarrierWordsHaveOneTotalOrder(t *testing.T) {
	for _, c := range []Channel{SMS, Call} {
		list := CarrierWords(c)
		if len(list) == 0 {
			t.Fatalf("%s has no words", c)
		}
		for i, w := range list {
			if w.Rank != i+1 {
				t.Errorf("%s %s: rank %d, want %d", c, w.Name, w.Rank, i+1)
			}
			if got, ok := LookupWord(c, w.Name); !ok || got != w {
				t.Errorf("LookupWord(%s, %q) = %v, %v", c, w.Name, got, ok)
			}
			if w.Final() != w.Outcome.Final() {
				t.Errorf("%s %s: Final() = %v", c, w.Name, w.Final())
			}
		}
	}
}

func TestBetterWordsOutrankWorseOnes(t *testing.T) {
	orders := map[Channel]string{
		SMS:  "accepted queued sending sent canceled failed undelivered delivered read",
		Call: "queued initiated ringing in-progress canceled failed busy no-answer completed",
	}
	for c, order := range orders {
		names := strings.Fields(order)
		for i := 1; i < len(names); i++ {
			low, okLow := LookupWord(c, names[i-1])
			high, okHigh := LookupWord(c, names[i])
			if !okLow || !okHigh || low.Rank >= high.Rank {
				t.Errorf("%s: %s (%d) should rank under %s (%d)", c, names[i-1], low.Rank, names[i], high.Rank)
			}
		}
	}
}

func TestOutcomesOfWords(t *testing.T) {
	tests := []struct {
		channel Channel
		word    string
		want    Status
	}{
		{SMS, "queued", Pending}, {SMS, "sent", Pending}, {SMS, "delivered", Success}, {SMS, "read", Success},
		{SMS, "undelivered", Failed}, {SMS, "failed", Failed}, {SMS, "canceled", Failed},
		{Call, "ringing", Pending}, {Call, "in-progress", Pending}, {Call, "completed", Success},
		{Call, "busy", Failed}, {Call, "no-answer", Failed}, {Call, "failed", Failed}, {Call, "canceled", Failed},
	}
	for _, tt := range tests {
		if w, ok := LookupWord(tt.channel, tt.word); !ok || w.Outcome != tt.want {
			t.Errorf("%s %s: %s, %v, want %s", tt.channel, tt.word, w.Outcome, ok, tt.want)
		}
	}
}

func TestWordsNeverHeardOfAreNotFound(t *testing.T) {
	for _, tt := range []struct {
		channel Channel
		word    string
	}{{SMS, "teleported"}, {SMS, "busy"}, {Call, "delivered"}, {Call, ""}, {SMS, "Delivered"}, {LINEText, "sent"}} {
		if w, ok := LookupWord(tt.channel, tt.word); ok {
			t.Errorf("LookupWord(%s, %q) = %v", tt.channel, tt.word, w)
		}
	}
}

func TestCallersCannotChangeTheOrder(t *testing.T) {
	CarrierWords(SMS)[0] = Word{Name: "spoilt"}
	if got := CarrierWords(SMS)[0].Name; got != "accepted" {
		t.Errorf("the first word is %q", got)
	}
}

func TestValidSID(t *testing.T) {
	hex := strings.Repeat("0aF9", 8)
	tests := []struct {
		channel Channel
		sid     string
		want    bool
	}{
		{SMS, "SM" + hex, true}, {SMS, "MM" + hex, true}, {Call, "CA" + hex, true},
		{SMS, "CA" + hex, false}, {Call, "SM" + hex, false}, {Call, "MM" + hex, false},
		{SMS, "AC" + hex, false}, {SMS, "", false}, {SMS, "SM", false}, {SMS, "SM" + hex[1:], false},
		{SMS, "SM" + hex + "0", false}, {SMS, "sm" + hex, false}, {SMS, "SM" + hex[1:] + "g", false},
		{SMS, "SM" + hex + "\n", false}, {SMS, " SM" + hex, false}, {SMS, "SM'; DROP TABLE notifications; --", false},
	}
	for _, tt := range tests {
		if got := ValidSID(tt.channel, tt.sid); got != tt.want {
			t.Errorf("ValidSID(%s, %q) = %v, want %v", tt.channel, tt.sid, got, tt.want)
		}
	}
}

func TestCarrierErrorCode(t *testing.T) {
	for in, want := range map[string]string{
		"30003": "30003", "1": "1", "1234567890": "1234567890",
		"": "", "0": "", "000": "", "null": "", "-1": "", "30003 ": "", "12345678901": "", "３０００３": "", "30.3": "",
	} {
		if got := CarrierErrorCode(in); got != want {
			t.Errorf("CarrierErrorCode(%q) = %q, want %q", in, got, want)
		}
	}
}
