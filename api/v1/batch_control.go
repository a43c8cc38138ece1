package v1

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/store"
)

func (a *API) registerBatchControl(to huma.API) {
	control := func(id, action, summary, description string, errs ...int) huma.Operation {
		return operation(id, http.MethodPost, "/batches/{id}/"+action, "Batches", ScopeSend, summary, description, append(errs, http.StatusNotFound, http.StatusConflict)...)
	}
	huma.Register(to, control("pause-batch", "pause", "Pause a batch",
		"Nothing of it is taken to be sent from this moment on. The answer waits for what is being sent, at most some 15 seconds, and says how many that were. Pausing a paused batch changes nothing.",
		http.StatusBadRequest),
		a.pauseBatch)
	huma.Register(to, control("resume-batch", "resume", "Let a paused batch go on", "Resuming a batch that runs changes nothing."), a.resumeBatch)
	huma.Register(to, control("cancel-batch", "cancel", "Cancel what of a batch was not sent",
		"Nothing of it is taken to be sent from this moment on. The answer waits for what is being sent, at most some 15 seconds, and says how many that were. What was sent is still followed. Canceling again changes nothing."),
		a.cancelBatch)
	huma.Register(to, withBody(operation("change-batch", http.MethodPatch, "/batches/{id}", "Batches", ScopeSend,
		"Change a batch's pace or time", "The pace at any time, from the next claim on; the time until the first of it is taken to be sent.",
		http.StatusNotFound, http.StatusConflict)), a.changeBatch)
}

func (a *API) pauseBatch(ctx context.Context, in *struct {
	ID     uuid.UUID `path:"id" format:"uuid"`
	Reason string    `query:"reason" maxLength:"255" doc:"Why, for people."`
}) (*batchOutput, error) {
	switch {
	case !utf8.ValidString(in.Reason):
		return nil, notUTF8("reason")
	case strings.ContainsFunc(in.Reason, unicode.IsControl):
		return nil, problem.New(problem.ParameterInvalid, "reason: it has control characters: remove them")
	}
	paused, err := a.Store.PauseBatch(ctx, in.ID, known(in.Reason))
	if err := a.controlled(ctx, in.ID, paused, err); err != nil {
		return nil, err
	}
	return a.awaitClaims(ctx, in.ID)
}

func (a *API) cancelBatch(ctx context.Context, in *batchInput) (*batchOutput, error) {
	canceled, err := a.Store.CancelBatch(ctx, in.ID)
	if err := a.controlled(ctx, in.ID, canceled, err); err != nil {
		return nil, err
	}
	return a.awaitClaims(ctx, in.ID)
}

func (a *API) resumeBatch(ctx context.Context, in *batchInput) (*batchOutput, error) {
	resumed, err := a.Store.ResumeBatch(ctx, in.ID)
	if err := a.controlled(ctx, in.ID, resumed, err); err != nil {
		return nil, err
	}
	return a.changedBatch(ctx, in.ID)
}

// controlled says why a batch could not be controlled.
func (a *API) controlled(ctx context.Context, id uuid.UUID, done bool, err error) error {
	switch {
	case err != nil:
		return a.batchProblem(ctx, err)
	case done:
		return nil
	}
	b, err := a.findBatch(ctx, id)
	if err != nil {
		return err
	}
	if b.State() == store.BatchCanceled {
		return problem.New(problem.BatchCanceled, "the batch was canceled: nothing about it can be changed any more")
	}
	return problem.New(problem.BatchFinished, "every notification of the batch is final: nothing about it can be changed any more")
}

// awaitClaims answers when no claim of before holds a notification any more. Claims that somebody has let
// begin again meanwhile are not waited for.
func (a *API) awaitClaims(ctx context.Context, id uuid.UUID) (*batchOutput, error) {
	first, err := a.Store.BatchInFlight(ctx, id, nil)
	for left, pause := first, firstClaimLook; err == nil && left.Rows > 0; pause = min(2*pause, laterClaimLook) {
		select {
		case <-ctx.Done():
			return nil, a.fail(ctx, fmt.Errorf("wait for claims in flight: %w", ctx.Err()))
		case <-time.After(pause):
		}
		left, err = a.Store.BatchInFlight(ctx, id, &first.Edge)
	}
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	b, err := a.findBatch(ctx, id)
	if err != nil {
		return nil, err
	}
	shown := a.showBatch(b)
	shown.InFlight = &first.Rows
	return &batchOutput{shown}, nil
}

