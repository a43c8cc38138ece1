package cli

import (
	"github.com/spf13/cobra"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/api/webhook"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/settings"
	"github.com/todoku/todoku/store"
	"github.com/todoku/todoku/worker"
)

func newWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "worker",
		GroupID: groupRun,
		Short:   "Run a worker: it sends what the API accepted and follows it up",
		Long: `Run a worker: it sends what the API accepted and follows it up.

Run as many as you like; they share the work and the pace of each sender. A worker that is stopped
finishes what it is doing. While Temporal is away it waits. /healthz, /readyz and /metrics are at
TODOKU_WORKER_ADDR.

It needs DATABASE_URL (migrated), TWILIO_ACCOUNT_SID, TWILIO_AUTH_TOKEN, a sender and
PHONE_HASH_KEY; TEMPORAL_ADDRESS says where Temporal is.`,
		Example: "  todoku worker\n  TODOKU_WORKER_ADDR=127.0.0.1:8082 todoku worker    # a second one on this machine",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			address := func(s *settings.Settings) (string, string) { return "TODOKU_WORKER_ADDR", s.WorkerAddr }
			s, err := openService(cmd.Context(), cmd.OutOrStdout(), wantsJSON(cmd), settings.Database|settings.Carrier|settings.Phones, address)
			if err != nil {
				return err
			}
			defer s.close()
			ctx, stop := s.binding().watch(cmd.Context())
			defer stop()
			w := worker.Worker{
				Starter:    s.starter,
				Store:      s.store,
				Activities: &activities.Activities{Store: s.store, Carrier: s.carrier, Log: s.log, Terms: terms(s.settings)},
				Log:        s.log,
				Admitted:   s.binding().check,
			}
			return refused(ctx, w.Run(ctx, s.listener))
		},
	}
}

func terms(s *settings.Settings) activities.Terms {
	t := activities.Terms{
		SMSSendInterval:  s.SMSSendInterval,
		Connections:      s.CarrierConnections,
		SMSQueueLimit:    s.CarrierQueueLimit(notify.SMS),
		CallQueueLimit:   s.CarrierQueueLimit(notify.Call),
		CallSendInterval: s.CallSendInterval,
		StatusCheckDelay: s.StatusCheckDelay,
		AmbiguityWindow:  s.AmbiguityWindow,
		SendDeadline:     s.SendDeadline,
		PhoneHashKey:     []byte(s.PhoneHashKey),
		ShardSize:        s.ShardSize(),
		NumberKinds:      s.AllowedNumberKinds,
		Batch: func(c notify.Channel) activities.BatchTerms {
			return activities.BatchTerms{Sender: s.Sender(c), RequireHuman: c == notify.Call && s.CallRequireHuman,
				ShardSize: s.BatchShard(c), Countries: s.AllowedCountries}
		},
		Inbound: activities.InboundTerms{From: s.Sender, Countries: s.AllowedCountries, RequireHuman: s.CallRequireHuman,
			FollowUps: store.FollowUpLimits{PerHour: s.InboundFollowUpsPerHour,
				TurnedAwayPerHour: s.InboundMaxCalls, TurnedAwayPerSecond: s.InboundCallsPerSecond}},
	}
	if s.PublicURL != "" {
		t.CallbackURL = webhook.CallbackURL(s.PublicURL)
		t.TaskRouterURLs = webhook.TaskRouterURLs(s.PublicURL)
	}
	return t
}
