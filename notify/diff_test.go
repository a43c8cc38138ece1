package notify_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/todoku/todoku/notify"
)

// marked writes changes as [-removed-] and [+added+].
func marked(changes []notify.Change) string {
	var text strings.Builder
	for _, c := range changes {
		switch c.Op {
		case notify.Removed:
			text.WriteString("[-" + c.Text + "-]")
		case notify.Added:
			text.WriteString("[+" + c.Text + "+]")
		default:
			text.WriteString(c.Text)
		}
	}
	return text.String()
}

func TestDiffShowsWordsCharactersAndPlaceholders(t *testing.T) {
	for _, test := range []struct{ from, to, want string }{
		{"", "", ""},
		{"Hello", "Hello", "Hello"},
		{"", "Hello", "[+Hello+]"},
		{"Hello", "", "[-Hello-]"},
		{"See you at noon.", "See you at eleven.", "See you at [-noon-][+eleven+]."},
		{"ご予約は明日です。", "ご予約は明後日です。", "ご予約は明[+後+]日です。"},
		{"{{name}}様、10時です。", "{{氏名}}様、11時です。", "[-{{name}}-][+{{氏名}}+]様、[-10-][+11+]時です。"},
		{"a b c d", "b c x d e", "[-a -]b c [+x +]d[+ e+]"},
		{"{{open", "{{open}}", "[-{{open-][+{{open}}+]"},
		{"\xff", "\xff\xfe", "\xff[+\xfe+]"},
	} {
		if got := marked(notify.Diff(test.from, test.to)); got != test.want {
			t.Errorf("%q to %q = %q, want %q", test.from, test.to, got, test.want)
		}
	}
}

func TestDiffHasBothTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab 日本{}1\n")), 0, 40, -1)
		from, to := text.Draw(t, "from"), text.Draw(t, "to")
		var before, after strings.Builder
		last := notify.Change{}
		for _, c := range notify.Diff(from, to) {
			if c.Text == "" || c.Op == last.Op || c.Op == notify.Removed && last.Op == notify.Added {
				t.Errorf("%+v follows %+v", c, last)
			}
			last = c
			if c.Op != notify.Added {
				before.WriteString(c.Text)
			}
			if c.Op != notify.Removed {
				after.WriteString(c.Text)
			}
		}
		if before.String() != from || after.String() != to {
			t.Errorf("the texts are %q and %q, want %q and %q", before.String(), after.String(), from, to)
		}
	})
}

// The longest texts there are, with nothing in common.
func BenchmarkDiff(b *testing.B) {
	from, to := strings.Repeat("あ", 4000), strings.Repeat("い", 4000)
	for b.Loop() {
		notify.Diff(from, to)
	}
}
