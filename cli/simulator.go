package cli

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/simulator"
)

func newSimulatorCommand() *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use:     "simulator",
		GroupID: groupRun,
		Short:   "Run a stand-in for Twilio that sends nothing and costs nothing",
		Long: `Run a stand-in for Twilio that sends nothing and costs nothing.

It answers on Twilio's paths for messages, calls, TaskRouter, Studio flows and numbers, takes any
credentials, and reports each outcome to the callback URL, signed as Twilio signs it. Set TWILIO_API_URL
to its address to send through it. See /_simulator/messages and /_simulator/calls for what it was given,
and PUT /_simulator/behaviour to make it fail in the ways that Twilio fails. A key that is left out goes
back to its default; GET shows what holds now:

  latency_ms, callback_delay_ms      milliseconds
  drain_per_second                   how many messages, and calls, of each sender leave Twilio's queue in a
                                     second; 0: no limit
  callbacks                          ordered, reversed, shuffled, repeated, lost or before_answer
  default_outcome                    {"status": "delivered", "error_code": null}, where delivered may have a code
                                     too; of calls, default_call_outcome:
                                     {"status": "completed", "duration_s": 12, "answered_by": null}
  outcomes                           the same for single numbers: {"+81…": {"status": "undelivered", "error_code": 30003}}
  fault                              of the next creates: {"kind": …, "count": 10, "retry_after_s": 1}, where kind is
                                     accept_then_drop, refuse, http_500, http_500_after_accept, html_503,
                                     html_503_after_accept, rate_limited,
                                     twilio_error, which takes Twilio's "error_code" (63038) and "http_status" (400),
                                     or gateway, which answers without Twilio's code and takes "http_status" (403),
                                     "body" (html, empty, or a text such as {} or null) and "forwarded" (true:
                                     Twilio has accepted the create)
  operators, second_ms               what TaskRouter's workers do when a call rings, and how long a second
                                     lasts: see docs/taskrouter.md

POST /_simulator/inbound {"to": "+15005550006", "calls": 100, "per_second": 10} lets people call a
number, and GET shows what became of them.

Twilio's magic numbers are refused as Twilio refuses them (set ALLOWED_COUNTRIES=JP,US to send to them):
+15005550001 is invalid (21211), …0003 not permitted (21408), …0004 has opted out (21610), …0009 is no
mobile number (21614).`,
		Example: `  todoku simulator
  curl -s 127.0.0.1:9911/_simulator/messages
  curl -s -X PUT 127.0.0.1:9911/_simulator/behaviour -d '{"default_outcome":{"status":"undelivered","error_code":30003}}'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			listener, err := listen("--addr", addr)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if wantsJSON(cmd) {
				err = writeJSON(out, map[string]string{"url": "http://" + listener.Addr().String()})
			} else {
				_, err = fmt.Fprintf(out, "the simulator of Twilio is at http://%s (Ctrl-C stops it)\n", listener.Addr())
			}
			if err != nil {
				return errors.Join(err, listener.Close())
			}
			log := slog.New(notify.NewLogHandler(slog.NewTextHandler(out, nil)))
			return simulator.New(simulator.Options{Logger: log}).Run(cmd.Context(), listener)
		},
	}
	cmd.Flags().StringVar(&addr, "addr", simulator.DefaultAddr, "host:port to listen on")
	return cmd
}
