package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/todoku/todoku/api/problem"
	v1 "github.com/todoku/todoku/api/v1"
	"github.com/todoku/todoku/notify"
)

func newSendCommand() *cobra.Command {
	group := newGroup("send", "Send an SMS or a call", newSend(notify.SMS), newSend(notify.Call))
	group.GroupID = groupUse
	group.Example = `  todoku send sms --to 090-1234-5678 --body 'Hello from Todoku'
  todoku send call --to 090-1234-5678 --body 'ご予約は明日10時です。' --wait`
	addConnectionFlags(group)
	return group
}

// message is what is sent, and the request's JSON.
type message struct {
	Channel    notify.Channel    `json:"channel"`
	To         string            `json:"to"`
	Body       *string           `json:"body,omitempty"`
	TemplateID *int64            `json:"template_id,omitempty"`
	Params     map[string]string `json:"params,omitempty"`
	Reference  *string           `json:"reference,omitempty"`
	SendAt     *time.Time        `json:"send_at,omitempty"`
}

// sending is how a message is sent and waited for.
type sending struct {
	key     string
	wait    bool
	timeout time.Duration
}

func newSend(channel notify.Channel) *cobra.Command {
	var (
		to, body, reference, sendAt string
		template                    int64
		params                      []string
		how                         sending
	)
	cmd := &cobra.Command{
		Use:   "sms --to NUMBER (--body TEXT | --template ID [--param NAME=VALUE]…)",
		Short: "Send one SMS",
		Long: `Send one SMS.

The command ends as soon as the SMS is in the database; from then on it is sent, whatever dies. With
--wait it ends when it is known what became of the SMS: with exit code 0 only if it was delivered.

The number may be written as people write it in Japan, or with + and the country code.

When the API cannot be reached or says "later", the command asks again a few times, under one
Idempotency-Key, so nothing is sent twice. With --idempotency-key of your own that also holds for
running the command again.`,
		Example: `  todoku send sms --to 090-1234-5678 --body 'Hello from Todoku'
  todoku send sms --to '+81 90 1234 5678' --template 3 --param name=佐藤 --param time=10:00
  todoku send sms --to 090-1234-5678 --body 'See you at ten' --send-at '2026-04-01 09:00'
  todoku send sms --to 090-1234-5678 --body - --reference order-1234 --idempotency-key order-1234 --wait < text.txt`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m := message{Channel: channel, To: to}
			byBody, byTemplate := cmd.Flags().Changed("body"), cmd.Flags().Changed("template")
			switch {
			case byBody && byTemplate:
				return usageErrorf("--body and --template are both given: keep one of the two")
			case !byBody && !byTemplate:
				return usageErrorf("what to send is missing: give --body TEXT, or --template ID")
			case byBody && len(params) > 0:
				return usageErrorf("--param is for the placeholders of a template: give --template, or leave it out")
			}
			if byBody {
				text, err := textOf(cmd, body)
				if err != nil {
					return err
				}
				m.Body = &text
			} else {
				m.TemplateID = &template
			}
			if cmd.Flags().Changed("reference") {
				m.Reference = &reference
			}
			var err error
			if m.Params, err = parseParams(params); err != nil {
				return err
			}
			if cmd.Flags().Changed("send-at") {
				if m.SendAt, err = parseMoment(sendAt, time.Now()); err != nil {
					return err
				}
			}
			if cmd.Flags().Changed("idempotency-key") && how.key == "" {
				return usageErrorf("--idempotency-key is empty: give a name for this send, or leave it out")
			}
			return send(cmd, m, how)
		},
	}
	if channel == notify.Call {
		cmd.Use = "call --to NUMBER (--body TEXT | --template ID [--param NAME=VALUE]…)"
		cmd.Short = "Make one call that speaks a text"
		cmd.Long = `Make one call that speaks a text, in Japanese, Korean or English as the text is.

The command ends as soon as the call is in the database; from then on it is made, whatever dies. With
--wait it ends when it is known what became of the call: with exit code 0 only if it was answered.

The number may be written as people write it in Japan, or with + and the country code.`
		cmd.Example = `  todoku send call --to 090-1234-5678 --body 'ご予約は明日10時です。'
  todoku send call --to 03-1234-5678 --template 4 --param name=佐藤 --wait --timeout 5m`
	}
	cmd.Flags().StringVar(&to, "to", "", "the recipient's `number`")
	cmd.Flags().StringVar(&body, "body", "", "the `text`; - reads it from standard input")
	cmd.Flags().Int64Var(&template, "template", 0, "the `id` of a template, see 'todoku template list'")
	cmd.Flags().StringArrayVar(&params, "param", nil, "a value for a placeholder of the template, as `NAME=VALUE`; may be repeated")
	cmd.Flags().StringVar(&reference, "reference", "", "your own `name` for it, such as an order's number")
	cmd.Flags().StringVar(&sendAt, "send-at", "", sendAtUsage)
	cmd.Flags().StringVar(&how.key, "idempotency-key", "", "a `name` for this send: the same one again, within a day, sends nothing more (default a random one)")
	cmd.Flags().BoolVar(&how.wait, "wait", false, "wait until it is known what became of it")
	cmd.Flags().DurationVar(&how.timeout, "timeout", 2*time.Minute, "how long to --wait")
	requireFlags(cmd, "to")
	return cmd
}

