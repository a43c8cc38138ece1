package cli

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/todoku/todoku/api/v1"
)

func newSenderCommand() *cobra.Command {
	group := newGroup("sender", "See what is sent from, and resume a sender that was stopped", newSenderList(), newSenderResume())
	group.GroupID = groupUse
	group.Long = `See what is sent from, and resume a sender that was stopped.

A sender is a number or a Messaging Service of Twilio's. When Twilio refuses the account or the sender
itself, the sender is stopped and what it should send is HELD; nothing is lost. Mend the cause that
'todoku sender list' names, then resume it.`
	group.Example = "  todoku sender list\n  todoku sender resume 1"
	addConnectionFlags(group)
	return group
}

func newSenderList() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the senders: their pace, what waits and what stopped them",
		Example: "  todoku sender list\n  todoku sender list --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := newClient(cmd)
			if err != nil {
				return err
			}
			return show(cmd, c, "/senders", inZone(printSenders))
		},
	}
}

func printSenders(out io.Writer, senders items[v1.Sender], zone *time.Location) error {
	if len(senders.Items) == 0 {
		_, err := fmt.Fprintln(out, "there are no senders yet: the first send on a channel makes one")
		return err
	}
	rows := newTable("ID", "CHANNEL", "ADDRESS", "PACE", "WAITING", "QUEUED", "STATE")
	for _, s := range senders.Items {
		pace := "no pacing"
		if s.SendIntervalMS > 0 {
			pace = "one each " + (time.Duration(s.SendIntervalMS) * time.Millisecond).String()
		}
		queued := strconv.FormatInt(s.Queued, 10)
		if s.QueueLimit > 0 {
			queued += " of " + strconv.FormatInt(s.QueueLimit, 10)
		}
		state := s.State
		switch {
		case s.StoppedAt != nil:
			state += fmt.Sprintf(" (%s): %s", valueOf(s.StopCode), valueOf(s.StopReason))
		case s.QueueUnlimitedAt != nil:
			state += "; no status callbacks come, so Twilio's queue has no limit (check TODOKU_PUBLIC_URL)"
		case s.QueueFullAt != nil:
			state += fmt.Sprintf("; waits for room in Twilio's queue since %s", s.QueueFullAt.In(zone).Format(timeLayout))
		case s.SlowedAt != nil:
			state += fmt.Sprintf("; slowed down by Twilio (%s) at %s", valueOf(s.SlowCode), s.SlowedAt.In(zone).Format(timeLayout))
		}
		rows.add(strconv.FormatInt(s.ID, 10), string(s.Channel), s.Address, pace, strconv.FormatInt(s.Waiting, 10), queued, state)
	}
	return rows.print(out)
}

func newSenderResume() *cobra.Command {
	return &cobra.Command{
		Use:     "resume ID",
		Short:   "Let a stopped sender go on",
		Long:    "Let a stopped sender go on. What is HELD is sent then. Resuming a sender that runs changes nothing.",
		Example: "  todoku sender resume 1",
		Args:    oneArgument(senders.argument),
		RunE: senders.run(func(cmd *cobra.Command, c *client, path string) error {
			return printAnswer(cmd, c, once(http.MethodPost, path+"/resume", nil), func(out io.Writer, s v1.Sender) error {
				_, err := fmt.Fprintf(out, "sender %d is %s; %d wait to be sent\n", s.ID, s.State, s.Waiting)
				return err
			})
		}),
	}
}
