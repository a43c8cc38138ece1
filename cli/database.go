package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/todoku/todoku/settings"
)

// databaseURL is where the commands that work on the database itself find it: DATABASE_URL in the
// environment or in .env, else the database of a `todoku dev` that runs in this folder, which a line
// on standard error says.
func databaseURL(cmd *cobra.Command) (string, error) {
	environment, err := environ()
	if err != nil {
		return "", err
	}
	if environment["DATABASE_URL"] == "" && environment["DATABASE_URL_FILE"] == "" {
		running, found, err := runningDev()
		if err != nil {
			return "", err
		}
		if found {
			fmt.Fprintln(cmd.ErrOrStderr(), "the database is that of `todoku dev` in this folder")
			return running.DatabaseURL, nil
		}
	}
	set, err := settings.LoadFrom(environment, settings.Database)
	if err != nil {
		return "", err
	}
	return set.DatabaseURL, nil
}
