package notify

import (
	"strings"
	"unicode"
)

// IsBlank reports whether nothing of a text is seen or heard: it is empty, or all of it is white space
// of any script (no-break and full-width spaces and line breaks too), characters of no width or fillers.
func IsBlank(text string) bool { return !strings.ContainsFunc(text, visible) }

// visible is false for white space, for characters of no width and for fillers.
func visible(r rune) bool { return !unicode.In(r, blanks...) }

// blanks are Unicode's property White_Space and its category Format, to which joiners, byte order marks
// and marks of direction belong, and the letters and symbols that have nothing to show, which people type
// where a form asks for a name and takes no space.
var blanks = []*unicode.RangeTable{unicode.White_Space, unicode.Cf, fillers}

var fillers = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x115F, Hi: 0x1160, Stride: 1}, // Hangul Choseong filler, Hangul Jungseong filler
	{Lo: 0x2800, Hi: 0x2800, Stride: 1}, // Braille pattern blank
	{Lo: 0x3164, Hi: 0x3164, Stride: 1}, // Hangul filler
	{Lo: 0xFFA0, Hi: 0xFFA0, Stride: 1}, // half-width Hangul filler
}}

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
