package v1

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/todoku/todoku/api/problem"
)

// How many characters what people write for themselves may have.
const (
	longestGivenName = 100
	longestReference = 255
	longestNote      = 500
)

func checkName(wrong *problem.Details, name string) {
	if !wrong.At("/name") && strings.TrimSpace(name) == "" {
		wrong.Add("/name", problem.NameEmpty, "the name is empty: write one")
		return
	}
	checkBatchName(wrong, &name)
}

// checkBatchName lets a batch have none.
func checkBatchName(wrong *problem.Details, name *string) {
	checkLabel(wrong, "/name", "name", name, longestGivenName, unicode.IsControl, problem.NameTooLong, problem.NameControl)
}

func checkReference(wrong *problem.Details, reference *string) {
	checkLabel(wrong, "/reference", "reference", reference, longestReference, unicode.IsControl, problem.ReferenceTooLong, problem.ReferenceControl)
}

// checkNote lets people write several lines.
func checkNote(wrong *problem.Details, pointer string, note *string) {
	checkLabel(wrong, pointer, "note", note, longestNote, isHidden, problem.NoteTooLong, problem.NoteControl)
}

// checkLabel checks what people write for themselves, unless something is wrong with it already.
func checkLabel(wrong *problem.Details, pointer, what string, text *string, longest int, forbidden func(rune) bool, tooLong, control problem.Code) {
	if text == nil || wrong.At(pointer) {
		return
	}
	switch length := utf8.RuneCountInString(*text); {
	case length > longest:
		wrong.Add(pointer, tooLong, fmt.Sprintf("the %s has %d characters, and %d are allowed: shorten it", what, length, longest))
	case strings.ContainsFunc(*text, forbidden):
		wrong.Add(pointer, control, "the "+what+" has control characters: remove them")
	}
}

// isHidden reports whether a character is neither read nor breaks a line or a column.
func isHidden(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\n\r\t", r) }
