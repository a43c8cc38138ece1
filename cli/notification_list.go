package cli

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/todoku/todoku/api/v1"
)

func newNotificationList() *cobra.Command {
	var (
		statuses                            []string
		channel, phone, reference, from, to string
		part                                paging
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List notifications, newest first",
		Long: `List notifications, newest first. What is given must all fit.

Times are written as '2026-04-01 09:00' in the zone of DEFAULT_TIMEZONE, as 2026-04-01T09:00:00+09:00,
or as how long ago: 24h. Phone numbers are masked unless the key has the scope pii.`,
		Example: `  todoku notification list
  todoku notification list --status FAILED,UNKNOWN --from 24h
  todoku notification list --phone 090-1234-5678
  todoku notification list --reference order-1234 --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query, err := part.query(map[string]string{
				"status": strings.ToUpper(strings.Join(statuses, ",")), "channel": strings.ToUpper(channel), "phone": phone, "reference": reference,
			})
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
			return listPage(cmd, c, "/notifications", query, "there are no such notifications", notificationTable)
		},
	}
	cmd.Flags().StringSliceVar(&statuses, "status", nil, "only these `statuses`, separated by commas")
	cmd.Flags().StringVar(&channel, "channel", "", "only sms, or only call")
	cmd.Flags().StringVar(&phone, "phone", "", "only to this whole `number`, in any form")
	cmd.Flags().StringVar(&reference, "reference", "", "only with this `name` of your own")
	cmd.Flags().StringVar(&from, "from", "", "only accepted at this `time` or later")
	cmd.Flags().StringVar(&to, "to", "", "only accepted before this `time`")
	part.addFlags(cmd)
	return cmd
}

// notificationTable has a column of times to send at where one of the notifications has such a time.
func notificationTable(shown []v1.Notification, zone *time.Location) *table {
	isLater := func(n v1.Notification) bool { return n.SendAt.After(n.CreatedAt) }
	later := slices.ContainsFunc(shown, isLater)
	row := func(cells ...string) []string {
		if !later {
			return slices.Delete(cells, 5, 6)
		}
		return cells
	}
	rows := newTable(row("ID", "STATUS", "CHANNEL", "TO", "ACCEPTED", "NOT BEFORE", "REFERENCE", "ERROR")...)
	for _, n := range shown {
		notBefore := ""
		if isLater(n) {
			notBefore = n.SendAt.In(zone).Format(timeLayout)
		}
		rows.add(row(n.ID.String(), string(n.Status), string(n.Channel), n.To, n.CreatedAt.In(zone).Format(timeLayout), notBefore, valueOf(n.Reference), errorLine(n))...)
	}
	return rows
}
