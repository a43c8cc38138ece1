package cli

import (
	"net"

	"github.com/spf13/cobra"

	"github.com/todoku/todoku/api"
	v1 "github.com/todoku/todoku/api/v1"
	"github.com/todoku/todoku/settings"
)

func newAPICommand() *cobra.Command {
	return &cobra.Command{
		Use:     "api",
		GroupID: groupRun,
		Short:   "Run the API, which accepts notifications and Twilio's callbacks",
		Long: `Run the API, which accepts notifications and Twilio's callbacks.

It listens on TODOKU_ADDR: the REST API under /api/v1, its description at /docs, /healthz, /readyz and
/metrics. Where TODOKU_OPS_ADDR is set, /docs and /metrics are only there, and /healthz and /readyz there
too. What it accepted is in the database before it answers, also while Temporal is away. When it is
stopped it finishes the requests in flight and answers late ones with 503 and Retry-After.

It needs DATABASE_URL (migrated), TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN, a sender and PHONE_HASH_KEY,
and a folder for uploads that it can write: TMPDIR, or /tmp. Callers need a key: that of
TODOKU_API_KEY, or one made with 'todoku key add'. Twilio calls back at TODOKU_PUBLIC_URL; without it,
the workers ask Twilio instead.`,
		Example: "  todoku api\n  TODOKU_ADDR=0.0.0.0:8080 todoku api",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := v1.CheckSpool(); err != nil {
				return err
			}
			address := func(s *settings.Settings) (string, string) { return "TODOKU_ADDR", s.Addr }
			s, err := openService(cmd.Context(), cmd.OutOrStdout(), wantsJSON(cmd), settings.Database|settings.Carrier|settings.Phones, address)
			if err != nil {
				return err
			}
			defer s.close()
			var ops net.Listener
			if s.settings.OpsAddr != "" {
				if ops, err = listen("TODOKU_OPS_ADDR", s.settings.OpsAddr); err != nil {
					return err
				}
				s.log.Info("operations are served on an address of their own", "address", ops.Addr().String())
			}
			server, err := api.New(api.Deps{
				Store: s.store, Starter: s.starter, Settings: s.settings, Logger: s.log, DrainDelay: s.settings.ShutdownDrain, Ops: ops,
			})
			if err != nil {
				return err
			}
			s.log.Info("API runs", "address", s.listener.Addr().String())
			ctx, stop := s.binding().watch(cmd.Context())
			defer stop()
			return refused(ctx, server.Run(ctx, s.listener))
		},
	}
}
