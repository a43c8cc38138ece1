package carrier

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strings"
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

// distinct is the form with each value of a parameter once, in the order of the alphabet.
func (f Form) distinct() Form {
	sorted := slices.SortedFunc(slices.Values(f), func(a, b parameter) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.value, b.value))
	})
	return slices.Compact(sorted)
}
