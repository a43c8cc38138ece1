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

It answers on Twilio's paths for messages and calls, takes any credentials, and reports each outcome to
the callback URL, signed as Twilio signs it. Set TWILIO_API_URL to its address to send through it. See
/_simulator/messages and /_simulator/calls for what it was given, and PUT /_simulator/behaviour to make
it fail in the ways that Twilio fails.`,
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
