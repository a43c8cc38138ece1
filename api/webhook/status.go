// Package webhook receives Twilio's status callbacks. A callback is answered once the ledger has it;
// the workflow hears of it afterwards.
package webhook

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/todoku/todoku/api/group"
	"github.com/todoku/todoku/api/owners"
	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// Handler serves the callbacks.
type Handler struct {
	Store     *store.Store
	Owners    *owners.Teller
	Validator *carrier.SignatureValidator // nil: callbacks are not set up, and all are refused
	Logger    *slog.Logger

	receipts *group.Writer[notify.Receipt, []store.Settled]
}

// Register adds the callbacks' addresses. Each has the notification's id in its query.
func (h *Handler) Register(to gin.IRoutes) {
	h.receipts = group.NewWriter(h.settle, store.IsOutage)
	to.POST(smsStatusPath, h.status(notify.SMS))
	to.POST(callStatusPath, h.status(notify.Call))
}

func (h *Handler) status(channel notify.Channel) gin.HandlerFunc {
	return func(c *gin.Context) {
		receipt, refusal := h.receive(channel, c.Request)
		if refusal != nil {
			problem.Write(c.Writer, refusal)
			return
		}
		settled, err := h.receipts.Do(c.Request.Context(), receipt)
		if err != nil {
			problem.Write(c.Writer, h.failed(c.Request.Context(), err))
			return
		}
		countReceipt(receipt)
		c.Status(http.StatusNoContent)
		c.Writer.WriteHeaderNow()
		c.Writer.Flush()
		h.tell(c.Request.Context(), settled)
	}
}

// settle writes a group of receipts. The first of them gets all that came of it, to tell of when it
// was answered.
func (h *Handler) settle(ctx context.Context, receipts ...notify.Receipt) ([][]store.Settled, error) {
	settled, err := h.Store.Settle(ctx, receipts...)
	if err != nil {
		return nil, err
	}
	results := make([][]store.Settled, len(receipts))
	results[0] = settled
	return results, nil
}

// receive reads a callback that Twilio signed, or says why it is refused.
func (h *Handler) receive(channel notify.Channel, r *http.Request) (notify.Receipt, *problem.Problem) {
	form, reason, refusal := h.verify(r)
	if refusal == nil {
		receipt, err := carrier.ParseCallback(channel, form, r.URL.Query().Get("id"))
		if err == nil {
			return receipt, nil
		}
		reason, refusal = reasonMalformed, problem.New(problem.MalformedCallback, err.Error())
	}
	rejectedTotal.WithLabelValues(reason).Inc()
	h.Logger.WarnContext(r.Context(), "callback rejected", "channel", channel, "reason", reason)
	return notify.Receipt{}, refusal
}

// failed makes Twilio send the callback again: its URL asks for that after a 5xx.
func (h *Handler) failed(ctx context.Context, err error) *problem.Problem {
	if store.IsOutage(err) || errors.Is(err, context.Canceled) {
		h.Logger.WarnContext(ctx, "callback not recorded: database unavailable", "error", err)
		return problem.Unavailable()
	}
	h.Logger.ErrorContext(ctx, "callback not recorded", "error", err)
	return problem.New(problem.Internal, "the callback could not be recorded: send it again")
}

// report logs what must not happen.
func (h *Handler) report(ctx context.Context, s store.Settled) {
	if s.SecondSID {
		secondSIDTotal.Inc()
		h.Logger.ErrorContext(ctx, "two SIDs for one notification: somebody got two", "notification_id", s.ID, "channel", s.Channel)
	}
	if s.Conflict {
		h.Logger.WarnContext(ctx, "two final statuses of Twilio disagree", "notification_id", s.ID, "channel", s.Channel, "status", s.Status)
	}
}

// tell reports what must not happen, and tells the workflows of what became final.
func (h *Handler) tell(ctx context.Context, settled []store.Settled) {
	var final []owners.Final
	for _, s := range settled {
		h.report(ctx, s)
		if s.JustSettled() && s.WorkflowID != nil {
			final = append(final, owners.Final{ID: s.ID, WorkflowID: *s.WorkflowID, Status: s.Status})
		}
	}
	h.Owners.Tell(final...)
}
