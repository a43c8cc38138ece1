package notify

import (
	"strings"
	"unicode"
)

// MaxExcerpt is how much of a body may appear in a log, in characters.
const MaxExcerpt = 50

// minMasked is the shortest number of which the last 4 digits are shown. Of anything shorter they
// would be most of it.
const minMasked = 8

// Mask hides a phone number but for its last 4 digits: "*********5678". What is too short to be a
// number, or does not end in 4 digits, is hidden whole.
func Mask(e164 string) string {
	chars := []rune(e164)
	shown := 4
	if len(chars) < minMasked {
		shown = 0
	}
	for _, r := range chars[len(chars)-shown:] {
		if r < '0' || r > '9' {
			shown = 0
			break
		}
	}
	hidden := len(chars) - shown
	return strings.Repeat("*", hidden) + string(chars[hidden:])
}

// Excerpt is the beginning of a body for a log: at most [MaxExcerpt] characters on one line, with
// "…" for what was left out. It does not cut between a letter and its accents or inside a joined
// emoji, where that is possible.
func Excerpt(body string) string {
	chars := make([]rune, 0, MaxExcerpt+1)
	for _, r := range body { // an invalid byte reads as U+FFFD
		switch {
		case unicode.IsSpace(r):
			if len(chars) == 0 || chars[len(chars)-1] == ' ' {
				continue
			}
			r = ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			continue
		}
		if chars = append(chars, r); len(chars) > MaxExcerpt+1 {
			break // one more than the limit decides; a second one may be a trailing space
		}
	}
	if n := len(chars); n > 0 && chars[n-1] == ' ' {
		chars = chars[:n-1]
	}
	if len(chars) <= MaxExcerpt {
		return string(chars)
	}
	cut := MaxExcerpt - 1
	for cut > 0 && joins(chars[cut-1], chars[cut]) {
		cut--
	}
	if cut == 0 {
		cut = MaxExcerpt - 1
	}
	return strings.TrimRight(string(chars[:cut]), " ") + "…"
}

// joins reports whether two characters belong to one that people see. It knows the common cases of
// Unicode's text segmentation (UAX #29): marks, variation selectors, joiners and skin tones.
func joins(left, right rune) bool {
	const zeroWidthJoiner = '\u200d'
	return left == zeroWidthJoiner || right == zeroWidthJoiner ||
		unicode.Is(unicode.M, right) || ('\U0001F3FB' <= right && right <= '\U0001F3FF')
}