type batchChange struct {
	SendIntervalMS *int64  `json:"send_interval_ms,omitempty" example:"1000" doc:"The least time between two of its sends, in milliseconds, where that is longer than its sender's; 0: its sender's."`
	SendAt         *string `json:"send_at,omitempty" format:"date-time" example:"2026-04-01T10:00:00+09:00" doc:"Nothing of it is sent before: RFC 3339 with an offset, up to 35 days ahead."`
}

// SlowestInterval is the longest time between two sends of a batch that may be asked for.
const SlowestInterval = time.Hour

func (a *API) changeBatch(ctx context.Context, in *struct {
	ID   uuid.UUID `path:"id" format:"uuid"`
	Body body[batchChange]
}) (*batchOutput, error) {
	change, wrong := in.Body.Value, in.Body.Wrong
	next := store.BatchChange{Pace: checkInterval(&wrong, change.SendIntervalMS), SendAt: checkSendAt(&wrong, change.SendAt, a.Store.Now(ctx))}
	if change.SendIntervalMS == nil && change.SendAt == nil && len(wrong) == 0 {
		wrong.Add("", problem.Required, "nothing is to be changed: give send_interval_ms or send_at")
	}
	if err := wrong.Problem(); err != nil {
		return nil, err
	}
	changed, err := a.Store.ChangeBatch(ctx, in.ID, next)
	switch {
	case err != nil:
		return nil, a.batchProblem(ctx, err)
	case !changed:
		return nil, a.notChanged(ctx, in.ID)
	}
	return a.changedBatch(ctx, in.ID)
}

// changedBatch answers with a batch whose workflows are to act on a change.
func (a *API) changedBatch(ctx context.Context, id uuid.UUID) (*batchOutput, error) {
	b, err := a.findBatch(ctx, id)
	if err != nil {
		return nil, err
	}
	a.wakeBatch(b)
	return &batchOutput{a.showBatch(b)}, nil
}

// notChanged says why nothing of a change was made.
func (a *API) notChanged(ctx context.Context, id uuid.UUID) error {
	b, err := a.findBatch(ctx, id)
	if err != nil {
		return err
	}
	if state := b.State(); state == store.BatchCanceled || state == store.BatchFinished {
		return a.controlled(ctx, id, false, nil)
	}
	return problem.New(problem.AlreadyClaimed, "some of the batch was taken to be sent: its time cannot be changed any more, but it can be paused")
}

// checkInterval reads a pace; nil: it stays.
func checkInterval(wrong *problem.Details, ms *int64) *time.Duration {
	if ms == nil {
		return nil
	}
	if *ms < 0 || *ms > SlowestInterval.Milliseconds() {
		wrong.Add("/send_interval_ms", problem.SendIntervalInvalid, fmt.Sprintf("the pace is out of range: choose from 0 to %d milliseconds", SlowestInterval.Milliseconds()))
		return nil
	}
	interval := time.Duration(*ms) * time.Millisecond
	return &interval
}

// wakeBatch has the batch's workflow, and those of its shards that wait, look at the ledger. What is
// not reached is woken by the worker, within 10 seconds.
func (a *API) wakeBatch(b store.Batch) {
	a.Starts.Submit(func(ctx context.Context) {
		const shards = 16
		waiting, err := a.Store.UnsentShards(ctx, b.ID, shards)
		if err != nil {
			a.Logger.WarnContext(ctx, "batch not woken: left to the worker", "batch_id", b.ID, "error", err)
			return
		}
		for _, workflowID := range append([]string{b.WorkflowID}, waiting...) {
			if _, err := a.Starter.Wake(ctx, workflowID); err != nil {
				a.Logger.WarnContext(ctx, "batch not woken: left to the worker", "batch_id", b.ID, "error", err)
				return
			}
		}
	})
}
