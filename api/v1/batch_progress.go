package v1

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/store"
)

const (
	progressInterval = time.Second
	progressSilence  = 15 * time.Second // then a comment keeps the connection open
	progressPatience = 5 * time.Second  // with a reader who takes no more; it would hold up the end of this process
)

// batchProgress sends the batch whenever it has changed, once a second at most, until nothing changes
// any more.
func (a *API) batchProgress(c *gin.Context) error {
	id, err := uuid.Parse(c.Param("id"))
	if err != nil {
		return problem.New(problem.NotFound, "the id in the path cannot be one: check it")
	}
	if err := noParameters(c); err != nil {
		return err
	}
	ctx := c.Request.Context()
	b, err := a.findBatch(ctx, id)
	if err != nil {
		return err
	}
	c.Header("Content-Type", "text/event-stream")
	c.Header("X-Accel-Buffering", "no") // or a proxy would hold events back
	c.Status(http.StatusOK)
	timeouts := http.NewResponseController(c.Writer)
	var last []byte
	for silent := time.Now(); ; {
		shown, err := json.Marshal(a.showBatch(b))
		if err != nil {
			return err
		}
		final := b.Finished()
		event := "progress"
		if final {
			event = "finished"
		}
		_ = timeouts.SetWriteDeadline(time.Now().Add(progressPatience)) // what cannot be set stays as it is
		switch {
		case final || !bytes.Equal(shown, last):
			_, err = fmt.Fprintf(c.Writer, "event: %s\ndata: %s\n\n", event, shown)
			last, silent = shown, time.Now()
		case time.Since(silent) > progressSilence:
			_, err = fmt.Fprint(c.Writer, ": nothing has changed\n\n")
			silent = time.Now()
		}
		c.Writer.Flush()
		if final || err != nil {
			return nil // whoever has gone needs no answer
		}
		if b, err = a.nextProgress(ctx, id); err != nil {
			return nil // the client asks again, as event streams do
		}
	}
}

// nextProgress reads the batch again a little later. A database that is away for a while ends nothing.
func (a *API) nextProgress(ctx context.Context, id uuid.UUID) (store.Batch, error) {
	for {
		select {
		case <-ctx.Done():
			return store.Batch{}, ctx.Err()
		case <-a.leaving:
			return store.Batch{}, errLeaving
		case <-time.After(progressInterval):
		}
		b, err := a.reads.batches.recent(ctx, id, progressInterval*9/10)
		if !store.IsOutage(err) && !errors.As(err, new(*problem.Problem)) {
			return b, err
		}
	}
}

var errLeaving = errors.New("this process is being stopped")

// Leave ends the streams of events: their clients ask again, and another process answers.
func (a *API) Leave() { a.leaveOnce.Do(func() { close(a.leaving) }) }

func describeBatchStreams(to huma.API) {
	for _, each := range []struct{ id, path, summary, description, media string }{
		{"follow-batch", "/batches/{id}/progress", "Follow a batch",
			"Server-sent events: `progress` with the batch, as GET gives it, whenever it has changed, once a second at most; `finished` when nothing changes any more, and then the stream ends.", "text/event-stream"},
		{"batch-results", "/batches/{id}/results.csv", "What became of each row",
			"One row for each notification, in the order of the request: row, to, status, twilio_status, error_code, error_message, attempts, segments, duration_seconds, sent_at, settled_at, id, twilio_sid. Numbers are masked unless the key has the scope pii. Cells that a spreadsheet would take for a formula begin with an apostrophe.", "text/csv"},
	} {
		op := operation(each.id, http.MethodGet, each.path, "Batches", ScopeRead, each.summary, each.description, http.StatusNotFound)
		op.Parameters = []*huma.Param{{Name: "id", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString, Format: "uuid"}}}
		op.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{each.media: {Schema: &huma.Schema{Type: huma.TypeString}}}}}
		addProblems(to, &op)
		to.OpenAPI().AddOperation(&op)
	}
}
