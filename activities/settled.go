package activities

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
	"github.com/todoku/todoku/store/group"
)

// Heed does what receipts demand beyond their rows, for every writer of receipts alike: what must
// not happen is counted and said aloud, and an error that concerns the sender or the account, which
// a Messaging Service reports only after it has accepted the send, stops the sender or all of them.
// A repeat of such a receipt stops nothing, so a sender that was resumed goes on. The error says
// that a sender could not be stopped: the next receipt with such a code will.
func Heed(ctx context.Context, s *store.Store, log *slog.Logger, settled ...store.Settled) error {
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
		// The word may come first without the code that a later receipt has.
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
		log.ErrorContext(ctx, "sender stopped: resume it when the cause is mended",
			"sender_id", cause.sender, "all", all, "error_code", cause.code, "notification_id", row.ID)
	}
	return errors.Join(failures...)
}

// settle writes what the carrier said. It goes on trying while the database is away: what it
// carries may be the only proof that the carrier accepted a notification.
func (a *Activities) settle(ctx context.Context, receipts ...notify.Receipt) error {
	_, err := a.settleRows(ctx, receipts...)
	return err
}

// settleAnswer writes what the carrier answered to a create, together with other answers that come at the same time.
// It goes on trying as settle does.
func (a *Activities) settleAnswer(ctx context.Context, receipt notify.Receipt) error {
	var err error
	for wait := 100 * time.Millisecond; ; wait *= 2 {
		if _, err = a.answerWriter().Do(detached(ctx), receipt); err == nil || !store.IsOutage(err) || wait > 10*time.Second || sleep(ctx, wait) != nil {
			return err
		}
	}
}

// answerWriter groups answers to creates, over all activities of the process.
func (a *Activities) answerWriter() *group.Writer[notify.Receipt, struct{}] {
	a.answersOnce.Do(func() {
		a.answers = group.NewWriter(group.Prompt, func(ctx context.Context, receipts ...notify.Receipt) ([]struct{}, error) {
			settled, err := a.Store.Settle(ctx, receipts...)
			return make([]struct{}, len(receipts)), errors.Join(err, Heed(ctx, a.Store, a.Log, settled...))
		}, store.IsOutage)
	})
	return a.answers
}

func (a *Activities) settleRows(ctx context.Context, receipts ...notify.Receipt) ([]store.Settled, error) {
	var settled []store.Settled
	var err error
	for wait := 100 * time.Millisecond; ; wait *= 2 {
		settled, err = a.Store.Settle(detached(ctx), receipts...)
		if err == nil || !store.IsOutage(err) || wait > 10*time.Second || sleep(ctx, wait) != nil {
			break
		}
	}
	return settled, errors.Join(err, Heed(detached(ctx), a.Store, a.Log, settled...))
}
