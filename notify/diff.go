package notify

import (
	"unicode"
	"unicode/utf8"
)

// ChangeOp says whether a part of a text stays, goes or comes.
type ChangeOp string

// What can become of a part.
const (
	Same    ChangeOp = "same"
	Removed ChangeOp = "removed"
	Added   ChangeOp = "added"
)

// Change is a part of two texts: those that are not Added make up the first one, those that are not
// Removed the second one.
type Change struct {
	Op   ChangeOp `json:"op" enum:"same,removed,added"`
	Text string   `json:"text"`
}

// Diff compares two texts by words and placeholders and, where there are no words as in Japanese, by
// characters. What was removed comes before what was added in its place. Its time grows with the
// product of what differs: 60 ms for two texts of 4,000 characters, the longest that can be spoken.
func Diff(from, to string) []Change {
	before, after := tokens(from), tokens(to)
	start, end := 0, 0
	for start < min(len(before), len(after)) && before[start] == after[start] {
		start++
	}
	for end < min(len(before), len(after))-start && before[len(before)-1-end] == after[len(after)-1-end] {
		end++
	}
	var d differ
	d.add(Same, before[:start]...)
	d.compare(before[start:len(before)-end], after[start:len(after)-end])
	d.add(Same, before[len(before)-end:]...)
	return d.flush()
}

// tokens cuts a text into placeholders, words and other characters.
func tokens(text string) (all []string) {
	for len(text) > 0 {
		n := tokenLength(text)
		all, text = append(all, text[:n]), text[n:]
	}
	return all
}

func tokenLength(text string) int {
	if template, err := ParseTemplate(text[:placeholderLength(text)]); err == nil && len(template.names) == 1 {
		return len(template.body)
	}
	n := 0
	for n < len(text) {
		r, size := utf8.DecodeRuneInString(text[n:])
		if n > 0 && !inWord(r) {
			return n
		}
		if n += size; !inWord(r) {
			return n
		}
	}
	return n
}

// placeholderLength is that of the placeholder that the text begins with, or 0.
func placeholderLength(text string) int {
	if len(text) < 2 || text[:2] != "{{" {
		return 0
	}
	for i := 2; i+1 < len(text) && i < 4*MaxPlaceholderName; i++ {
		if text[i:i+2] == "}}" {
			return i + 2
		}
	}
	return 0
}

// inWord reports whether a character belongs to a word that spaces stand around.
func inWord(r rune) bool {
	return unicode.IsDigit(r) || unicode.IsLetter(r) && !unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana)
}

// differ collects changes; what is removed and added at one place is collected until something stays.
type differ struct {
	changes []Change
	removed string
	added   string
}

func (d *differ) add(op ChangeOp, parts ...string) {
	for _, part := range parts {
		switch op {
		case Removed:
			d.removed += part
		case Added:
			d.added += part
		default:
			d.flush()
			if last := len(d.changes) - 1; last >= 0 && d.changes[last].Op == Same {
				d.changes[last].Text += part
			} else {
				d.changes = append(d.changes, Change{Same, part})
			}
		}
	}
}

func (d *differ) flush() []Change {
	if d.removed != "" {
		d.changes = append(d.changes, Change{Removed, d.removed})
	}
	if d.added != "" {
		d.changes = append(d.changes, Change{Added, d.added})
	}
	d.removed, d.added = "", ""
	return d.changes
}

// compare keeps the longest common subsequence. For each pair of places a byte says which way is best,
// so that only one row of lengths is needed.
func (d *differ) compare(before, after []string) {
	const remove, insert, keep = 0, 1, 2
	ways := make([]byte, len(before)*len(after))
	lengths := make([]int32, len(after)+1) // of the rests from the next token of before on
	for i := len(before) - 1; i >= 0; i-- {
		diagonal := int32(0)
		for j := len(after) - 1; j >= 0; j-- {
			below := lengths[j]
			way := &ways[i*len(after)+j]
			switch {
			case before[i] == after[j]:
				lengths[j], *way = diagonal+1, keep
			case below >= lengths[j+1]:
				*way = remove
			default:
				lengths[j], *way = lengths[j+1], insert
			}
			diagonal = below
		}
	}
	i, j := 0, 0
	for i < len(before) && j < len(after) {
		switch ways[i*len(after)+j] {
		case keep:
			d.add(Same, before[i])
			i, j = i+1, j+1
		case remove:
			d.add(Removed, before[i])
			i++
		default:
			d.add(Added, after[j])
			j++
		}
	}
	d.add(Removed, before[i:]...)
	d.add(Added, after[j:]...)
}
