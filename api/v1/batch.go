package v1

import (
	"context"
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// Batch is one bulk request as the API shows it.
type Batch struct {
	ID              uuid.UUID        `json:"id" format:"uuid"`
	Name            *string          `json:"name,omitempty"`
	Channel         notify.Channel   `json:"channel" enum:"SMS,CALL"`
	State           store.BatchState `json:"state" enum:"scheduled,running,paused,finished,canceled" doc:"finished: every notification is final. canceled: nothing more is sent; what was sent is still followed."`
	PauseReason     *string          `json:"pause_reason"`
	Body            *string          `json:"body,omitempty"`
	TemplateID      *int64           `json:"template_id,omitempty"`
	TemplateVersion *int32           `json:"template_version,omitempty"`
	ScheduleID      *int64           `json:"schedule_id,omitempty" doc:"The schedule that it is a run of."`
	Total           int64            `json:"total" doc:"Notifications; rejected rows are left out."`
	Counts          BatchCounts      `json:"counts" doc:"They add up to total."`
	Percent         float64          `json:"percent" doc:"How much of it is final."`
	SendsPerSecond  float64          `json:"sends_per_second" doc:"Over the last 10 seconds, or since it was last resumed or given a pace; 0 while it does not run."`
	ETA             *time.Time       `json:"eta" doc:"When the last one is sent, at the present rate; null where nobody can tell."`
	SendIntervalMS  *int64           `json:"send_interval_ms" doc:"Its own pace, in milliseconds; null: that of its sender."`
	SendAt          time.Time        `json:"send_at" doc:"Nothing is sent before."`
	CreatedAt       time.Time        `json:"created_at"`
	FinishedAt      *time.Time       `json:"finished_at"`
	RejectedCount   int32            `json:"rejected_count" doc:"Rows of the request that nothing can be sent to."`
	Rejected        []store.Rejected `json:"rejected" nullable:"false" doc:"The first 100 of them."`
	RejectedByCode  map[string]int   `json:"rejected_by_code" nullable:"false" doc:"How many rows were rejected for each code."`
	IgnoredColumns  []string         `json:"ignored_columns,omitempty" nullable:"false" doc:"Columns of the file that the template does not have."`
	Warnings        []Warning        `json:"warnings,omitempty" nullable:"false" doc:"In the answer to POST: what may be a mistake, and was accepted."`
	InFlight        *int64           `json:"in_flight,omitempty" doc:"In the answer to pause and cancel: how many were being sent at that moment. They have been answered by now, or their outcome is looked up."`
	WorkflowID      string           `json:"workflow_id" example:"batch/0190b0a0-0000-7000-8000-000000000000"`
	WorkflowURL     *string          `json:"workflow_url" doc:"The workflow in Temporal's Web UI, where one is configured."`
}

// BatchCounts are how many notifications of a batch have each status.
type BatchCounts struct {
	Accepted int64 `json:"accepted"`
	Held     int64 `json:"held" doc:"Accepted, while the batch is paused or its sender is stopped."`
	Sending  int64 `json:"sending"`
	Pending  int64 `json:"pending"`
	Success  int64 `json:"success"`
	Failed   int64 `json:"failed"`
	Unknown  int64 `json:"unknown"`
	Skipped  int64 `json:"skipped"`
	Canceled int64 `json:"canceled"`
}

// BatchPage is a part of the list of batches.
type BatchPage struct {
	Items      []Batch `json:"items" nullable:"false"`
	NextCursor *string `json:"next_cursor" doc:"Give it as cursor to read on; null on the last page."`
}

type batchOutput struct{ Body Batch }

type batchInput struct {
	ID uuid.UUID `path:"id" format:"uuid"`
}

const batchesPath = "/api/v1/batches"

func (a *API) registerBatches(to huma.API) {
	huma.Register(to, operation("list-batches", http.MethodGet, "/batches", "Batches", ScopeRead,
		"List batches", "The newest first, a page at a time."), a.listBatches)
	huma.Register(to, operation("get-batch", http.MethodGet, "/batches/{id}", "Batches", ScopeRead,
		"Read one batch", "How far it has come.", http.StatusNotFound), a.batch)
	a.registerBatchControl(to)
	a.registerCarrierCheck(to)
}

func (a *API) batch(ctx context.Context, in *batchInput) (*batchOutput, error) {
	b, err := a.findBatch(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return &batchOutput{a.showBatch(b)}, nil
}

// findBatch reads a batch. Its error is an answer.
func (a *API) findBatch(ctx context.Context, id uuid.UUID) (store.Batch, error) {
	b, err := a.reads.batches.fresh(ctx, id)
	if err != nil {
		return b, a.batchProblem(ctx, err)
	}
	return b, nil
}

func (a *API) batchProblem(ctx context.Context, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return problem.New(problem.BatchNotFound, "there is no batch with the id in the path: it is the UUID that the answer to the POST gave")
	}
	return a.fail(ctx, err)
}

func (a *API) listBatches(ctx context.Context, in *struct {
	Cursor string `query:"cursor" doc:"next_cursor of the page before."`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
}) (*struct{ Body BatchPage }, error) {
	var after *store.Place
	if in.Cursor != "" {
		var err error
		if after, err = parseCursor(in.Cursor); err != nil {
			return nil, problem.New(problem.ParameterInvalid, "cursor: it is not one that this address gave: start without it")
		}
	}
	found, err := a.Store.Batches(ctx, after, in.Limit+1) // one more tells whether there is a next page
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	var page BatchPage
	found, page.NextCursor = cutPage(found, in.Limit, func(last store.Batch) string { return cursorAfter(last.Place()) })
	page.Items = mapped(found, a.showBatch)
	return &struct{ Body BatchPage }{page}, nil
}

func (a *API) showBatch(b store.Batch) Batch {
	shown := Batch{
		ID: b.ID, Name: b.Name, Channel: b.Channel, State: b.State(), PauseReason: b.PauseReason,
		Body: b.Message, TemplateID: b.TemplateID, TemplateVersion: b.TemplateVersion, ScheduleID: b.ScheduleID,
		Total: int64(b.Total), Counts: showCounts(b),
		SendAt: b.SendAt, CreatedAt: b.CreatedAt, FinishedAt: b.FinishedAt,
		RejectedCount: b.RejectedCount, Rejected: b.Rejected, RejectedByCode: b.RejectedByCode, IgnoredColumns: b.IgnoredColumns,
		WorkflowID: b.WorkflowID, WorkflowURL: known(a.Starter.WorkflowURL(b.WorkflowID)),
	}
	open := shown.Counts.Accepted + shown.Counts.Held + shown.Counts.Sending + shown.Counts.Pending
	shown.Percent = math.Floor(1000*float64(shown.Total-open)/float64(shown.Total)) / 10
	if b.SendInterval != nil {
		ms := b.SendInterval.Milliseconds()
		shown.SendIntervalMS = &ms
	}
	if shown.State != store.BatchRunning {
		return shown
	}
	shown.SendsPerSecond = math.Round(10*b.SendsPerSecond) / 10
	if rate := b.SendsPerSecond; !b.SenderStopped && rate > 0 {
		eta := time.Now().Add(time.Duration(float64(b.Accepted) / rate * float64(time.Second))).UTC().Truncate(time.Second)
		shown.ETA = &eta
	}
	return shown
}

// showCounts tells what is stopped from what goes on. What of a canceled batch was not sent counts as
// canceled, although it is written down a little later.
func showCounts(b store.Batch) BatchCounts {
	counts := BatchCounts{Accepted: b.Accepted, Sending: b.Sending, Pending: b.Pending, Success: b.Success,
		Failed: b.Failed, Unknown: b.Unknown, Skipped: b.Skipped, Canceled: b.Canceled}
	switch {
	case b.CanceledAt != nil:
		counts.Canceled, counts.Accepted = counts.Canceled+counts.Accepted, 0
	case b.PausedAt != nil || b.SenderStopped || b.QueueFull:
		counts.Held, counts.Accepted = counts.Accepted, 0
	}
	return counts
}
