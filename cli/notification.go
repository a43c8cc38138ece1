package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/todoku/todoku/api/v1"
)

func newNotificationCommand() *cobra.Command {
	group := newGroup("notification", "See what became of an SMS or a call, and cancel what was not sent",
		newNotificationShow(), newNotificationList(), newNotificationCancel(), newNotificationReschedule())
	group.GroupID = groupUse
	group.Example = `  todoku notification show 0190b0a0-0000-7000-8000-000000000000 --events
  todoku notification list --status FAILED,UNKNOWN --from 24h
  todoku notification cancel 0190b0a0-0000-7000-8000-000000000000`
	addConnectionFlags(group)
	return group
}

func newNotificationShow() *cobra.Command {
	var withEvents bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one notification and, with --events, its timeline",
		Long: `Show one notification and, with --events, its timeline: what happened to it and what Twilio said.

Times are shown in the zone of DEFAULT_TIMEZONE. Phone numbers are masked unless the key has the scope
pii. With --json the answer of the API is printed; with --events too, that of the timeline.`,
		Example: `  todoku notification show 0190b0a0-0000-7000-8000-000000000000
  todoku notification show 0190b0a0-0000-7000-8000-000000000000 --events
  todoku notification show 0190b0a0-0000-7000-8000-000000000000 --json`,
		Args: oneArgument(notifications.argument),
		RunE: notifications.run(func(cmd *cobra.Command, c *client, path string) error {
			if !withEvents || !wantsJSON(cmd) {
				if err := show(cmd, c, path, inZone(printNotification)); err != nil || !withEvents {
					return err
				}
			}
			return show(cmd, c, path+"/events", inZone(printTimeline))
		}),
	}
	cmd.Flags().BoolVar(&withEvents, "events", false, "show the timeline")
	return cmd
}

// printNotification leaves out what is not known.
func printNotification(out io.Writer, n v1.Notification, zone *time.Location) error {
	rows := newTable()
	add := rows.addKnown
	add("id", n.ID.String())
	add("status", statusLine(n))
	add("channel", string(n.Channel))
	add("to", n.To)
	add("body", valueOf(n.Body))
	if n.TemplateID != nil {
		add("template", fmt.Sprintf("%d, version %d", *n.TemplateID, valueOf(n.TemplateVersion)))
	}
	for _, name := range slices.Sorted(maps.Keys(n.Params)) {
		add("  "+name, n.Params[name])
	}
	add("reference", valueOf(n.Reference))
	add("error", errorLine(n))
	add("answered by", valueOf(n.AnsweredBy))
	if n.DurationSeconds != nil {
		add("duration", fmt.Sprintf("%d s", *n.DurationSeconds))
	}
	if n.Segments != nil {
		add("segments", strconv.Itoa(int(*n.Segments)))
	}
	add("attempts", strconv.Itoa(int(n.Attempts)))
	add("Twilio's SID", valueOf(n.TwilioSID))
	add("accepted", n.CreatedAt.In(zone).Format(timeLayout))
	if n.SendAt.After(n.CreatedAt) {
		add("not before", n.SendAt.In(zone).Format(timeLayout))
	}
	add("sent", timeOr(n.SentAt, zone, ""))
	add("updated", n.UpdatedAt.In(zone).Format(timeLayout))
	add("workflow", n.WorkflowID)
	add("", valueOf(n.WorkflowURL))
	return rows.print(out)
}

func statusLine(n v1.Notification) string {
	if n.TwilioStatus == nil {
		return string(n.Status)
	}
	return fmt.Sprintf("%s (Twilio: %s)", n.Status, *n.TwilioStatus)
}

// errorLine is why it did not arrive, with the code where there is one.
func errorLine(n v1.Notification) string {
	message, code := valueOf(n.ErrorMessage), valueOf(n.ErrorCode)
	switch {
	case code == "":
		return message
	case message == "":
		return code
	}
	return fmt.Sprintf("%s (%s)", message, code)
}

func printTimeline(out io.Writer, events items[v1.Event], zone *time.Location) error {
	if _, err := fmt.Fprintln(out, "\ntimeline"); err != nil {
		return err
	}
	rows := newTable()
	for _, e := range events.Items {
		var remarks []string
		for _, remark := range []string{valueOf(e.TwilioStatus), valueOf(e.ErrorCode), valueOf(e.Detail)} {
			if remark != "" {
				remarks = append(remarks, remark)
			}
		}
		if source := valueOf(e.Source); source != "" {
			remarks = append(remarks, "("+source+")")
		}
		rows.add("  "+e.At.In(zone).Format("2006-01-02 15:04:05.000"), string(e.Kind), valueOf(e.Status), strings.Join(remarks, " "))
	}
	return rows.print(out)
}

func valueOf[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
