package notify

import (
	"strings"
	"unicode"
)

// IsBlank reports whether nothing of a text is seen or heard: it is empty, or all of it is white space
// of any script (no-break and full-width spaces and line breaks too) or characters of no width.
func IsBlank(text string) bool { return !strings.ContainsFunc(text, visible) }

// visible is false for white space and for characters of no width.
func visible(r rune) bool { return !unicode.In(r, blanks...) }

// blanks are Unicode's property White_Space and its category Format, to which joiners, byte order marks
// and marks of direction belong.
var blanks = []*unicode.RangeTable{unicode.White_Space, unicode.Cf}

// BlankCharacters are all those that a blank text may have, for whoever cannot ask [IsBlank], as SQL.
// None of them means anything within the brackets of a regular expression.
var BlankCharacters = func() string {
	var all strings.Builder
	add := func(from, to, step rune) {
		for r := from; r <= to; r += step {
			all.WriteRune(r)
		}
	}
	for _, table := range blanks {
		for _, r := range table.R16 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range table.R32 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	return all.String()
}()