// textOf is the value of a flag that takes - for standard input. The last line break of an input is
// left out.
func textOf(cmd *cobra.Command, value string) (string, error) {
	if value != "-" {
		return value, nil
	}
	const limit = 1 << 20 // the API takes no more
	text, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), limit))
	if err != nil {
		return "", fmt.Errorf("read standard input: %w", err)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(withoutMark(text)), "\n"), "\r"), nil
}

func send(cmd *cobra.Command, m message, how sending) error {
	c, err := newClient(cmd)
	if err != nil {
		return err
	}
	accepted, err := ask[v1.Notification](cmd.Context(), c, asking{
		method: http.MethodPost, path: "/notifications", body: m, key: cmp.Or(how.key, uuid.NewString()), repeatable: true,
	})
	if err != nil {
		return err
	}
	if !how.wait {
		return accepted.print(cmd, func(out io.Writer, n v1.Notification) error {
			_, err := fmt.Fprintf(out, "%s to %s is accepted: %s\nSee what becomes of it: todoku notification show %s --events\n", n.Channel, clean(n.To), n.ID, n.ID)
			return err
		})
	}
	zone, err := timezone()
	if err != nil {
		return err
	}
	tell := func(n v1.Notification) {
		if !wantsJSON(cmd) {
			line := fmt.Sprintf("%s  %-8s  %s", n.UpdatedAt.In(zone).Format(time.TimeOnly), n.Status, clean(waitRemark(n)))
			fmt.Fprintln(cmd.OutOrStdout(), strings.TrimRight(line, " "))
		}
	}
	if !wantsJSON(cmd) {
		fmt.Fprintf(cmd.OutOrStdout(), "%s to %s is accepted: %s\n", accepted.Value.Channel, clean(accepted.Value.To), accepted.Value.ID)
	}
	settled, err := await(cmd.Context(), c, accepted, how.timeout, tell)
	if err != nil {
		return err
	}
	if err := settled.print(cmd, func(io.Writer, v1.Notification) error { return nil }); err != nil {
		return err
	}
	if settled.Value.Status != notify.Success {
		return errToldAlready
	}
	return nil
}

// waitRemark says more about a status that a notification came to.
func waitRemark(n v1.Notification) string {
	if n.Status == notify.Held {
		return "its sender is stopped: `todoku sender list` says why"
	}
	return cmp.Or(errorLine(n), valueOf(n.TwilioStatus))
}

// The pauses between two looks at a notification that is waited for.
const (
	firstLook = 200 * time.Millisecond
	maxPause  = 2 * time.Second
)

// await looks at a notification until its status is final, and tells of each change. An API that is
// away for a while does not end the wait: the notification goes on without it.
func await(ctx context.Context, c *client, n reply[v1.Notification], timeout time.Duration, tell func(v1.Notification)) (reply[v1.Notification], error) {
	id := n.Value.ID
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tell(n.Value)
	for pause := firstLook; !n.Value.Status.Final(); pause = min(pause*3/2, maxPause) {
		select {
		case <-limited.Done():
			if ctx.Err() != nil {
				return n, fmt.Errorf("interrupted, but %s goes on: todoku notification show %s", id, id)
			}
			return n, fmt.Errorf("still %s after %v, but it goes on: todoku notification show %s", n.Value.Status, timeout, id)
		case <-time.After(pause):
		}
		seen, err := call[v1.Notification](limited, c, http.MethodGet, "/notifications/"+id.String(), nil)
		switch {
		case limited.Err() != nil, passing(err):
			continue
		case err != nil:
			return n, err
		}
		if seen.Value.Status != n.Value.Status {
			tell(seen.Value)
		}
		n = seen
	}
	return n, nil
}

// passing reports whether the same question may be answered a little later.
func passing(err error) bool {
	var p *problem.Problem
	if errors.As(err, &p) {
		return p.Status >= http.StatusInternalServerError
	}
	return errors.As(err, new(*unreachableError))
}
