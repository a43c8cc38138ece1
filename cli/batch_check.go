package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/todoku/todoku/api/v1"
)

func newBatchCheck() *cobra.Command {
	var last bool
	cmd := &cobra.Command{
		Use:   "check ID",
		Short: "Check a batch against Twilio's own list",
		Long: `Check a batch against Twilio's own list.

A worker reads what Twilio lists of the time in which the batch was sent, and notes where that differs
from the ledger; the batch is not changed by it. These are the differences:

  second_sid          Twilio has accepted a notification twice, as a callback has told
  extra_at_carrier    Twilio shows a send to a recipient, from the batch's sender, that no notification
                      asked for
  missing_at_carrier  Twilio has no send with a notification's SID
  status_differs      Twilio knows another outcome, for example because its callback was lost

The command waits for the result, and ends with 1 where there is a difference. With --last it shows the
latest result instead of asking for another check.`,
		Example: "  todoku batch check 0190b0a0-0000-7000-8000-000000000000",
		Args:    oneArgument(batches.argument),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := batches.pathOf(args[0])
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
			path += "/carrier-check"
			method := http.MethodPost
			if last {
				method = http.MethodGet
			}
			check, err := ask[v1.CarrierCheck](cmd.Context(), c, asking{method: method, path: path, repeatable: true})
			if err == nil && !last {
				check, err = awaitCheck(cmd.Context(), c, check, path)
			}
			if err != nil {
				return err
			}
			err = check.print(cmd, func(out io.Writer, check v1.CarrierCheck) error { return printCheck(out, check, zone) })
			if err == nil && !last && (check.Value.Agrees == nil || !*check.Value.Agrees) {
				return errToldAlready
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&last, "last", false, "show the latest result, or how far the check is")
	return cmd
}

// awaitCheck waits for the result. An API that is away for a while does not end it.
func awaitCheck(ctx context.Context, c *client, check reply[v1.CarrierCheck], path string) (reply[v1.CarrierCheck], error) {
	for check.Value.FinishedAt == nil {
		select {
		case <-ctx.Done():
			return check, fmt.Errorf("interrupted, but the check goes on: todoku batch check --last %s", check.Value.BatchID)
		case <-time.After(followInterval):
		}
		seen, err := call[v1.CarrierCheck](ctx, c, http.MethodGet, path, nil)
		switch {
		case ctx.Err() != nil, passing(err):
		case err != nil:
			return check, err
		default:
			check = seen
		}
	}
	return check, nil
}

func printCheck(out io.Writer, check v1.CarrierCheck, zone *time.Location) error {
	if check.State != "finished" {
		text := "the check is " + check.State
		if check.Failure != nil {
			text += ": " + *check.Failure
		}
		if check.LastError != nil {
			text += "; the last try failed: " + *check.LastError
		}
		_, err := fmt.Fprintln(out, clean(text))
		return err
	}
	rows := newTable()
	for _, line := range []struct {
		what string
		n    int32
	}{
		{"sent, by the ledger", check.Compared}, {"shown by Twilio", check.Listed}, {"not looked for", check.Unverified},
		{"second_sid", check.Counts.SecondSID}, {"extra_at_carrier", check.Counts.ExtraAtCarrier},
		{"missing_at_carrier", check.Counts.MissingAtCarrier}, {"status_differs", check.Counts.StatusDiffers},
	} {
		rows.add(line.what, strconv.Itoa(int(line.n)))
	}
	if err := rows.print(out); err != nil {
		return err
	}
	if len(check.Differences) == 0 {
		text := "The ledger and Twilio agree."
		if check.Unverified > 0 {
			text = "Twilio's list lacks some of what was sent: check again later, or look at them in Twilio's console."
		}
		_, err := fmt.Fprintln(out, text)
		return err
	}
	found := newTable("KIND", "ROW", "TO", "LEDGER", "TWILIO", "CREATED", "SID", "ID")
	for _, d := range check.Differences {
		found.add(string(d.Kind), strconv.Itoa(int(d.Row)), d.To, string(d.Status), valueOf(d.CarrierStatus), timeOr(d.CarrierCreatedAt, zone, ""), d.TwilioSID, d.NotificationID.String())
	}
	return found.print(out)
}
