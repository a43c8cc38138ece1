package simulator

import (
	"strings"
	"testing"
)

func TestSegments(t *testing.T) {
	a, ext, kana, emoji := "a", "€", "あ", "😀"
	for _, test := range []struct {
		name, body string
		want       int
	}{
		{"nothing", "", 1},
		{"GSM-7, one full", strings.Repeat(a, 160), 1},
		{"GSM-7, one more", strings.Repeat(a, 161), 2},
		{"GSM-7, two full", strings.Repeat(a, 306), 2},
		{"GSM-7, three", strings.Repeat(a, 307), 3},
		{"every basic character", gsm7Basic, 1},
		{"extended characters take two", strings.Repeat(ext, 80), 1},
		{"extended characters, one too many", strings.Repeat(ext, 80) + a, 2},
		{"an extended character is not split", strings.Repeat(a, 152) + ext + strings.Repeat(a, 152), 3},
		{"UCS-2, one full", strings.Repeat(kana, 70), 1},
		{"UCS-2, one more", strings.Repeat(kana, 71), 2},
		{"UCS-2, two full", strings.Repeat(kana, 134), 2},
		{"UCS-2, three", strings.Repeat(kana, 135), 3},
		{"one kana makes all of it UCS-2", strings.Repeat(a, 70) + kana, 2},
		{"an emoji takes two units", strings.Repeat(emoji, 35), 1},
		{"emoji, one more", strings.Repeat(emoji, 36), 2},
		{"an emoji is not split", strings.Repeat(kana, 66) + emoji + strings.Repeat(kana, 66), 3},
		{"a backtick is not in GSM-7", "`" + strings.Repeat(a, 70), 2},
	} {
		if got := segments(test.body); got != test.want {
			t.Errorf("%s: %d segments, want %d", test.name, got, test.want)
		}
	}
	if n := len([]rune(gsm7Basic)); n != 127 { // the alphabet's 128 less the escape
		t.Errorf("the basic alphabet has %d characters", n)
	}
}
