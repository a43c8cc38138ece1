package cli

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/todoku/todoku/api/v1"
	"github.com/todoku/todoku/notify"
)

func newNotificationCancel() *cobra.Command {
	return &cobra.Command{
		Use:   "cancel ID",
		Short: "Cancel a notification that was not sent",
		Long: `Cancel a notification that was not sent.

While it is being sent, the command waits for what Twilio says. It ends with exit code 0 only if the
notification is canceled. Where nobody can tell whether Twilio took it, it becomes canceled later if it
turns out that Twilio did not.`,
		Example: "  todoku notification cancel 0190b0a0-0000-7000-8000-000000000000",
		Args:    oneArgument(notifications.argument),
		RunE: notifications.run(func(cmd *cobra.Command, c *client, path string) error {
			answer, err := ask[v1.Notification](cmd.Context(), c, asking{method: http.MethodPost, path: path + "/cancel", repeatable: true})
			if err != nil {
				return err
			}
			canceled := answer.Value.Status == notify.Canceled
			err = answer.print(cmd, func(out io.Writer, n v1.Notification) error {
				text := "%s is canceled\n"
				if !canceled {
					text = "nobody can tell yet whether Twilio took it; see what becomes of it: todoku notification show %s --events\n"
				}
				_, err := fmt.Fprintf(out, text, n.ID)
				return err
			})
			if err == nil && !canceled {
				return errToldAlready
			}
			return err
		}),
	}
}

func newNotificationReschedule() *cobra.Command {
	var sendAt string
	cmd := &cobra.Command{
		Use:   "reschedule ID --send-at TIME",
		Short: "Change when a notification is sent",
		Long:  "Change when a notification is sent, until it is taken to be sent for the first time.",
		Example: `  todoku notification reschedule 0190b0a0-0000-7000-8000-000000000000 --send-at '2026-04-01 09:00'
  todoku notification reschedule 0190b0a0-0000-7000-8000-000000000000 --send-at 0s    # at once`,
		Args: oneArgument(notifications.argument),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := notifications.pathOf(args[0])
			if err != nil {
				return err
			}
			at, err := parseMoment(sendAt, time.Now())
			if err != nil {
				return err
			}
			zone, err := timezone()
			if err != nil {
				return err
			}
			c, err := newClient(cmd)
			if err != nil {
				return err
			}
			return printAnswer(cmd, c, once(http.MethodPatch, path, map[string]time.Time{"send_at": *at}), func(out io.Writer, n v1.Notification) error {
				_, err := fmt.Fprintf(out, "%s is not sent before %s\n", n.ID, n.SendAt.In(zone).Format(timeLayout))
				return err
			})
		},
	}
	cmd.Flags().StringVar(&sendAt, "send-at", "", sendAtUsage)
	requireFlags(cmd, "send-at")
	return cmd
}
