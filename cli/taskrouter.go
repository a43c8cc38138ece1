package cli

import "github.com/spf13/cobra"

func newTaskRouterCommand() *cobra.Command {
	group := newGroup("taskrouter", "See who answers calls that come in", newTaskRouterStatus())
	group.GroupID = groupUse
	addConnectionFlags(group)
	return group
}
