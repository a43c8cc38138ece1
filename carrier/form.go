package carrier

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
)

// Form is what Twilio tells in the body of a callback: parameters in the order of the alphabet, those of
// the same name in the order in which they came.
type Form []parameter

type parameter struct{ name, value string }

// maxParameters bounds a form; real ones have 10 to 40 parameters.
const maxParameters = 1000

var errForm = errors.New("it is not a form, or one of more than 1,000 parameters")

// ParseForm reads what url.ParseQuery reads, and refuses what that refuses, but makes no map: most callbacks
// are asked for four parameters, and each of them is signed in the order that a Form has.
func ParseForm(encoded string) (Form, error) {
	n := strings.Count(encoded, "&") + 1
	if n > maxParameters {
		return nil, errForm
	}
	form := make(Form, 0, n)
	for pair := range strings.SplitSeq(encoded, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, nameErr := url.QueryUnescape(name)
		value, valueErr := url.QueryUnescape(value)
		if nameErr != nil || valueErr != nil || strings.Contains(pair, ";") {
			return nil, errForm
		}
		form = append(form, parameter{name, value})
	}
	slices.SortStableFunc(form, func(a, b parameter) int { return strings.Compare(a.name, b.name) })
	return form, nil
}

// Get returns the first value of the parameter, and an empty string when there is none.
func (f Form) Get(name string) string {
	for _, p := range f {
		if p.name == name {
			return p.value
		}
	}
	return ""
}

// repeats reports whether a parameter comes more than once.
func (f Form) repeats() bool {
	for i := 1; i < len(f); i++ {
		if f[i].name == f[i-1].name {
			return true
		}
	}
	return false
}

// byUTF16 is the form in the order of UTF-16 code units, in which Twilio's libraries for Node, Java and C# sort
// names and values. It is another order than that of UTF-8 only where a text has characters beyond U+FFFF.
func (f Form) byUTF16() Form {
	return slices.SortedStableFunc(slices.Values(f), func(a, b parameter) int { return compareUTF16(a.name, b.name) })
}

// distinctByUTF16 is distinct in the order of UTF-16 code units.
func (f Form) distinctByUTF16() Form {
	sorted := slices.SortedFunc(slices.Values(f), func(a, b parameter) int {
		return cmp.Or(compareUTF16(a.name, b.name), compareUTF16(a.value, b.value))
	})
	return slices.Compact(sorted)
}

func compareUTF16(a, b string) int {
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}

// astral reports whether the form has characters that UTF-16 writes as two code units: in UTF-8 they have four
// bytes, the first of which is 0xF0 or more.
func (f Form) astral() bool {
	for _, p := range f {
		for _, text := range []string{p.name, p.value} {
			for i := range len(text) {
				if text[i] >= 0xF0 {
					return true
				}
			}
		}
	}
	return false
}

// distinct is the form with each value of a parameter once, in the order of the alphabet.
func (f Form) distinct() Form {
	sorted := slices.SortedFunc(slices.Values(f), func(a, b parameter) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.value, b.value))
	})
	return slices.Compact(sorted)
}
