package v1

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// CarrierCheck says where a batch and Twilio's own list differ.
type CarrierCheck struct {
	BatchID     uuid.UUID           `json:"batch_id" format:"uuid"`
	State       string              `json:"state" enum:"waiting,running,finished,failed" doc:"waiting: a worker begins it within a second, where Temporal can be reached."`
	Agrees      *bool               `json:"agrees" doc:"Whether there is no difference, and every notification was found; null until it is finished."`
	RequestedAt time.Time           `json:"requested_at"`
	FinishedAt  *time.Time          `json:"finished_at"`
	Failure     *string             `json:"failure" doc:"Why it failed."`
	LastError   *string             `json:"last_error" doc:"While it runs: why the last try could not be made. It is tried again for two hours."`
	Compared    int32               `json:"compared" doc:"Notifications of the batch that Twilio has accepted, by the ledger."`
	Listed      int32               `json:"listed" doc:"Sends that Twilio showed: all of the channel in the time in which the batch was sent."`
	Unverified  int32               `json:"unverified" doc:"Notifications that Twilio's list lacks and that are too many to be asked for one by one."`
	Counts      CarrierCheckCounts  `json:"counts"`
	Differences []CarrierDifference `json:"differences" nullable:"false" doc:"The first 1,000 of them, the gravest kind first."`
	WorkflowID  string              `json:"workflow_id" example:"carrier-check/0190b0a0-0000-7000-8000-000000000000"`
	WorkflowURL *string             `json:"workflow_url" doc:"The workflow in Temporal's Web UI, where one is configured."`
}

// CarrierCheckCounts are how many differences of each kind there are.
type CarrierCheckCounts struct {
	SecondSID        int32 `json:"second_sid" doc:"Twilio has accepted the notification twice, as a callback has told."`
	ExtraAtCarrier   int32 `json:"extra_at_carrier" doc:"Twilio shows a send to a recipient of the batch, from its sender, that no notification asked for."`
	MissingAtCarrier int32 `json:"missing_at_carrier" doc:"Twilio has no send with the notification's SID."`
	StatusDiffers    int32 `json:"status_differs" doc:"Twilio knows another outcome."`
}

// CarrierDifference is one of them.
type CarrierDifference struct {
	Kind             store.DifferenceKind `json:"kind" enum:"second_sid,extra_at_carrier,missing_at_carrier,status_differs"`
	Row              int32                `json:"row" doc:"Of the request: the first one is 1."`
	NotificationID   uuid.UUID            `json:"notification_id" format:"uuid"`
	To               string               `json:"to" doc:"Masked unless the key has the scope pii."`
	Status           notify.Status        `json:"status" doc:"As the ledger has it now."`
	TwilioStatus     *string              `json:"twilio_status" doc:"Twilio's status, as the ledger has it now."`
	TwilioSID        string               `json:"twilio_sid" doc:"Of the send at Twilio."`
	CarrierStatus    *string              `json:"carrier_status" doc:"The status that Twilio showed; null where it has no such send."`
	CarrierCreatedAt *time.Time           `json:"carrier_created_at"`
}

type carrierCheckOutput struct{ Body CarrierCheck }

func (a *API) registerCarrierCheck(to huma.API) {
	start := operation("start-carrier-check", http.MethodPost, "/batches/{id}/carrier-check", "Batches", ScopeSend,
		"Check a batch against Twilio's own list",
		"A worker reads what Twilio lists of the time in which the batch was sent, asks for what that does not show, and notes where it differs from the ledger. "+
			"It changes nothing of the batch. A batch of 100,000 takes about as long as Twilio takes to give 100 pages. While a check is under way, asking again returns it; afterwards another one is made. Read the result with GET.",
		http.StatusNotFound)
	start.DefaultStatus = http.StatusAccepted
	huma.Register(to, start, a.startCarrierCheck)
	huma.Register(to, operation("get-carrier-check", http.MethodGet, "/batches/{id}/carrier-check", "Batches", ScopeRead,
		"Where a batch and Twilio's own list differ", "The latest check that was asked for.", http.StatusNotFound), a.carrierCheck)
}

func (a *API) startCarrierCheck(ctx context.Context, in *batchInput) (*carrierCheckOutput, error) {
	check, err := a.Store.RequestCarrierCheck(ctx, in.ID)
	if err != nil {
		return nil, a.batchProblem(ctx, err)
	}
	return a.showCarrierCheck(ctx, check)
}

func (a *API) carrierCheck(ctx context.Context, in *batchInput) (*carrierCheckOutput, error) {
	if _, err := a.findBatch(ctx, in.ID); err != nil {
		return nil, err
	}
	check, err := a.Store.CarrierCheck(ctx, in.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, problem.New(problem.CarrierCheckNotFound, "the batch was not checked against Twilio's list yet: ask for it with POST to the same address")
	case err != nil:
		return nil, a.fail(ctx, err)
	}
	return a.showCarrierCheck(ctx, check)
}

func (a *API) showCarrierCheck(ctx context.Context, c store.CarrierCheck) (*carrierCheckOutput, error) {
	workflow := notify.CarrierCheckWorkflowID(c.ID)
	shown := CarrierCheck{
		BatchID: c.BatchID, State: "waiting", RequestedAt: c.RequestedAt, FinishedAt: c.EndedAt,
		Compared: c.Compared, Listed: c.Listed, Unverified: c.Unverified,
		Counts:      CarrierCheckCounts{SecondSID: c.SecondSIDs, ExtraAtCarrier: c.Extra, MissingAtCarrier: c.Missing, StatusDiffers: c.StatusDiffers},
		Differences: []CarrierDifference{}, WorkflowID: workflow, WorkflowURL: known(a.Starter.WorkflowURL(workflow)),
	}
	switch {
	case c.EndedAt != nil && c.Failure != nil:
		shown.State, shown.Failure = "failed", c.Failure
	case c.EndedAt != nil:
		agrees := c.Differences() == 0 && c.Unverified == 0
		shown.State, shown.Agrees = "finished", &agrees
	case c.StartedAt != nil:
		shown.State, shown.LastError = "running", c.Failure
	}
	if c.Differences() == 0 {
		return &carrierCheckOutput{shown}, nil
	}
	found, err := a.Store.CarrierDifferences(ctx, c.BatchID)
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	whole := seesNumbers(ctx)
	shown.Differences = mapped(found, func(d store.CarrierDifference) CarrierDifference {
		to := d.To
		if !whole {
			to = notify.Mask(to)
		}
		return CarrierDifference{
			Kind: d.Kind, Row: d.Row, NotificationID: d.NotificationID, To: to, Status: d.Status, TwilioStatus: d.TwilioStatus,
			TwilioSID: d.TwilioSID, CarrierStatus: d.CarrierStatus, CarrierCreatedAt: d.CarrierCreatedAt,
		}
	})
	return &carrierCheckOutput{shown}, nil
}
