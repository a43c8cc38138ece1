package notify_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/todoku/todoku/notify"
)

func TestWhatIsNotSeenIsBlank(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":             "",
		"a space":             " ",
		"a tab":               "\t",
		"line breaks":         "\r\n",
		"a no-break space":    "\u00a0",
		"a full-width space":  "\u3000",
		"a thin space":        "\u2009",
		"no width":            "\u200b",
		"a joiner":            "\u200d",
		"a word joiner":       "\u2060",
		"a byte order mark":   "\ufeff",
		"a soft hyphen":       "\u00ad",
		"a mark of direction": "\u200f",
		"a Hangul filler":     "\u3164",
		"a Braille blank":     "\u2800",
		"several one by one":  " \u3000\u200b\t\u00a0\ufeff ",
		"many":                strings.Repeat("\u3000", 10_000),
	} {
		if !notify.IsBlank(text) {
			t.Errorf("%s is not blank", name)
		}
	}
	for name, text := range map[string]string{
		"a letter":              "a",
		"a zero":                "0",
		"a dash":                "-",
		"a full-width dash":     "ー",
		"a brace":               "{{name}}",
		"a letter behind space": "\u3000\u200b様",
		"a letter before space": "様\u3000\u200b",
		"what is no UTF-8":      "\xff",
	} {
		if notify.IsBlank(text) {
			t.Errorf("%s is blank", name)
		}
	}
}

func TestBlankCharactersAreThoseThatAreBlank(t *testing.T) {
	listed := map[rune]bool{}
	for _, r := range notify.BlankCharacters {
		if listed[r] {
			t.Errorf("%U is there twice", r)
		}
		listed[r] = true
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if blank := notify.IsBlank(string(r)); blank != listed[r] {
			t.Errorf("%U: blank %t, listed %t", r, blank, listed[r])
		}
	}
}
