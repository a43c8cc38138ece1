package settlement

import (
	"context"
	"errors"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

var (
	secondSIDs = promauto.NewCounter(prometheus.CounterOpts{
		Name: "todoku_second_sids_total",
		Help: "Receipts with a second SID for one notification: somebody got two.",
	})
	conflictingFinals = promauto.NewCounter(prometheus.CounterOpts{
		Name: "todoku_conflicting_finals_total",
		Help: "Receipts with a final status that disagrees with another final status of the same notification.",
	})
)

// Handle does what receipts require beyond their rows, for everything that writes receipts: it counts and logs what must
// not happen, and stops the sender, or all senders, on an error that concerns the sender or the account. A Messaging
// Service reports such an error only after it has accepted the send. A repeated receipt stops nothing, so a sender that
// was resumed goes on. The error says that a sender could not be stopped: the next receipt with such a code will.
func Handle(ctx context.Context, s *store.Store, log *slog.Logger, settled ...store.Settled) error {
	type stop struct {
		sender int64
		code   string
	}
	stopped := map[stop]bool{}
	var failures []error
	for _, row := range settled {
		if row.SecondSID {
			secondSIDs.Inc()
			log.ErrorContext(ctx, "the carrier accepted a notification twice: somebody got two", "notification_id", row.ID, "channel", row.Channel)
		}
		if row.Conflict {
			conflictingFinals.Inc()
			log.WarnContext(ctx, "two final statuses of the carrier disagree", "notification_id", row.ID, "channel", row.Channel, "status", row.Status)
		}
		// The status may come first, without the code that a later receipt has.
		if !row.JustSettled() && !row.FirstCode || row.Status != notify.Failed || row.ErrorCode == nil {
			continue
		}
		stops, all := carrier.StopsSender(*row.ErrorCode)
		cause := stop{row.SenderID, *row.ErrorCode}
		if !stops || stopped[cause] {
			continue
		}
		stopped[cause] = true
		reason := notify.FailureMessage(cause.code, row.Channel, "", notify.English)
		if err := s.StopSender(ctx, cause.sender, all, cause.code, reason); err != nil {
			failures = append(failures, err)
			continue
		}
		log.ErrorContext(ctx, "sender stopped: resume it when the cause is fixed",
			"sender_id", cause.sender, "all", all, "error_code", cause.code, "notification_id", row.ID)
	}
	return errors.Join(failures...)
}
