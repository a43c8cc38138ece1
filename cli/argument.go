package cli

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// oneArgument takes exactly one argument; what says which, for the message when it is missing.
func oneArgument(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return usageErrorf("an argument is missing: %s", what)
		case 1:
			return nil
		}
		return usageErrorf("%d arguments are too many: give only %s", len(args), what)
	}
}

// parseID reads an id that is a number: of all but notifications, batches and calls.
func parseID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 {
		return 0, usageErrorf("%q is not an id: ids are numbers from 1 on", text)
	}
	return id, nil
}

// parseParams reads the values of --param. A value may have = in it.
func parseParams(pairs []string) (map[string]string, error) {
	params := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, usageErrorf("--param %q: write NAME=VALUE", pair)
		}
		if _, twice := params[name]; twice {
			return nil, usageErrorf("--param %s is given twice: keep one of the two", name)
		}
		params[name] = value
	}
	return params, nil
}

const sendAtUsage = "not before this `time`: '2026-04-01 09:00' in DEFAULT_TIMEZONE, 2026-04-01T09:00:00+09:00, or 90m from now"

// parseMoment reads a moment as people write it: a time in DEFAULT_TIMEZONE, RFC 3339, or a duration
// from now.
func parseMoment(text string, now time.Time) (*time.Time, error) {
	if in, err := time.ParseDuration(text); err == nil {
		return new(now.Add(in)), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return &at, nil
	}
	zone, err := timezone()
	if err != nil {
		return nil, err
	}
	for _, layout := range []string{"2006-01-02 15:04", time.DateTime, time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, zone); err == nil {
			return &at, nil
		}
	}
	return nil, usageErrorf("%q is no time: write '2026-04-01 09:00', 2026-04-01T09:00:00+09:00, or 90m", text)
}

// parsePast is parseMoment, but a duration means how long ago.
func parsePast(text string) (*time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil {
		return new(time.Now().Add(-ago)), nil
	}
	return parseMoment(text, time.Now())
}

// noArguments is for commands that are told everything by flags.
func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageErrorf("it takes no arguments, only flags, but was given %q", args[0])
	}
	return nil
}

// requireFlags makes a command refuse to run without these flags.
func requireFlags(cmd *cobra.Command, names ...string) {
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		var missing []string
		for _, name := range names {
			if !cmd.Flags().Changed(name) {
				missing = append(missing, "--"+name)
			}
		}
		if len(missing) > 0 {
			return usageErrorf("missing: %s", strings.Join(missing, ", "))
		}
		return nil
	}
}

// flagError says in plain words what is wrong with a flag.
func flagError(_ *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return &usageError{err.Error()}
	}
	kinds := map[string]string{
		"int":      "a whole number",
		"int64":    "a whole number",
		"bool":     "true or false",
		"duration": "a duration such as 30s or 2m",
	}
	flag := invalid.GetFlag()
	if kind, known := kinds[flag.Value.Type()]; known {
		return usageErrorf("--%s must be %s", flag.Name, kind)
	}
	return &usageError{err.Error()}
}
