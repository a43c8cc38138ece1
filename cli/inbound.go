package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
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
		state, phone, from, to, after string
		limit                         int
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the calls that came in, the newest first",
		Long: `List the calls that came in, the newest first. What is given must all fit.

States: received, waiting, reserved, answered; finished, callback_requested, timed_out, turned_away and
abandoned are final. Times are written as '2026-04-01 09:00' in the zone of DEFAULT_TIMEZONE, as
2026-04-01T09:00:00+09:00, or as how long ago: 24h. Numbers are masked unless the key has the scope pii.`,
		Example: "  todoku inbound list\n  todoku inbound list --state abandoned --from 24h\n  todoku inbound list --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 || limit > 200 {
				return usageErrorf("--limit must be from 1 to 200")
			}
			query := url.Values{"limit": {strconv.Itoa(limit)}}
			for name, value := range map[string]string{"state": strings.ToUpper(state), "phone": phone, "cursor": after} {
				if value != "" {
					query.Set(name, value)
				}
			}
			for name, value := range map[string]string{"created_from": from, "created_to": to} {
				if value == "" {
					continue
				}
				at, err := parsePast(value)
				if err != nil {
					return err
				}
				query.Set(name, at.Format(time.RFC3339))
			}
			return listInbound(cmd, query)
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only those in this `state`")
	cmd.Flags().StringVar(&phone, "phone", "", "only from this whole `number`, in any form")
	cmd.Flags().StringVar(&from, "from", "", "only first heard of at this `time` or later")
	cmd.Flags().StringVar(&to, "to", "", "only first heard of before this `time`")
	cmd.Flags().IntVar(&limit, "limit", 50, "how many at most, up to 200")
	cmd.Flags().StringVar(&after, "cursor", "", "read on after a page: its next `cursor`")
	return cmd
}

func listInbound(cmd *cobra.Command, query url.Values) error {
	c, err := newClient(cmd)
	if err != nil {
		return err
	}
	zone, err := timezone()
	if err != nil {
		return err
	}
	page, err := call[v1.InboundCallPage](cmd.Context(), c, http.MethodGet, "/inbound/calls?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	return page.print(cmd, func(out io.Writer, page v1.InboundCallPage) error {
		if len(page.Items) == 0 {
			_, err := fmt.Fprintln(out, "there are no such calls")
			return err
		}
		rows := newTable("ID", "STATE", "REASON", "FROM", "CAME IN", "WAITED", "OPERATOR", "THEN")
		for _, c := range page.Items {
			rows.add(c.ID.String(), string(c.State), valueOf(c.Reason), valueOf(c.From), c.CreatedAt.In(zone).Format(timeLayout), lasting(c.WaitSeconds),
				valueOf(c.OperatorName), followUpLine(c))
		}
		if err := rows.print(out); err != nil || page.NextCursor == nil {
			return err
		}
		_, err := fmt.Fprintf(out, "There are more: repeat the command with --cursor %s\n", clean(*page.NextCursor))
		return err
	})
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
		Args:    oneArgument("the id that `todoku inbound list` prints"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := uuid.Parse(args[0])
			if err != nil {
				return usageErrorf("%q is not the id of a call: it is the UUID that `todoku inbound list` prints", args[0])
			}
			return showInbound(cmd, id)
		},
	}
}

func showInbound(cmd *cobra.Command, id uuid.UUID) error {
	c, err := newClient(cmd)
	if err != nil {
		return err
	}
	zone, err := timezone()
	if err != nil {
		return err
	}
	path := "/inbound/calls/" + id.String()
	shown, err := call[v1.InboundCall](cmd.Context(), c, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	if err := shown.print(cmd, func(out io.Writer, c v1.InboundCall) error { return printInbound(out, c, zone) }); err != nil || wantsJSON(cmd) {
		return err
	}
	events, err := call[items[v1.InboundEvent]](cmd.Context(), c, http.MethodGet, path+"/events", nil)
	if err != nil {
		return err
	}
	return events.print(cmd, func(out io.Writer, events items[v1.InboundEvent]) error {
		return printInboundTimeline(out, events.Items, zone)
	})
}

// printInbound leaves out what is not known.
func printInbound(out io.Writer, c v1.InboundCall, zone *time.Location) error {
	rows := newTable()
	add := func(name, value string) {
		if value != "" {
			rows.add(name, value)
		}
	}
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

func printInboundTimeline(out io.Writer, events []v1.InboundEvent, zone *time.Location) error {
	if _, err := fmt.Fprintln(out, "\ntimeline"); err != nil {
		return err
	}
	rows := newTable()
	for _, e := range events {
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
