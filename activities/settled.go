package activities

import (
	"context"
	"errors"
	"time"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/settlement"
	"github.com/todoku/todoku/store"
	"github.com/todoku/todoku/store/group"
)

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
		a.answers = group.NewWriter(group.Patient, func(ctx context.Context, receipts ...notify.Receipt) ([]struct{}, error) {
			settled, err := a.Store.Settle(ctx, receipts...)
			return make([]struct{}, len(receipts)), errors.Join(err, settlement.Handle(ctx, a.Store, a.Log, settled...))
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
	return settled, errors.Join(err, settlement.Handle(detached(ctx), a.Store, a.Log, settled...))
}
