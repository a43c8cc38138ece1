package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
)

// timeLayout is how people are shown a moment.
const timeLayout = "2006-01-02 15:04:05 MST"

func timeOr(t *time.Time, zone *time.Location, otherwise string) string {
	if t == nil {
		return otherwise
	}
	return t.In(zone).Format(timeLayout)
}

// inZone prints with the zone of DEFAULT_TIMEZONE.
func inZone[T any](forPeople func(io.Writer, T, *time.Location) error) func(io.Writer, T) error {
	return func(out io.Writer, value T) error {
		zone, err := timezone()
		if err != nil {
			return err
		}
		return forPeople(out, value, zone)
	}
}

// items is a collection in the form that the API gives collections.
type items[T any] struct {
	Items []T `json:"items"`
}

func itemsOf[T any](all []T) items[T] {
	if all == nil {
		all = []T{} // [] and not null
	}
	return items[T]{all}
}

// clean makes text that others wrote safe to show on a terminal: on one line, and without the
// characters that move the cursor, change colours or turn the direction of writing.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// printLines prints a text of others as it is, line by line.
func printLines(w io.Writer, text string) error {
	for line := range strings.SplitSeq(text, "\n") {
		if _, err := fmt.Fprintln(w, clean(line)); err != nil {
			return err
		}
	}
	return nil
}

// writeJSON prints a value for people and programs both.
func writeJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
