package notify

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// ParamKind says what the value of a placeholder must be. It changes nothing of the value, which is
// read or spoken as it is given; it keeps a wrong one from being sent.
type ParamKind string

// The kinds. The zero value reads as ParamText.
const (
	ParamText   ParamKind = "text"   // anything
	ParamNumber ParamKind = "number" // 3, 1,500, -0.5, in half-width or full-width digits
	ParamDate   ParamKind = "date"   // 2026-04-01, 2026/4/1, 4/1, 2026年4月1日, 4月1日: a day that exists
	ParamTime   ParamKind = "time"   // 10:30, 9:05:00, 10時, 10時30分: a time of the day
)

// ParamKinds lists the kinds.
var ParamKinds = []ParamKind{ParamText, ParamNumber, ParamDate, ParamTime}

var (
	numberForm = regexp.MustCompile(`^[+-]?[0-9]+(,[0-9]{3})*(\.[0-9]+)?$`)
	dateForms  = []string{"2006-1-2", "2006/1/2", "2006.1.2", "2006年1月2日", "1/2", "1月2日"}
	timeForms  = []string{"15:04", "15:04:05", "15時", "15時4分"}
)

// Fits reports whether a value is of the kind.
func (k ParamKind) Fits(value string) bool {
	if k == "" || k == ParamText {
		return true
	}
	const longest = 64 // bytes: no number, date or time is longer
	if len(value) > longest || !utf8.ValidString(value) {
		return false
	}
	plain := halfWidth(value)
	switch k {
	case ParamNumber:
		return numberForm.MatchString(plain)
	case ParamDate:
		return readable(plain, dateForms)
	case ParamTime:
		return readable(plain, timeForms)
	}
	return false
}

// readable reports whether the text is a moment in one of the forms. Without a year, 29 February is a
// day: time.Parse takes the year 0, which is a leap year.
func readable(text string, forms []string) bool {
	for _, form := range forms {
		if _, err := time.Parse(form, text); err == nil {
			return true
		}
	}
	return false
}

// halfWidth writes full-width ASCII in half width, as numbers are typed in Japan.
func halfWidth(text string) string {
	plain := make([]rune, 0, len(text))
	for _, r := range text {
		if '！' <= r && r <= '～' {
			r = r - '！' + '!'
		}
		plain = append(plain, r)
	}
	return string(plain)
}

// CodeParamKind is the code of a [ParamKindError]. It is part of the API and does not change.
const CodeParamKind = "param_kind"

// ParamKindError says that a value is not of its placeholder's kind. It does not repeat the value.
type ParamKindError struct {
	Name string
	Kind ParamKind
}

func (e *ParamKindError) Error() string {
	return fmt.Sprintf("the parameter %s must be a %s: write it as in %s", Excerpt(e.Name), e.Kind, e.Kind.Example(e.Name))
}

// CheckKinds returns what is wrong with the parameters of a template whose placeholders have kinds,
// sorted by name. Parameters that are missing are not its business.
func CheckKinds(kinds map[string]ParamKind, params map[string]string) (wrong []*ParamKindError) {
	if len(kinds) == 0 {
		return nil
	}
	for key, value := range params {
		name := placeholderName(key)
		if kind := kinds[name]; !kind.Fits(value) {
			wrong = append(wrong, &ParamKindError{name, kind})
		}
	}
	slices.SortFunc(wrong, func(a, b *ParamKindError) int { return strings.Compare(a.Name, b.Name) })
	return wrong
}

// Example is a value of the kind, for a preview. That of a text is the parameter's name.
func (k ParamKind) Example(name string) string {
	switch k {
	case ParamNumber:
		return "3"
	case ParamDate:
		return "2026-04-01"
	case ParamTime:
		return "10:30"
	}
	return name
}
