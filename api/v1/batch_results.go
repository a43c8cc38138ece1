package v1

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

var resultColumns = []string{
	"row", "to", "status", "twilio_status", "error_code", "error_message", "attempts",
	"segments", "duration_seconds", "sent_at", "settled_at", "id", "twilio_sid",
}

// batchResults streams what became of each row.
func (a *API) batchResults(c *gin.Context) error {
	id, err := uuid.Parse(c.Param("id"))
	if err != nil {
		return problem.New(problem.NotFound, "the id in the path cannot be one: check it")
	}
	if err := noParameters(c); err != nil {
		return err
	}
	ctx := c.Request.Context()
	if _, err := a.findBatch(ctx, id); err != nil {
		return err
	}
	if err := takeTurn(ctx, a.reads.exports); err != nil {
		return err
	}
	defer func() { <-a.reads.exports }()
	language := notify.MatchLanguage(c.GetHeader("Accept-Language"))
	c.Header("Content-Language", string(language))
	c.Header("Vary", "Accept-Language")
	out, err := newCSVAnswer(c, fmt.Sprintf("batch-%s.csv", id))
	if err != nil {
		return nil // whoever has gone needs no answer
	}
	whole := seesNumbers(ctx)
	shownTo := func(r store.BatchResult) string {
		if !whole {
			return notify.Mask(r.To)
		}
		return a.asDialled(r.To, r.ToNational)
	}
	err = out.Write(resultColumns)
	for row, readErr := range a.Store.BatchResults(ctx, id) {
		if err = cmp.Or(err, readErr); err != nil {
			break
		}
		err = out.Write(resultRow(row, shownTo(row), language))
	}
	out.Flush()
	if err = cmp.Or(err, out.Error()); err != nil {
		// The answer has begun: only a connection that breaks tells the client that it is not whole.
		a.Logger.WarnContext(ctx, "results ended early", "batch_id", id, "error", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

func resultRow(r store.BatchResult, to string, language notify.Language) []string {
	row := []string{
		strconv.Itoa(int(r.Row)), to, string(r.Status), valueOf(r.TwilioStatus), valueOf(cmp.Or(r.TwilioErrorCode, r.FailureCode)),
		valueOf(failureMessage(r.Notification, language)), strconv.Itoa(int(r.Attempts)),
		number(r.Segments), number(r.DurationSeconds), moment(r.SentAt), moment(r.SettledAt), r.ID.String(), valueOf(r.TwilioSID),
	}
	for i, cell := range row {
		row[i] = notify.HarmlessCell(cell)
	}
	return row
}

func number(n *int32) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(int(*n))
}

func moment(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
