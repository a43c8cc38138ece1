package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/todoku/todoku/migrations"
)

func newMigrateCommand() *cobra.Command {
	group := newGroup("migrate", "Bring the database's schema up to date, or back",
		newMigrateUp(),
		newMigration("down", "Take the newest migration back, with all data in what it made",
			"There is no way to get the data back but a backup.",
			migrations.Down, "took back", "no migration is left to take back"),
		newMigrationStatus(),
	)
	group.GroupID = groupManage
	group.Example = "  todoku migrate status\n  todoku migrate up"
	return group
}

func newMigrateUp() *cobra.Command {
	var grantTo string
	up := newMigration("up", "Apply every migration that the database lacks",
		"It may run again, and several may start together: they wait for each other. With --grant, API and workers can\n"+
			"connect as a role that reads and writes rows and cannot change the schema, which belongs to the role of DATABASE_URL.",
		func(ctx context.Context, database string) ([]migrations.Migration, error) {
			applied, err := migrations.Up(ctx, database)
			if err == nil && grantTo != "" {
				err = migrations.Grant(ctx, database, grantTo)
			}
			return applied, err
		}, "applied", "the schema is up to date already")
	up.Flags().StringVar(&grantTo, "grant", "", "grant this role of Postgres what API and workers need")
	return up
}

func newMigration(use, short, more string, run func(context.Context, string) ([]migrations.Migration, error), did, nothing string) *cobra.Command {
	return &cobra.Command{
		Use:     use,
		Short:   short,
		Long:    short + ".\n\n" + more + "\n\nThe database is that of DATABASE_URL.",
		Example: "  DATABASE_URL=postgres://USER:PASSWORD@HOST:5432/todoku todoku migrate " + use,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			database, err := databaseURL(cmd)
			if err != nil {
				return err
			}
			changed, err := run(cmd.Context(), database)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if wantsJSON(cmd) {
				return writeJSON(out, itemsOf(changed))
			}
			if len(changed) == 0 {
				fmt.Fprintln(out, nothing)
			}
			for _, m := range changed {
				fmt.Fprintf(out, "%s %s\n", did, m.Name)
			}
			return nil
		},
	}
}

func newMigrationStatus() *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "List the migrations and whether the database has them",
		Example: "  todoku migrate status\n  todoku migrate status --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			database, err := databaseURL(cmd)
			if err != nil {
				return err
			}
			zone, err := timezone()
			if err != nil {
				return err
			}
			all, err := migrations.Status(cmd.Context(), database)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if wantsJSON(cmd) {
				return writeJSON(out, itemsOf(all))
			}
			rows := newTable("NAME", "APPLIED")
			for _, m := range all {
				applied := "not yet: run `todoku migrate up`"
				if m.AppliedAt != nil {
					applied = m.AppliedAt.In(zone).Format(timeLayout)
				}
				rows.add(m.Name, applied)
			}
			return rows.print(out)
		},
	}
}
