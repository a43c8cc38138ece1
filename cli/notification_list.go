package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/todoku/todoku/api/v1"
)

func newNotificationList() *cobra.Command {
	var (
		statuses                                   []string
		channel, phone, reference, from, to, after string
		limit                                      int
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
			if limit < 1 || limit > 200 {
				return usageErrorf("--limit must be from 1 to 200")
			}
			query := url.Values{"limit": {strconv.Itoa(limit)}}
			for name, value := range map[string]string{
				"status": strings.ToUpper(strings.Join(statuses, ",")), "channel": strings.ToUpper(channel),
				"phone": phone, "reference": reference, "cursor": after,
			} {
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
			return listNotifications(cmd, query)
		},
	}
	cmd.Flags().StringSliceVar(&statuses, "status", nil, "only these `statuses`, separated by commas")
	cmd.Flags().StringVar(&channel, "channel", "", "only sms, or only call")
	cmd.Flags().StringVar(&phone, "phone", "", "only to this whole `number`, in any form")
	cmd.Flags().StringVar(&reference, "reference", "", "only with this `name` of your own")
	cmd.Flags().StringVar(&from, "from", "", "only accepted at this `time` or later")
	cmd.Flags().StringVar(&to, "to", "", "only accepted before this `time`")
	cmd.Flags().IntVar(&limit, "limit", 50, "how many at most, up to 200")
	cmd.Flags().StringVar(&after, "cursor", "", "read on after a page: its next `cursor`")
	return cmd
}

// parsePast is parseMoment, but a duration means how long ago.
func parsePast(text string) (*time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil {
		return new(time.Now().Add(-ago)), nil
	}
	return parseMoment(text, time.Now())
}

func listNotifications(cmd *cobra.Command, query url.Values) error {
	c, err := newClient(cmd)
	if err != nil {
		return err
	}
	zone, err := timezone()
	if err != nil {
		return err
	}
	page, err := call[v1.NotificationPage](cmd.Context(), c, http.MethodGet, "/notifications?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	return page.print(cmd, func(out io.Writer, page v1.NotificationPage) error {
		if len(page.Items) == 0 {
			_, err := fmt.Fprintln(out, "there are no such notifications")
			return err
		}
		rows := notificationTable(page.Items, zone)
		if err := rows.print(out); err != nil || page.NextCursor == nil {
			return err
		}
		_, err := fmt.Fprintf(out, "There are more: repeat the command with --cursor %s\n", clean(*page.NextCursor))
		return err
	})
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
