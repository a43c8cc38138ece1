package v1

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/todoku/todoku/notify"
)

// Warning is what may be a mistake in a request that is accepted.
type Warning struct {
	Code   string `json:"code" enum:"columns_unused,placeholder_lookalike"`
	Detail string `json:"detail"`
}

// The codes of a Warning.
const (
	WarningColumnsUnused        = "columns_unused"
	WarningPlaceholderLookalike = "placeholder_lookalike"
)

// unusedParams warns of a text without placeholders for a list whose members have parameters.
func unusedParams() Warning {
	return Warning{WarningColumnsUnused, "the text is the same for everybody, and uses no parameter of the list's members: check that it is the right text"}
}

// ColumnWarnings compares a text, and the names of its placeholders, with the columns of a file.
func ColumnWarnings(text string, placeholders, columns []string) (found []Warning) {
	used := func(column string) bool { return slices.Contains(placeholders, column) }
	if len(columns) > 0 && !slices.ContainsFunc(columns, used) {
		found = append(found, Warning{WarningColumnsUnused, fmt.Sprintf(
			"the text is the same for everybody, and uses no column of the file (%s): check that it is the right text", excerpts(columns))})
	}
	var alike []string
	for _, match := range lookalike.FindAllStringSubmatch(placeholder.ReplaceAllString(text, " "), -1) {
		name, _ := notify.ParamName(match[1] + match[2])
		if slices.Contains(columns, name) && !slices.Contains(alike, name) {
			alike = append(alike, name)
		}
	}
	if len(alike) > 0 {
		found = append(found, Warning{WarningPlaceholderLookalike, fmt.Sprintf(
			"the text has names of columns in brackets that are no placeholders (%s), and is sent with them: write {{name}} in a template", excerpts(alike))})
	}
	return found
}

var placeholder = regexp.MustCompile(`\{\{[^{}]*\}\}`)

// lookalike is a name in single braces or in brackets, as other programs write placeholders.
var lookalike = regexp.MustCompile(`[{｛]([^{}｛｝]+)[}｝]|[[［【<＜]{1,2}([^][［］【】<>＜＞]+)[]］】>＞]{1,2}`)

// excerpts names the first few.
func excerpts(names []string) string {
	const few = 5
	shown := strings.Join(mapped(names[:min(few, len(names))], notify.Excerpt), ", ")
	if more := len(names) - few; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return shown
}
