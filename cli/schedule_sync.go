package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/starter"
	"github.com/todoku/todoku/store"
)

func newScheduleSync() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "sync [--dry-run]",
		Short: "Make Temporal's Schedules what the database says",
		Long: `Make Temporal's Schedules what the database says, and delete those of its own that it does not have.

Workers do this after every change and every few minutes; this is for looking at what they would do, or
for doing it without them. It works on the database (DATABASE_URL) and on Temporal (TEMPORAL_ADDRESS)
themselves, else on those of a 'todoku dev' in this folder. Over all processes one sync runs at a time.
It ends with 1 when Temporal did not take a schedule.`,
		Example: "  todoku schedule sync --dry-run\n  todoku schedule sync --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			database, err := databaseURL(cmd)
			if err != nil {
				return err
			}
			if err := findTemporal(); err != nil {
				return err
			}
			s, err := store.Open(cmd.Context(), database)
			if err != nil {
				return err
			}
			defer s.Close()
			temporal, err := starter.Dial("", slog.New(slog.DiscardHandler))
			if err != nil {
				return err
			}
			defer temporal.Close()
			sync := activities.ScheduleSync{Store: s, Temporal: temporal, Log: slog.New(slog.DiscardHandler), DryRun: dryRun}
			if !dryRun {
				err := temporal.EnsureSearchAttributes(cmd.Context())
				if attributes, lacking := errors.AsType[*starter.AttributesError](err); err != nil && !(lacking && attributes.Unknown) {
					return err
				}
			}
			done, err := sync.All(cmd.Context())
			if err != nil {
				return err
			}
			return printSynced(cmd, done, dryRun)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would change, and change nothing")
	return cmd
}

// findTemporal lets the client find Temporal as everything else is found: in the environment, in .env,
// or by a `todoku dev` in this folder.
func findTemporal() error {
	environment, err := environ()
	if err != nil {
		return err
	}
	for name, value := range environment {
		if strings.HasPrefix(name, "TEMPORAL_") && os.Getenv(name) == "" {
			if err := os.Setenv(name, value); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	if environment["TEMPORAL_ADDRESS"] != "" || environment["TEMPORAL_CONFIG_FILE"] != "" {
		return nil
	}
	running, found, err := runningDev()
	if err != nil || !found {
		return err
	}
	return os.Setenv("TEMPORAL_ADDRESS", running.Temporal)
}

func printSynced(cmd *cobra.Command, done activities.Synced, dryRun bool) error {
	out := cmd.OutOrStdout()
	switch {
	case wantsJSON(cmd):
		err := writeJSON(out, struct {
			DryRun    bool                    `json:"dry_run"`
			Unchanged int                     `json:"unchanged"`
			Items     []activities.SyncChange `json:"items"`
		}{dryRun, done.Unchanged, itemsOf(done.Changes).Items})
		if err != nil {
			return err
		}
	case len(done.Changes) == 0:
		fmt.Fprintf(out, "nothing to change: Temporal has all %d as they are here\n", done.Unchanged)
	default:
		rows := newTable("ACTION", "SCHEDULE", "WHY", "NAME")
		for _, c := range done.Changes {
			why := c.Reason
			if c.Error != "" {
				why = "FAILED: " + c.Error
			}
			rows.add(string(c.Action), c.ID, why, c.Name)
		}
		if err := rows.print(out); err != nil {
			return err
		}
		verb := "are as they should be"
		if dryRun {
			verb = "would stay as they are; nothing was changed"
		}
		fmt.Fprintf(out, "%d %s\n", done.Unchanged, verb)
	}
	if done.Failed() > 0 {
		return errToldAlready
	}
	return nil
}
