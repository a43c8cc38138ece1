package cli

import "testing"

func TestTextOfOthersCannotSteerTheTerminal(t *testing.T) {
	for text, want := range map[string]string{
		"plain ご予約":   "plain ご予約",
		"two\nlines":  "two lines",
		"\x1b[31mred": "\ufffd[31mred",
		"a\u202eb":    "a\ufffdb",
	} {
		if got := clean(text); got != want {
			t.Errorf("clean(%q) = %q, want %q", text, got, want)
		}
	}
}
