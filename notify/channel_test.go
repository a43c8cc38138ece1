package notify

import (
	"strings"
	"testing"
)

func TestChannelsReadAsTheyAreWritten(t *testing.T) {
	for _, c := range Channels {
		got, err := ParseChannel(string(c))
		if err != nil || got != c {
			t.Errorf("ParseChannel(%q) = %q, %v", c, got, err)
		}
	}
}

func TestUnknownChannelsAreRefused(t *testing.T) {
	for _, s := range []string{"", "sms", "Call", "EMAIL", "SMS ", "LINE"} {
		got, err := ParseChannel(s)
		if err == nil {
			t.Errorf("ParseChannel(%q) = %q, want an error", s, got)
			continue
		}
		for _, c := range Channels {
			if !strings.Contains(err.Error(), string(c)) {
				t.Errorf("the error for %q does not name %s: %v", s, c, err)
			}
		}
	}
}

func TestOnlySMSAndCallsAreEnabled(t *testing.T) {
	for c, want := range map[Channel]bool{SMS: true, Call: true, LINEText: false, LINECard: false, "": false} {
		if got := c.Enabled(); got != want {
			t.Errorf("%q.Enabled() = %v, want %v", c, got, want)
		}
	}
}
