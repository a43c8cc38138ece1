package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// table is rows in columns that are as wide as their widest cell.
type table struct {
	rows   [][]string
	widths []int
}

// newTable begins a table with its header; without one, with none.
func newTable(header ...string) *table {
	t := new(table)
	if len(header) > 0 {
		t.add(header...)
	}
	return t
}

func (t *table) add(cells ...string) {
	for i, cell := range cells {
		cells[i] = clean(cell)
		if i == len(t.widths) {
			t.widths = append(t.widths, 0)
		}
		t.widths[i] = max(t.widths[i], columns(cells[i]))
	}
	t.rows = append(t.rows, cells)
}

// addKnown adds a row with a name and a value, unless there is no value.
func (t *table) addKnown(name, value string) {
	if value != "" {
		t.add(name, value)
	}
}

func (t *table) print(w io.Writer) error {
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			line.WriteString(strings.Repeat(" ", t.widths[i]-columns(cell)+2))
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// columns is how many columns of a terminal a text takes: kana and kanji take two each, and accents
// none.
func columns(text string) int {
	n := 0
	for _, r := range text {
		kind := width.LookupRune(r).Kind()
		switch {
		case unicode.Is(unicode.Mn, r):
		case kind == width.EastAsianWide, kind == width.EastAsianFullwidth:
			n += 2
		default:
			n++
		}
	}
	return n
}
