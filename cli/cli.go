// Package cli is the command line: one file for each command, and this one for what they share.
package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// The exit codes. They are part of the contract with scripts.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// The groups that the help sorts commands into.
const (
	groupUse    = "use"
	groupRun    = "run"
	groupManage = "manage"
)

// Main runs the command that args name and returns the process's exit code: 0 done, 1 failed, 2 bad
// usage. SIGINT and SIGTERM end ctx, which every command obeys; a second one ends the process at once.
func Main(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	root := newRootCommand()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	command, err := root.ExecuteContextC(ctx)
	return report(errOut, command, args, err)
}

func newRootCommand() *cobra.Command {
	cobra.EnableCommandSorting = false // help lists commands in the order in which they are met
	root := &cobra.Command{
		Use:   "todoku",
		Short: "Send SMS and automated calls, and know what became of each one",
		Long: `Todoku sends SMS and automated calls through Twilio and knows what became of each one.

Start everything on this machine, with a simulator in Twilio's place:

  todoku dev

Then, in another terminal in the same folder:

  todoku send sms --to 090-1234-5678 --body 'Hello from Todoku' --wait

Exit codes: 0 done, 1 failed, 2 bad usage.`,
		Version:       readVersion().String(),
		SilenceErrors: true, // report prints them
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate("{{.Version}}\n")
	root.PersistentFlags().Bool("json", false, "print JSON, failures too")
	root.AddGroup(
		&cobra.Group{ID: groupUse, Title: "Use a Todoku that runs:"},
		&cobra.Group{ID: groupRun, Title: "Run it:"},
		&cobra.Group{ID: groupManage, Title: "Look after its database:"},
	)
	root.AddCommand(
		newSendCommand(),
		newBatchCommand(),
		newNotificationCommand(),
		newTemplateCommand(),
		newListCommand(),
		newScheduleCommand(),
		newSenderCommand(),
		newInboundCommand(),
		newTaskRouterCommand(),
		newDevCommand(),
		newAPICommand(),
		newWorkerCommand(),
		newSimulatorCommand(),
		newReadyCommand(),
		newMigrateCommand(),
		newLedgerCommand(),
		newKeyCommand(),
		newVersionCommand(),
	)
	markRuns(root)
	return root
}

// wantsJSON reports whether --json was given.
func wantsJSON(cmd *cobra.Command) bool {
	wanted, err := cmd.Flags().GetBool("json")
	return err == nil && wanted
}

// newGroup is a command that only leads to others.
func newGroup(use, short string, commands ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{
		Use:                        use,
		Short:                      short,
		SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("say which: %s", names(commands))
			}
			if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
				return usageErrorf("unknown command %q: did you mean %s?", args[0], similar[0])
			}
			return usageErrorf("unknown command %q: there are %s", args[0], names(commands))
		},
	}
	group.AddCommand(commands...)
	return group
}

func names(commands []*cobra.Command) string {
	var list []string
	for _, c := range commands {
		list = append(list, c.Name())
	}
	return strings.Join(list, ", ")
}
