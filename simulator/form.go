package simulator

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// maxFormBytes is far above any request that makes sense, and keeps a mistake from filling the memory.
const maxFormBytes = 1 << 20

// form is what a request posts. It remembers the first thing that is wrong with it; what is asked of it after
// that no longer matters.
type form struct {
	values url.Values
	failed *failure
}

func readForm(r *http.Request) *form {
	r.Body = http.MaxBytesReader(nil, r.Body, maxFormBytes)
	r.Form = url.Values{} // only the PostForm is made
	if err := r.ParseForm(); err != nil {
		return &form{failed: badRequest(20001, "Bad request: the body is not a form: %v", err)}
	}
	return &form{values: r.PostForm}
}

// refuse fails the form unless it has failed already.
func (f *form) refuse(code int, format string, args ...any) {
	f.refuseWith(badRequest(code, format, args...))
}

func (f *form) refuseWith(failed *failure) {
	if f.failed == nil {
		f.failed = failed
	}
}

func (f *form) text(name string) string { return f.values.Get(name) }

func (f *form) has(name string) bool { return f.text(name) != "" }

// field is a parameter with a type. Twilio ignores parameters that it does not know, but not a wrong type; the
// types are those of its OpenAPI document.
type field struct {
	name  string
	valid func(string) bool
	want  string
	code  int // 0: 20001
}

// check refuses values, single or repeated, that are not of their field's type. An empty value is an absent one.
func (f *form) check(fields []field) {
	for _, field := range fields {
		for _, value := range f.values[field.name] {
			if value == "" || field.valid(value) {
				continue
			}
			code := field.code
			if code == 0 {
				code = 20001
			}
			f.refuse(code, "Invalid parameter %s: it must be %s.", field.name, field.want)
		}
	}
}

func integer(name string) field {
	return field{name: name, want: "an integer", valid: func(s string) bool {
		_, err := strconv.Atoi(s)
		return err == nil
	}}
}

func integerBetween(name string, low, high, code int) field {
	want := "an integer from " + strconv.Itoa(low) + " to " + strconv.Itoa(high)
	return field{name: name, code: code, want: want, valid: func(s string) bool {
		n, err := strconv.Atoi(s)
		return err == nil && low <= n && n <= high
	}}
}

func number(name string) field {
	return field{name: name, want: "a number", valid: func(s string) bool {
		_, err := strconv.ParseFloat(s, 64)
		return err == nil
	}}
}

func boolean(name string) field {
	return field{name: name, want: "true or false", valid: func(s string) bool {
		return strings.EqualFold(s, "true") || strings.EqualFold(s, "false")
	}}
}

func oneOf(name string, code int, words ...string) field {
	want := "one of " + strings.Join(words, ", ")
	return field{name: name, code: code, want: want, valid: func(s string) bool {
		for _, word := range words {
			if s == word {
				return true
			}
		}
		return false
	}}
}

func httpMethod(name string) field { return oneOf(name, 0, "GET", "POST") }

func sidOf(name, prefix string, code int) field {
	want := prefix + " and 32 hexadecimal digits"
	return field{name: name, code: code, want: want, valid: func(s string) bool { return isSID(s, prefix) }}
}

func webURL(name string, code int) field {
	return field{name: name, code: code, valid: isWebURL,
		want: "an absolute http or https URL whose host has no underscore"}
}

// isWebURL reports whether Twilio would call the URL: absolute, http or https, and a host without underscore.
func isWebURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") &&
		u.Hostname() != "" && !strings.Contains(u.Hostname(), "_")
}

func atMost(name string, characters, code int) field {
	want := "at most " + strconv.Itoa(characters) + " characters long"
	return field{name: name, code: code, want: want, valid: func(s string) bool {
		return len([]rune(s)) <= characters
	}}
}

func dateTime(name string, code int) field {
	return field{name: name, code: code, want: "an ISO 8601 time such as 2026-01-31T09:30:00Z",
		valid: func(s string) bool {
			_, err := time.Parse(time.RFC3339, s)
			return err == nil
		}}
}

func jsonObject(name string, code int) field {
	return field{name: name, code: code, want: "a JSON object", valid: func(s string) bool {
		var object map[string]any
		return json.Unmarshal([]byte(s), &object) == nil
	}}
}
