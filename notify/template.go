package notify

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Template is a body with placeholders such as {{name}} or {{ 氏名 }}. Only those are special: there
// are no conditions, loops or escapes, and a single brace is text. Names are letters, digits and
// underscores of any language, at most [MaxPlaceholderName] characters.
type Template struct {
	body  string
	parts []templatePart
	names []string
}

// templatePart is text, or a placeholder if name is not empty.
type templatePart struct{ text, name string }

// MaxPlaceholderName is the longest name of a placeholder, in characters.
const MaxPlaceholderName = 64

// The codes of a [TemplateError]. They are part of the API and do not change.
const (
	CodePlaceholderUnclosed = "placeholder_unclosed"
	CodePlaceholderUnopened = "placeholder_unopened"
	CodePlaceholderEmpty    = "placeholder_empty"
	CodePlaceholderBadName  = "placeholder_bad_name"
	CodePlaceholderBraces   = "placeholder_full_width_braces"
	CodePlaceholderInBody   = "body_has_placeholder"
)

// TemplateError says which placeholder of a template cannot be read.
type TemplateError struct {
	Code     string
	Position int // of the braces, in characters; the first is 1
}

func (e *TemplateError) Error() string {
	var problem string
	switch e.Code {
	case CodePlaceholderUnclosed:
		problem = "{{ has no }}: close the placeholder"
	case CodePlaceholderUnopened:
		problem = "}} has no {{: open the placeholder, or write single braces"
	case CodePlaceholderBraces:
		problem = "the braces of a placeholder are full-width ones: write {{name}} with half-width braces"
	case CodePlaceholderEmpty:
		problem = "the placeholder has no name: write one, as in {{name}}"
	default:
		problem = fmt.Sprintf("the placeholder's name is not made of letters, digits and underscores, or is over %d characters: rename it", MaxPlaceholderName)
	}
	return fmt.Sprintf("template, character %d: %s", e.Position, problem)
}

// ParseTemplate reads a body's placeholders. The error is a [*TemplateError].
func ParseTemplate(body string) (Template, error) {
	t := Template{body: body}
	failed := func(code string, offset int) (Template, error) {
		return Template{}, &TemplateError{Code: code, Position: utf8.RuneCountInString(body[:offset]) + 1}
	}
	if at := fullWidthBraces.FindStringIndex(body); at != nil {
		return failed(CodePlaceholderBraces, at[0])
	}
	for offset := 0; offset < len(body); {
		rest := body[offset:]
		text, placeholder, found := strings.Cut(rest, "{{")
		if stray := strings.Index(text, "}}"); stray >= 0 {
			return failed(CodePlaceholderUnopened, offset+stray)
		}
		if text != "" {
			t.parts = append(t.parts, templatePart{text: text})
		}
		if !found {
			break
		}
		opened := offset + len(text)
		inner, _, closed := strings.Cut(placeholder, "}}")
		if !closed || strings.Contains(inner, "{{") {
			return failed(CodePlaceholderUnclosed, opened)
		}
		name := placeholderName(inner)
		switch {
		case name == "":
			return failed(CodePlaceholderEmpty, opened)
		case !validPlaceholderName(name):
			return failed(CodePlaceholderBadName, opened)
		}
		t.parts = append(t.parts, templatePart{name: name})
		if !slices.Contains(t.names, name) {
			t.names = append(t.names, name)
		}
		offset = opened + len("{{") + len(inner) + len("}}")
	}
	return t, nil
}

var (
	// Two braces of which one is full-width, as a Japanese keyboard writes them.
	fullWidthBraces = regexp.MustCompile(`｛[ \x{3000}]?[｛{]|\{[ \x{3000}]?｛|｝[ \x{3000}]?[｝}]|\}[ \x{3000}]?｝`)
	anyPlaceholder  = regexp.MustCompile(`[{｛]{2}[^{}｛｝]*[}｝]{2}`)
)

// HasPlaceholder reports whether a text that is no template looks like one.
func HasPlaceholder(body string) bool { return anyPlaceholder.MatchString(body) }

