package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	v1 "github.com/todoku/todoku/api/v1"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

func newBatchSend() *cobra.Command {
	var (
		csv, charset, channel, body, name, sendAt, key string
		template, list                                 int64
		twins, dryRun, detach                          bool
	)
	cmd := &cobra.Command{
		Use:   "send (--csv FILE | --list ID) (--template ID | --body TEXT)",
		Short: "Send one template or text to everybody in a file or on a list",
		Long: `Send one template or text to everybody in a file or on a list.

The first row of the file names the columns: to, and one for each placeholder of the template; timezone and
locale are understood as in lists. UTF-8, UTF-16 with a byte order mark and Shift_JIS are told apart; --charset
names any other encoding. Rows that may be another text in another encoding are rejected; a file with rows of
half-width katakana only may need --charset shift_jis.

Rows that nothing can be sent to, or whose cell is blank where the template needs a value, are counted by the
code of the mistake; the first 100 are listed, by their number in the spreadsheet less one. The others go on; the
same number with the same values twice gets one. --dry-run accepts nothing, and shows what would be, the
encoding and the first three texts. A text that uses no column of the file is warned of.

The command shows how far the batch has come until all of it is final; stopping the command does not
stop the batch. It ends with exit code 0 only if nothing of the batch failed or stayed unknown. With
--json it prints the batch as it is in the end. With --detach it ends when the batch is accepted.

While the API is away, the command asks again a few times, under one Idempotency-Key, so nobody gets two.
With --idempotency-key of your own that also holds for running the command again.`,
		Example: `  todoku batch send --csv recipients.csv --template 3
  todoku batch send --csv recipients.csv --template 3 --dry-run
  todoku batch send --list 1 --template 3
  todoku batch send --csv recipients.csv --channel call --template 4 --name 'Recall' --send-at '2026-04-01 09:00'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			byBody, byTemplate := cmd.Flags().Changed("body"), cmd.Flags().Changed("template")
			if byBody == byTemplate {
				return usageErrorf("give either --template ID or --body TEXT")
			}
			if cmd.Flags().Changed("csv") == cmd.Flags().Changed("list") {
				return usageErrorf("give either --csv FILE or --list ID")
			}
			if cmd.Flags().Changed("idempotency-key") && key == "" {
				return usageErrorf("--idempotency-key is empty: give a name for this batch, or leave it out")
			}
			wanted := map[string]any{"channel": strings.ToUpper(channel)}
			if byBody {
				wanted["body"] = body
			} else {
				wanted["template_id"] = template
			}
			if name != "" {
				wanted["name"] = name
			}
			if twins {
				wanted["allow_duplicates"] = true
			}
			if sendAt != "" {
				at, err := parseMoment(sendAt, time.Now())
				if err != nil {
					return err
				}
				wanted["send_at"] = at.Format(time.RFC3339)
			}
			c, err := newClient(cmd)
			if err != nil {
				return err
			}
			query := url.Values{}
			request := asking{method: http.MethodPost, path: "/batches", repeatable: true}
			if cmd.Flags().Changed("list") {
				wanted["list_id"] = list
				request.body, request.endless = wanted, true // a long list takes long
			} else {
				query = queryOf(wanted)
				request.file, request.repeatable = recipientsFile(cmd, csv, charset)
			}
			if dryRun {
				query.Set("dry_run", "true")
			}
			if len(query) > 0 {
				request.path += "?" + query.Encode()
			}
			if dryRun {
				return previewBatch(cmd, c, request)
			}
			if csv != "" && csv != "-" && isTerminal(cmd.OutOrStdout()) {
				if err := warnOfColumns(cmd, c, csv, charset, body, template); err != nil {
					return err
				}
			}
			request.key = cmp.Or(key, uuid.NewString())
			return sendBatch(cmd, c, request, !detach)
		},
	}
	cmd.Flags().StringVar(&csv, "csv", "", "the `file` of recipients; - reads it from standard input")
	cmd.Flags().StringVar(&charset, "charset", "", charsetUsage)
	cmd.Flags().Int64Var(&list, "list", 0, "the `id` of a list, see 'todoku list list'")
	cmd.Flags().StringVar(&channel, "channel", "sms", "sms or call")
	cmd.Flags().Int64Var(&template, "template", 0, "the `id` of a template, see 'todoku template list'")
	cmd.Flags().StringVar(&body, "body", "", "the `text`, the same for everybody")
	cmd.Flags().StringVar(&name, "name", "", "your own `name` for the batch")
	cmd.Flags().StringVar(&sendAt, "send-at", "", sendAtUsage)
	cmd.Flags().StringVar(&key, "idempotency-key", "", "a `name` for this batch: the same one again, within a day, sends nothing more (default a random one)")
	cmd.Flags().BoolVar(&twins, "allow-duplicates", false, "send to the same number with the same values again")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "accept nothing, and say what would be")
	cmd.Flags().BoolVar(&detach, "detach", false, "end when the batch is accepted")
	return cmd
}

// queryOf are the members of a request, for one whose body is a file.
func queryOf(wanted map[string]any) url.Values {
	query := url.Values{}
	for name, value := range wanted {
		query.Set(name, fmt.Sprint(value))
	}
	return query
}

const charsetUsage = "what the file is encoded in, a WHATWG `label` such as windows-1252 (default: UTF-8, Shift_JIS, and UTF-16 with a byte order mark are told apart)"

// recipientsFile is read anew for each try; standard input is there once.
func recipientsFile(cmd *cobra.Command, path, charset string) (of *file, again bool) {
	media := "text/csv"
	if charset != "" {
		media = mime.FormatMediaType(media, map[string]string{"charset": charset})
	}
	if path == "-" {
		return &file{func() (io.ReadCloser, error) { return csvFile{io.NopCloser(cmd.InOrStdin())}, nil }, media}, false
	}
	return &file{func() (io.ReadCloser, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, &unreadableError{err}
		}
		return csvFile{f}, nil
	}, media}, true
}

// csvFile marks what goes wrong while it is read, which is not the API's fault.
type csvFile struct{ io.ReadCloser }

func (f csvFile) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &unreadableError{err}
	}
	return n, err
}

// unreadableError says why a file cannot be uploaded. Of one that breaks off nothing is accepted.
type unreadableError struct{ cause error }

func (e *unreadableError) Error() string { return fmt.Sprintf("read --csv: %v", e.cause) }

func previewBatch(cmd *cobra.Command, c *client, request asking) error {
	return printAnswer(cmd, c, request, func(out io.Writer, p v1.BatchPreview) error {
		rows := newTable()
		rows.add("notifications", strconv.Itoa(p.Total))
		rows.add("skipped as duplicates", strconv.Itoa(p.Skipped))
		rows.add("rejected", strconv.Itoa(p.RejectedCount))
		addRejected(rows, p.Rejected, p.RejectedByCode)
		if p.Segments > 0 {
			rows.add("segments", strconv.Itoa(p.Segments))
		}
		if p.EstimatedSeconds != nil {
			rows.add("duration", (time.Duration(*p.EstimatedSeconds) * time.Second).String())
		}
		if len(p.IgnoredColumns) > 0 {
			rows.add("ignored columns", strings.Join(p.IgnoredColumns, ", "))
		}
		if p.Encoding != "" {
			rows.add("encoding", p.Encoding)
		}
		for _, w := range p.Warnings {
			rows.add("warning", w.Detail)
		}
		if err := rows.print(out); err != nil {
			return err
		}
		for _, e := range p.Examples {
			if _, err := fmt.Fprintf(out, "\nrow %d would get:\n", e.Row); err != nil {
				return err
			}
			if err := printLines(out, "  "+strings.ReplaceAll(e.Text, "\n", "\n  ")); err != nil {
				return err
			}
		}
		if len(p.Examples) > 0 {
			if _, err := fmt.Fprintln(out); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintln(out, "Nothing was accepted: repeat the command without --dry-run")
		return err
	})
}

// addRejected shows how many rows were rejected for each code, and then the first of them.
func addRejected(rows *table, first []store.Rejected, byCode map[string]int) {
	for _, code := range mostFirst(byCode) {
		rows.add("  "+code, strconv.Itoa(byCode[code]))
	}
	for _, r := range first {
		rows.add(fmt.Sprintf("  row %d", r.Row), r.Detail)
	}
}

// mostFirst are the codes, the most frequent ones first.
func mostFirst(byCode map[string]int) []string {
	return slices.SortedFunc(maps.Keys(byCode), func(a, b string) int {
		return cmp.Or(cmp.Compare(byCode[b], byCode[a]), cmp.Compare(a, b))
	})
}

// warnOfColumns says, before a file is sent, what the answer would warn of. Whatever is wrong with the file or the
// template is left to the answer.
func warnOfColumns(cmd *cobra.Command, c *client, path, charset, text string, template int64) error {
	file, err := os.Open(path)
	if err != nil {
		return &unreadableError{err}
	}
	defer file.Close()
	reader, err := notify.NewRecipientReader(file, charset)
	if err != nil {
		return nil
	}
	var placeholders []string
	if text == "" {
		t, err := call[v1.Template](cmd.Context(), c, http.MethodGet, fmt.Sprintf("/templates/%d", template), nil)
		if err != nil {
			return nil
		}
		text, placeholders = t.Value.Body, t.Value.Params
	}
	for _, w := range v1.ColumnWarnings(text, placeholders, v1.ParamColumns(reader.Columns(), placeholders)) {
		if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", clean(w.Detail)); err != nil {
			return err
		}
	}
	return nil
}

func sendBatch(cmd *cobra.Command, c *client, request asking, follow bool) error {
	accepted, err := ask[v1.Batch](cmd.Context(), c, request)
	if err != nil {
		return err
	}
	if follow && wantsJSON(cmd) {
		last, err := followBatch(cmd.Context(), c, accepted, newProgress(io.Discard))
		if err != nil && !errors.Is(err, errToldAlready) {
			return err
		}
		return errors.Join(last.print(cmd, nil), err)
	}
	err = accepted.print(cmd, func(out io.Writer, b v1.Batch) error {
		text := fmt.Sprintf("%d are accepted: batch %s\n", b.Total, b.ID)
		switch {
		case b.RejectedCount == 1:
			text += fmt.Sprintf("1 row is rejected: todoku batch show %s\n", b.ID)
		case b.RejectedCount > 1:
			text += fmt.Sprintf("%d rows are rejected: todoku batch show %s\n", b.RejectedCount, b.ID)
		}
		for _, code := range mostFirst(b.RejectedByCode) {
			text += fmt.Sprintf("  %d %s\n", b.RejectedByCode[code], clean(code))
		}
		if len(b.IgnoredColumns) > 0 {
			text += fmt.Sprintf("ignored columns: %s\n", clean(strings.Join(b.IgnoredColumns, ", ")))
		}
		for _, w := range b.Warnings {
			text += fmt.Sprintf("warning: %s\n", clean(w.Detail))
		}
		_, err := fmt.Fprint(out, text)
		return err
	})
	if err != nil || !follow {
		return err
	}
	_, err = followBatch(cmd.Context(), c, accepted, newProgress(cmd.OutOrStdout()))
	return err
}

// Pauses between two looks at a batch that is followed.
const followInterval = time.Second

// followBatch shows how far the batch has come until nothing of it changes any more, and returns it as it is
// then; the error is errToldAlready where not all of it succeeded. An API that is away for a while does not end it.
func followBatch(ctx context.Context, c *client, b reply[v1.Batch], show *progress) (reply[v1.Batch], error) {
	for {
		show.update(b.Value)
		counts := b.Value.Counts
		if left := counts.Accepted + counts.Held + counts.Sending + counts.Pending; left == 0 {
			show.end()
			if b.Value.State == store.BatchCanceled || counts.Failed+counts.Unknown > 0 {
				return b, errToldAlready
			}
			return b, nil
		}
		select {
		case <-ctx.Done():
			show.end()
			return b, fmt.Errorf("interrupted, but the batch goes on: todoku batch show %s", b.Value.ID)
		case <-time.After(followInterval):
		}
		seen, err := call[v1.Batch](ctx, c, http.MethodGet, "/batches/"+b.Value.ID.String(), nil)
		switch {
		case ctx.Err() != nil, passing(err):
			continue
		case err != nil:
			return b, err
		}
		b = seen
	}
}
