package workflows

import (
	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"
)

// CarrierCheckInput names a check of a batch against the carrier's own list.
type CarrierCheckInput struct{ ID uuid.UUID }

// CarrierCheck makes the check, or notes that it could not be made. What it finds is in the ledger.
func CarrierCheck(ctx workflow.Context, in CarrierCheckInput) error {
	err := workflow.ExecuteActivity(carrierCheckOptions.apply(ctx), a.CompareBatch, in.ID).Get(ctx, nil)
	if err == nil {
		return nil
	}
	if giveUpErr := workflow.ExecuteActivity(giveUpOptions.apply(ctx), a.GiveUpCarrierCheck, in.ID).Get(ctx, nil); giveUpErr != nil {
		return giveUpErr
	}
	return err
}
