package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/todoku/todoku/api/problem"
)

// errToldAlready is the error of a command that failed and has said so in its output, as
// `send --wait` does of a notification that was not delivered.
var errToldAlready = errors.New("failed")

// usageError says how a command was called wrongly.
type usageError struct{ problem string }

func (e *usageError) Error() string { return e.problem }

func usageErrorf(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// inLines marks an error that has several lines on purpose: the end of a log.
type inLines struct{ error }

// aboutFile marks an error as one about an uploaded file, in which people look for rows.
type aboutFile struct{ error }

func (a aboutFile) Unwrap() error { return a.error }

var filePointer = regexp.MustCompile(`^/(?:recipients|members)/(\d+)`)

// inFile names the row of the file that a pointer leads to; rows are counted as in a report of rejected ones.
func inFile(pointer string) string {
	found := filePointer.FindStringSubmatchIndex(pointer)
	if found == nil {
		return pointer
	}
	index, err := strconv.Atoi(pointer[found[2]:found[3]])
	if err != nil {
		return pointer
	}
	return strings.TrimSpace(fmt.Sprintf("row %d %s", index+1, pointer[found[1]:]))
}

// ran marks an error as one that a command met while it ran. What cobra returns without the mark is
// about the way the command was called.
type ran struct{ error }

func (r ran) Unwrap() error { return r.error }

// markRuns makes every command mark its errors.
func markRuns(command *cobra.Command) {
	if run := command.RunE; run != nil {
		command.RunE = func(cmd *cobra.Command, args []string) error {
			if err := run(cmd, args); err != nil {
				return ran{err}
			}
			return nil
		}
	}
	for _, c := range command.Commands() {
		markRuns(c)
	}
}

// report tells the person or program at the other end why a command failed, and returns the exit
// code. args decide how: a command line that cannot be read may still have --json on it.
func report(w io.Writer, command *cobra.Command, args []string, err error) int {
	var usage *usageError
	var fromAPI *problem.Problem
	errors.As(err, &fromAPI)
	isUsage := errors.As(err, &usage) || !errors.As(err, new(ran))
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errToldAlready):
		return exitFailed
	case errors.Is(err, context.Canceled):
		err = errors.New("interrupted")
	}
	if slices.Contains(args, "--json") || slices.Contains(args, "--json=true") {
		writeFailureJSON(w, fromAPI, isUsage, err)
	} else {
		writeFailure(w, command, fromAPI, isUsage, err)
	}
	if isUsage {
		return exitUsage
	}
	return exitFailed
}

// writeFailure says it in words: in one line or, for a problem of the API's, in one more for each
// thing that is wrong.
func writeFailure(w io.Writer, command *cobra.Command, fromAPI *problem.Problem, isUsage bool, err error) {
	path := command.CommandPath()
	switch {
	case isUsage:
		fmt.Fprintf(w, "%s: %s\nSee '%s --help'.\n", path, strings.TrimSpace(err.Error()), path)
	case fromAPI != nil && len(fromAPI.Errors) == 0:
		fmt.Fprintf(w, "%s: %s\n", path, clean(cmp.Or(fromAPI.Detail, fromAPI.Title)))
	case fromAPI != nil:
		fmt.Fprintf(w, "%s: %s\n", path, clean(fromAPI.Title))
		fields := newTable()
		for _, e := range fromAPI.Errors {
			where := e.Pointer
			if errors.As(err, new(aboutFile)) {
				where = inFile(where)
			}
			fields.add("", cmp.Or(where, "(all of it)"), e.Detail)
		}
		_ = fields.print(w) // nobody is left to tell
	case errors.As(err, new(inLines)):
		fmt.Fprintf(w, "%s: %v\n", path, err)
	default:
		fmt.Fprintf(w, "%s: %s\n", path, oneLine(err))
	}
}

// writeFailureJSON says it as the API does: what the API did not say itself takes the same form, with
// a code of the command line's own and no status, since there was no answer.
func writeFailureJSON(w io.Writer, fromAPI *problem.Problem, isUsage bool, err error) {
	if fromAPI != nil {
		_ = writeJSON(w, fromAPI) // nobody is left to tell
		return
	}
	failure := struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Detail string `json:"detail"`
		Code   string `json:"code"`
	}{"about:blank", "The command failed", oneLine(err), "command_failed"}
	if isUsage {
		failure.Title, failure.Code = "The command was called wrongly", "bad_usage"
	}
	_ = writeJSON(w, failure) // nobody is left to tell
}

// oneLine is an error's text without line breaks: a failed start is one line, whatever a library
// thinks of it.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
