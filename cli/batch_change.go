package cli

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/todoku/todoku/api/v1"
)

func newBatchPace() *cobra.Command {
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "pace ID --interval DURATION",
		Short: "Slow a batch down, or let it go at its sender's pace again",
		Long: `Give a batch a pace of its own, from the next of its notifications on: at least the interval lies between
two of them. One shorter than its sender's changes nothing; 0s is its sender's.`,
		Example: `  todoku batch pace 0190b0a0-0000-7000-8000-000000000000 --interval 2s
  todoku batch pace 0190b0a0-0000-7000-8000-000000000000 --interval 0s    # its sender's again`,
		Args: oneArgument(batches.argument),
		RunE: func(cmd *cobra.Command, args []string) error {
			if interval < 0 || interval > v1.SlowestInterval {
				return usageErrorf("--interval is out of range: choose from 0s to 1h")
			}
			if interval%time.Millisecond != 0 {
				return usageErrorf("--interval has parts of a millisecond: write it as in 500ms, 2s or 1m30s")
			}
			return changeBatch(cmd, args[0], map[string]any{"send_interval_ms": interval.Milliseconds()}, func(b v1.Batch, _ *time.Location) string {
				if b.SendIntervalMS == nil {
					return "goes at its sender's pace"
				}
				return "sends one each " + (time.Duration(*b.SendIntervalMS) * time.Millisecond).String() + " at most"
			})
		},
	}
	cmd.Flags().DurationVar(&interval, "interval", 0, "the least time between two sends, up to 1h; 0s: its sender's pace")
	requireFlags(cmd, "interval")
	return cmd
}

func newBatchReschedule() *cobra.Command {
	var sendAt string
	cmd := &cobra.Command{
		Use:     "reschedule ID --send-at TIME",
		Short:   "Change when a batch is sent",
		Long:    "Change when a batch is sent, until the first of it is taken to be sent.",
		Example: "  todoku batch reschedule 0190b0a0-0000-7000-8000-000000000000 --send-at '2026-04-01 09:00'",
		Args:    oneArgument(batches.argument),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseMoment(sendAt, time.Now())
			if err != nil {
				return err
			}
			return changeBatch(cmd, args[0], map[string]any{"send_at": *at}, func(b v1.Batch, zone *time.Location) string {
				return "is not sent before " + b.SendAt.In(zone).Format(timeLayout)
			})
		},
	}
	cmd.Flags().StringVar(&sendAt, "send-at", "", sendAtUsage)
	requireFlags(cmd, "send-at")
	return cmd
}

// changeBatch changes a batch and says what holds for it now.
func changeBatch(cmd *cobra.Command, batch string, change map[string]any, holds func(v1.Batch, *time.Location) string) error {
	path, err := batches.pathOf(batch)
	if err != nil {
		return err
	}
	c, err := newClient(cmd)
	if err != nil {
		return err
	}
	return printAnswer(cmd, c, once(http.MethodPatch, path, change), inZone(func(out io.Writer, b v1.Batch, zone *time.Location) error {
		_, err := fmt.Fprintf(out, "batch %s %s: %s\nNext: todoku batch show %s\n", b.ID, holds(b, zone), progressLine(b), b.ID)
		return err
	}))
}
