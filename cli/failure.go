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
		fmt.Fprintf(w, "%s: %s\n", path, clean(inCommands.Replace(cmp.Or(fromAPI.Detail, fromAPI.Title))))
	case fromAPI != nil:
		fmt.Fprintf(w, "%s: %s\n", path, clean(fromAPI.Title))
		fields := newTable()
		for _, e := range fromAPI.Errors {
			fields.add("", cmp.Or(rowOf(e.Pointer), "(all of it)"), inCommands.Replace(e.Detail))
		}
		_ = fields.print(w) // nobody is left to tell
	case errors.As(err, new(inLines)):
		fmt.Fprintf(w, "%s: %v\n", path, err)
	default:
		fmt.Fprintf(w, "%s: %s\n", path, oneLine(err))
	}
}

var rowPointer = regexp.MustCompile(`^/(?:recipients|members)/(\d+)`)

// rowOf names the row that a pointer leads to, of a file or a list; rows are counted as in a report of rejected ones.
func rowOf(pointer string) string {
	found := rowPointer.FindStringSubmatchIndex(pointer)
	if found == nil {
		return pointer
	}
	index, err := strconv.Atoi(pointer[found[2]:found[3]])
	if err != nil {
		return pointer
	}
	return strings.TrimSpace(fmt.Sprintf("row %d %s", index+1, pointer[found[1]:]))
}

// inCommands names the command where the API names its own address.
var inCommands = strings.NewReplacer(
	"see GET /api/v1/inbound/calls", "see `todoku inbound list`",
	"see GET /api/v1/lists/{id}/members", "see `todoku list members`",
	"see GET /api/v1/lists", "see `todoku list list`",
	"see GET /api/v1/schedules", "see `todoku schedule list`",
	"see GET /api/v1/senders", "see `todoku sender list`",
	"see GET /api/v1/templates", "see `todoku template list`",
)

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
