package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/todoku/todoku/api/v1"
	"github.com/todoku/todoku/store"
)

func newBatchCommand() *cobra.Command {
	group := newGroup("batch", "Send to many, and pause, slow down, resume or cancel it",
		newBatchSend(), newBatchShow(), newBatchList(),
		newBatchPause(),
		newBatchControl("resume", "Let a paused batch go on", "todoku batch show", noQuery),
		newBatchControl("cancel", "Cancel what of a batch was not sent", "todoku batch show", noQuery), newBatchPace(), newBatchReschedule(), newBatchResults(), newBatchCheck())
	group.GroupID = groupUse
	group.Example = `  todoku batch send --csv recipients.csv --template 3
  todoku batch pause 0190b0a0-0000-7000-8000-000000000000`
	addConnectionFlags(group)
	return group
}

func newBatchShow() *cobra.Command {
	return batches.command("show ID", "Show how far a batch has come", "  todoku batch show 0190b0a0-0000-7000-8000-000000000000", showing(inZone(printBatch)))
}

func newBatchPause() *cobra.Command {
	var reason string
	cmd := newBatchControl("pause", "Pause a batch: nothing more of it is sent until it is resumed", "todoku batch resume", func() string {
		if reason == "" {
			return ""
		}
		return "?" + url.Values{"reason": {reason}}.Encode()
	})
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who look at it meanwhile; the first one is kept")
	return cmd
}

func noQuery() string { return "" }

func newBatchControl(action, short, next string, query func() string) *cobra.Command {
	cmd := batches.command(action+" ID", short, "  todoku batch "+action+" 0190b0a0-0000-7000-8000-000000000000", func(cmd *cobra.Command, c *client, path string) error {
		q := asking{method: http.MethodPost, path: path + "/" + action + query(), repeatable: true}
		return printAnswer(cmd, c, q, func(out io.Writer, b v1.Batch) error {
			text := fmt.Sprintf("batch %s is %s: %s\n", b.ID, b.State, progressLine(b))
			if n := valueOf(b.InFlight); n > 0 {
				text += fmt.Sprintf("%d were being sent at that moment\n", n)
			}
			_, err := fmt.Fprintf(out, "%sNext: %s %s\n", text, next, b.ID)
			return err
		})
	})
	cmd.Long = short + ". Doing it twice does no harm."
	return cmd
}

func newBatchList() *cobra.Command {
	var part paging
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List batches, the newest first",
		Example: "  todoku batch list --limit 10",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query, err := part.query(nil)
			if err != nil {
				return err
			}
			c, err := newClient(cmd)
			if err != nil {
				return err
			}
			return listPage(cmd, c, "/batches", query, "there are no such batches", batchTable)
		},
	}
	part.addFlags(cmd)
	return cmd
}

func batchTable(shown []v1.Batch, zone *time.Location) *table {
	rows := newTable("ID", "STATE", "CHANNEL", "TOTAL", "FINAL", "ACCEPTED", "NAME")
	for _, b := range shown {
		rows.add(b.ID.String(), string(b.State), string(b.Channel), strconv.FormatInt(b.Total, 10), percent(b), b.CreatedAt.In(zone).Format(timeLayout), valueOf(b.Name))
	}
	return rows
}

func percent(b v1.Batch) string { return strconv.FormatFloat(b.Percent, 'f', 1, 64) + " %" }

// printBatch leaves out what is not known.
func printBatch(out io.Writer, b v1.Batch, zone *time.Location) error {
	rows := newTable()
	add := rows.addKnown
	state := string(b.State)
	switch {
	case b.PauseReason != nil:
		state += ": " + *b.PauseReason
	case senderStopped(b):
		state += ", but its sender is stopped: `todoku sender list` says why"
	}
	add("id", b.ID.String())
	add("name", valueOf(b.Name))
	add("state", state)
	add("channel", string(b.Channel))
	add("body", valueOf(b.Body))
	if b.TemplateID != nil {
		add("template", fmt.Sprintf("%d, version %d", *b.TemplateID, valueOf(b.TemplateVersion)))
	}
	add("total", strconv.FormatInt(b.Total, 10))
	add("final", percent(b))
	for _, part := range countsOf(b) {
		if part.n > 0 {
			add("  "+part.name, strconv.FormatInt(part.n, 10))
		}
	}
	if b.SendsPerSecond > 0 {
		add("rate", fmt.Sprintf("%.1f a second", b.SendsPerSecond))
	}
	add("until", timeOr(b.ETA, zone, ""))
	if b.SendIntervalMS != nil {
		add("own pace", "one each "+(time.Duration(*b.SendIntervalMS)*time.Millisecond).String())
	}
	if b.State == store.BatchScheduled {
		add("not before", b.SendAt.In(zone).Format(timeLayout))
	}
	add("accepted", b.CreatedAt.In(zone).Format(timeLayout))
	add("finished", timeOr(b.FinishedAt, zone, ""))
	add("ignored columns", strings.Join(b.IgnoredColumns, ", "))
	if b.RejectedCount > 0 {
		add("rejected", strconv.Itoa(int(b.RejectedCount)))
	}
	addRejected(rows, b.Rejected, b.RejectedByCode)
	add("workflow", b.WorkflowID)
	add("", valueOf(b.WorkflowURL))
	return rows.print(out)
}

// senderStopped reports whether the batch waits for its sender, and not for its own resumption.
func senderStopped(b v1.Batch) bool { return b.Counts.Held > 0 && b.State != store.BatchPaused }

type part struct {
	name string
	n    int64
}

// countsOf are the counts in the order a notification passes through them.
func countsOf(b v1.Batch) []part {
	c := b.Counts
	return []part{
		{"accepted", c.Accepted}, {"held", c.Held}, {"sending", c.Sending}, {"pending", c.Pending}, {"success", c.Success},
		{"failed", c.Failed}, {"unknown", c.Unknown}, {"skipped", c.Skipped}, {"canceled", c.Canceled},
	}
}