// placeholderName makes names equal that look equal: one keyboard composes が, another (macOS file
// names, some exports) writes か and a mark.
func placeholderName(s string) string { return norm.NFC.String(strings.Trim(s, " \t\u00a0\u3000")) }

// ParamName is the name of a parameter as placeholders have it, and whether a placeholder can have it.
func ParamName(typed string) (name string, ok bool) {
	name = placeholderName(typed)
	return name, validPlaceholderName(name)
}

func validPlaceholderName(name string) bool {
	if name == "" || !utf8.ValidString(name) || utf8.RuneCountInString(name) > MaxPlaceholderName {
		return false
	}
	for _, r := range name {
		if r != '_' && !unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl) {
			return false
		}
	}
	return true
}

// String is the template as it was written.
func (t Template) String() string { return t.body }

// Params lists the names of the placeholders, each once, in the order of their first use.
func (t Template) Params() []string { return slices.Clone(t.names) }

// ParamsError says how a recipient's parameters differ from those of the template. It holds names,
// never values.
type ParamsError struct {
	Missing []string // in the template's order
	Blank   []string // given, and nothing of the value is seen or heard; in the template's order
	Unknown []string // sorted
}

func (e *ParamsError) Error() string {
	var parts []string
	if len(e.Missing) > 0 {
		parts = append(parts, "give the missing parameters: "+listNames(e.Missing))
	}
	if len(e.Blank) > 0 {
		parts = append(parts, "fill in those that are blank: "+listNames(e.Blank))
	}
	if len(e.Unknown) > 0 {
		parts = append(parts, "remove those that the template does not have: "+listNames(e.Unknown))
	}
	return "the parameters do not fit the template: " + strings.Join(parts, "; ")
}

// listNames names the first few. Unknown names come from outside and may be of any length.
func listNames(names []string) string {
	const few = 5
	var list []string
	for _, n := range names[:min(few, len(names))] {
		list = append(list, Excerpt(n))
	}
	if more := len(names) - few; more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, ", ")
}

// Fill is Render for what is yet to be accepted: a value that is blank, as [IsBlank] has it, is as wrong
// as one that is missing, so that nobody reads a text with a hole in it.
func (t Template) Fill(params map[string]string) (string, error) {
	values, wrong := t.values(params)
	for _, name := range t.names {
		if value, given := values[name]; given && IsBlank(value) {
			wrong.Blank = append(wrong.Blank, name)
		}
	}
	return t.render(values, wrong)
}

// Render puts the parameters in the place of their placeholders. Each placeholder needs a parameter
// and each parameter a placeholder, else the error is a [*ParamsError]. A value is text: braces in
// it mean nothing. It may be blank: what was accepted is sent.
func (t Template) Render(params map[string]string) (string, error) {
	return t.render(t.values(params))
}

// values are the parameters by the names of their placeholders, and what is wrong with those names.
func (t Template) values(params map[string]string) (values map[string]string, wrong ParamsError) {
	values = make(map[string]string, len(params))
	for key, value := range params {
		name := placeholderName(key)
		if _, twice := values[name]; twice || !slices.Contains(t.names, name) {
			wrong.Unknown = append(wrong.Unknown, key)
			continue
		}
		values[name] = value
	}
	slices.Sort(wrong.Unknown)
	for _, name := range t.names {
		if _, given := values[name]; !given {
			wrong.Missing = append(wrong.Missing, name)
		}
	}
	return values, wrong
}

// render makes the text, unless something is wrong.
func (t Template) render(values map[string]string, wrong ParamsError) (string, error) {
	if len(wrong.Missing)+len(wrong.Blank)+len(wrong.Unknown) > 0 {
		return "", &wrong
	}
	var out strings.Builder
	for _, part := range t.parts {
		if part.name != "" {
			out.WriteString(values[part.name])
		} else {
			out.WriteString(part.text)
		}
	}
	return out.String(), nil
}
