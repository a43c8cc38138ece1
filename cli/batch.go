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
		newBatchControl("pause", "Pause a batch: nothing more of it is sent until it is resumed", "todoku batch resume"),
		newBatchControl("resume", "Let a paused batch go on", "todoku batch show"),
		newBatchControl("cancel", "Cancel what of a batch was not sent", "todoku batch show"), newBatchPace(), newBatchReschedule(), newBatchCheck())
	group.GroupID = groupUse
	group.Example = `  todoku batch send --csv recipients.csv --template 3
  todoku batch pause 0190b0a0-0000-7000-8000-000000000000`
	addConnectionFlags(group)
	return group
}

const batchIDArgument = "the id that `todoku batch send` printed"

func newBatchShow() *cobra.Command {
	return &cobra.Command{
		Use:     "show ID",
		Short:   "Show how far a batch has come",
		Example: "  todoku batch show 0190b0a0-0000-7000-8000-000000000000",
		Args:    oneArgument(batchIDArgument),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseBatchID(args[0])
			if err != nil {
				return err
			}
			c, err := newClient(cmd)
			if err != nil {
				return err
			}
			b, err := call[v1.Batch](cmd.Context(), c, http.MethodGet, "/batches/"+id.String(), nil)
			if err != nil {
				return err
			}
			return printBatchReply(cmd, b)
		},
	}
}

func newBatchControl(action, short, next string) *cobra.Command {
	return &cobra.Command{
		Use:     action + " ID",
		Short:   short,
		Long:    short + ". Doing it twice does no harm.",
		Example: "  todoku batch " + action + " 0190b0a0-0000-7000-8000-000000000000",
		Args:    oneArgument(batchIDArgument),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseBatchID(args[0])
			if err != nil {
				return err
			}
			c, err := newClient(cmd)
			if err != nil {
				return err
			}
			path := "/batches/" + id.String() + "/" + action
			b, err := ask[v1.Batch](cmd.Context(), c, asking{method: http.MethodPost, path: path, repeatable: true})
			if err != nil {
				return err
			}
			return b.print(cmd, func(out io.Writer, b v1.Batch) error {
				text := fmt.Sprintf("batch %s is %s: %s\n", b.ID, b.State, progressLine(b))
				if n := valueOf(b.InFlight); n > 0 {
					text += fmt.Sprintf("%d were being sent at that moment\n", n)
				}
				_, err := fmt.Fprintf(out, "%sNext: %s %s\n", text, next, b.ID)
				return err
			})
		},
	}
}

func newBatchList() *cobra.Command {
	var limit int
	var after string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List batches, the newest first",
		Example: "  todoku batch list --limit 10",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 || limit > 200 {
				return usageErrorf("--limit must be from 1 to 200")
			}
			query := url.Values{"limit": {strconv.Itoa(limit)}}
			if after != "" {
				query.Set("cursor", after)
			}
			c, err := newClient(cmd)
			if err != nil {
				return err
			}
			page, err := call[v1.BatchPage](cmd.Context(), c, http.MethodGet, "/batches?"+query.Encode(), nil)
			if err != nil {
				return err
			}
			zone, err := timezone()
			if err != nil {
				return err
			}
			return page.print(cmd, func(out io.Writer, page v1.BatchPage) error { return printBatches(out, page, zone) })
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 50, "how many at most, up to 200")
	cmd.Flags().StringVar(&after, "cursor", "", "read on after a page: its next `cursor`")
	return cmd
}

func printBatches(out io.Writer, page v1.BatchPage, zone *time.Location) error {
	if len(page.Items) == 0 {
		_, err := fmt.Fprintln(out, "there are no such batches")
		return err
	}
	rows := newTable("ID", "STATE", "CHANNEL", "TOTAL", "FINAL", "ACCEPTED", "NAME")
	for _, b := range page.Items {
		rows.add(b.ID.String(), string(b.State), string(b.Channel), strconv.FormatInt(b.Total, 10), percent(b), b.CreatedAt.In(zone).Format(timeLayout), valueOf(b.Name))
	}
	if err := rows.print(out); err != nil || page.NextCursor == nil {
		return err
	}
	_, err := fmt.Fprintf(out, "There are more: repeat the command with --cursor %s\n", clean(*page.NextCursor))
	return err
}

func percent(b v1.Batch) string { return strconv.FormatFloat(b.Percent, 'f', 1, 64) + " %" }

func printBatchReply(cmd *cobra.Command, b reply[v1.Batch]) error {
	zone, err := timezone()
	if err != nil {
		return err
	}
	return b.print(cmd, func(out io.Writer, b v1.Batch) error { return printBatch(out, b, zone) })
}

// printBatch leaves out what is not known.
func printBatch(out io.Writer, b v1.Batch, zone *time.Location) error {
	rows := newTable()
	add := func(name, value string) {
		if value != "" {
			rows.add(name, value)
		}
	}
	state := string(b.State)
	if b.PauseReason != nil {
		state += ": " + *b.PauseReason
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
	for _, r := range b.Rejected {
		add(fmt.Sprintf("  row %d", r.Row), r.Detail)
	}
	add("workflow", b.WorkflowID)
	add("", valueOf(b.WorkflowURL))
	return rows.print(out)
}

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
