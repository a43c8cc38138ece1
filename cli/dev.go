package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/todoku/todoku/devstack"
	"github.com/todoku/todoku/settings"
	"github.com/todoku/todoku/store"
)

// The folder in which `todoku dev` keeps its data unless told otherwise, and the file in it that says
// where everything is while it runs. Other commands look for it.
const (
	devFolder = ".todoku"
	devReady  = "ready.json"
)

func newDevCommand() *cobra.Command {
	var options devstack.Options
	cmd := &cobra.Command{
		Use:     "dev",
		GroupID: groupRun,
		Short:   "Run everything on this machine, to try it and to develop with it",
		Long: `Run everything on this machine, to try it and to develop with it: Postgres, Temporal with its Web UI,
a simulator of Twilio, workers and the API, each of which is started again when it dies.

What is missing (Postgres, the Temporal CLI) is installed first, with a line that says so. All data is
kept in the folder .todoku, so nothing is lost between two runs. Ports that are taken are replaced by
free ones, with a line about it. Ctrl-C stops everything.

Settings come from the environment and from the file .env in this folder; .env.example lists them.
Nothing need be set. DATABASE_URL and TEMPORAL_ADDRESS use a Postgres and a Temporal that run already;
TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN send through the real Twilio, which costs money.

Commands such as 'todoku send sms' that are given in the same folder find what runs by themselves.`,
		Example: `  todoku dev
  todoku dev --workers 3
  todoku dev --ephemeral --ready-file /tmp/ready.json    # free ports, no data kept: for tests`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if options.Workers < 0 {
				return usageErrorf("--workers is how many workers run: 0 or more")
			}
			if options.Ephemeral && cmd.Flags().Changed("dir") {
				return usageErrorf("--ephemeral keeps no data, so --dir has no use with it: leave one of them out")
			}
			environment, err := environ()
			if err != nil {
				return err
			}
			if err := checkDevSettings(environment); err != nil {
				return err
			}
			for _, name := range slices.Sorted(maps.Keys(environment)) {
				options.Env = append(options.Env, name+"="+environment[name])
			}
			options.Check = checkDevLedger
			if options.ReadyFile == "" && !options.Ephemeral {
				options.ReadyFile = filepath.Join(options.Dir, devReady)
			}
			return runDev(cmd, options)
		},
	}
	cmd.Flags().BoolVar(&options.Ephemeral, "ephemeral", false, "use free ports and a temporary folder, which is removed at the end")
	cmd.Flags().StringVar(&options.ReadyFile, "ready-file", "", "write where everything is, as JSON with the API key, to this `file` once it is ready (default ready.json in --dir, where other commands look for it)")
	cmd.Flags().IntVar(&options.Workers, "workers", 1, "how many workers run")
	cmd.Flags().StringVar(&options.Dir, "dir", devFolder, "the `folder` for all data")
	return cmd
}

// checkDevSettings finds a malformed setting before anything starts. What is missing, dev provides.
func checkDevSettings(environment map[string]string) error {
	var need settings.Need
	isSet := func(name string) bool { return environment[name] != "" || environment[name+"_FILE"] != "" }
	if isSet("TWILIO_ACCOUNT_SID") && isSet("TWILIO_AUTH_TOKEN") {
		need = settings.Carrier
	}
	_, err := settings.LoadFrom(environment, need)
	return err
}

// checkDevLedger refuses, before anything is sent, a folder that was used with another account.
func checkDevLedger(ctx context.Context, env []string) error {
	environment := map[string]string{}
	for _, line := range env {
		name, value, _ := strings.Cut(line, "=")
		environment[name] = value
	}
	set, err := settings.LoadFrom(environment, settings.Database|settings.Carrier|settings.Phones)
	if err != nil {
		return err
	}
	ledger, err := store.Open(ctx, set.DatabaseURL)
	if err != nil {
		return err
	}
	defer ledger.Close()
	twilio, err := newCarrier(set)
	if err != nil {
		return err
	}
	defer twilio.Close()
	err = binding{settings: set, store: ledger, carrier: twilio}.check(ctx)
	if isRefusal(err) {
		return fmt.Errorf("%w (`todoku dev --dir FOLDER` has a database of its own for each folder)", err)
	}
	return nil // what cannot be asked now, the processes ask again
}

// runDev keeps the stack until the command is interrupted. An error of its start may end in the last
// lines that one of the processes logged.
func runDev(cmd *cobra.Command, options devstack.Options) error {
	if !wantsJSON(cmd) {
		options.Out = cmd.OutOrStdout()
		if err := devstack.Run(cmd.Context(), options); err != nil {
			return inLines{err}
		}
		return nil
	}
	options.Out = cmd.ErrOrStderr()
	stack, err := devstack.Start(cmd.Context(), options)
	switch {
	case err != nil && cmd.Context().Err() != nil:
		return nil // stopped before it was ready, as asked
	case err != nil:
		return inLines{err}
	}
	defer stack.Stop()
	if err := writeJSON(cmd.OutOrStdout(), stack.Ready()); err != nil {
		return err
	}
	<-cmd.Context().Done()
	return nil
}

// runningDev reads what a `todoku dev` that runs in this folder says of itself. It may have been
// killed since.
func runningDev() (running devstack.Ready, found bool, err error) {
	path := filepath.Join(devFolder, devReady)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return running, false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &running)
	}
	if err != nil {
		return running, false, fmt.Errorf("read what `todoku dev` in this folder left in %s: %w", path, err)
	}
	return running, true, nil
}
