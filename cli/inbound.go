package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/todoku/todoku/api/v1"
)

func newInboundCommand() *cobra.Command {
	group := newGroup("inbound", "See the calls that came in, and what became of each caller", newInboundList(), newInboundShow())
	group.GroupID = groupUse
	group.Long = `See the calls that came in, and what became of each caller.

A caller who speaks with nobody is sent an SMS, called, or given to an operator as a task, as taskrouter.yaml
says. 'todoku taskrouter status' shows how the queue is doing.`
	group.Example = "  todoku inbound list --state abandoned --from 24h\n  todoku inbound show 0190b0a0-0000-5000-8000-000000000000"
	addConnectionFlags(group)
	return group
}

func newInboundList() *cobra.Command {
	var (
		state, phone, from, to string
		part                   paging
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the calls that came in, the newest first",
		Long: `List the calls that came in, the newest first. What is given must all fit.

States: received, waiting, reserved, answered; finished, callback_requested, timed_out, turned_away,
abandoned and missed are final. Times are written as '2026-04-01 09:00' in the zone of DEFAULT_TIMEZONE, as
2026-04-01T09:00:00+09:00, or as how long ago: 24h. Numbers are masked unless the key has the scope pii.`,
		Example: "  todoku inbound list\n  todoku inbound list --state abandoned --from 24h\n  todoku inbound list --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query, err := part.query(map[string]string{"state": strings.ToUpper(state), "phone": phone})
			if err != nil {
				return err
			}
			if err := addPeriod(query, from, to); err != nil {
				return err
			}
			c, err := newClient(cmd)
			if err != nil {
				return err
			}
			return listPage(cmd, c, "/inbound/calls", query, "there are no such calls", inboundTable)
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only those in this `state`")
	cmd.Flags().StringVar(&phone, "phone", "", "only from this whole `number`, in any form")
	cmd.Flags().StringVar(&from, "from", "", "only first heard of at this `time` or later")
	cmd.Flags().StringVar(&to, "to", "", "only first heard of before this `time`")
	part.addFlags(cmd)
	return cmd
}

func inboundTable(calls []v1.InboundCall, zone *time.Location) *table {
	rows := newTable("ID", "STATE", "REASON", "FROM", "CAME IN", "WAITED", "OPERATOR", "THEN")
	for _, c := range calls {
		rows.add(c.ID.String(), string(c.State), valueOf(c.Reason), valueOf(c.From), c.CreatedAt.In(zone).Format(timeLayout), lasting(c.WaitSeconds), valueOf(c.OperatorName), followUpLine(c))
	}
	return rows
}

// lasting is a time in seconds as people read it, or nothing.
func lasting(seconds *float64) string {
	if seconds == nil {
		return ""
	}
	return (time.Duration(*seconds*1000) * time.Millisecond).Round(100 * time.Millisecond).String()
}

// followUpLine says what was done about a caller, where there was something to do.
func followUpLine(c v1.InboundCall) string {
	action := valueOf(c.FollowUp)
	if reason := valueOf(c.FollowUpReason); reason != "" {
		return action + ": " + reason
	}
	if action == "none" {
		return ""
	}
	return action
}

func newInboundShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show one call that came in, and its timeline",
		Long: `Show one call that came in, and its timeline: what Twilio told of it, in the order in which it happened.

With --json the API's answer about the call is printed, without the timeline.`,
		Example: "  todoku inbound show 0190b0a0-0000-5000-8000-000000000000",
		Args:    oneArgument(inboundCalls.argument),
		RunE: inboundCalls.run(func(cmd *cobra.Command, c *client, path string) error {
			if err := show(cmd, c, path, inZone(printInbound)); err != nil || wantsJSON(cmd) {
				return err
			}
			return show(cmd, c, path+"/events", inZone(printInboundTimeline))
		}),
	}
}

// printInbound leaves out what is not known.
func printInbound(out io.Writer, c v1.InboundCall, zone *time.Location) error {
	rows := newTable()
	add := rows.addKnown
	add("id", c.ID.String())
	add("state", string(c.State))
	add("reason", valueOf(c.Reason))
	add("from", valueOf(c.From))
	add("to", valueOf(c.To))
	add("operator", strings.TrimSpace(valueOf(c.OperatorName)+" "+valueOf(c.OperatorSID)))
	add("came in", timeOr(c.ReceivedAt, zone, ""))
	add("queued", timeOr(c.WaitingAt, zone, ""))
	add("rang", timeOr(c.ReservedAt, zone, ""))
	add("answered", timeOr(c.AnsweredAt, zone, ""))
	add("ended", timeOr(c.EndedAt, zone, ""))
	add("waited", lasting(c.WaitSeconds))
	add("talked", lasting(c.TalkSeconds))
	add("then", followUpLine(c))
	add("notification", valueOf(c.NotificationID))
	add("task", valueOf(c.TaskSID))
	add("Twilio's SID", c.CallSID)
	add("workflow", c.WorkflowID)
	add("", valueOf(c.WorkflowURL))
	return rows.print(out)
}

func printInboundTimeline(out io.Writer, events items[v1.InboundEvent], zone *time.Location) error {
	if _, err := fmt.Fprintln(out, "\ntimeline"); err != nil {
		return err
	}
	rows := newTable()
	for _, e := range events.Items {
		var remarks []string
		for _, remark := range []string{valueOf(e.OperatorName), valueOf(e.Reason)} {
			if remark != "" {
				remarks = append(remarks, remark)
			}
		}
		rows.add("  "+e.At.In(zone).Format("2006-01-02 15:04:05.000"), string(e.Meaning), e.Kind, strings.Join(remarks, ", "))
	}
	return rows.print(out)
}
