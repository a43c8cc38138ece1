// Package webhook answers Twilio: its status callbacks, and the calls that come in. A callback is answered once the
// ledger has it; the workflow hears of it afterwards.
package webhook

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/settlement"
	"github.com/todoku/todoku/store"
	"github.com/todoku/todoku/store/group"
)

// Handler serves the callbacks.
type Handler struct {
	Store     *store.Store
	Notifier  *settlement.Notifier
	Validator *carrier.SignatureValidator // nil: callbacks are not set up, and all are refused
	Logger    *slog.Logger

	receipts *group.Writer[notify.Receipt, struct{}]
	heard    heard
}

// Register adds the callbacks' addresses. Each has the notification's id in its query.
func (h *Handler) Register(to gin.IRoutes) {
	h.receipts = group.NewWriter(group.Patient, h.settle, store.IsOutage)
	to.POST(smsStatusPath, h.status(notify.SMS))
	to.POST(callStatusPath, h.status(notify.Call))
}

func (h *Handler) status(channel notify.Channel) gin.HandlerFunc {
	counters := countersOf(channel)
	return func(c *gin.Context) {
		receipt, refusal := h.receive(channel, c.Request)
		if refusal != nil {
			problem.Write(c.Writer, refusal)
			return
		}
		// Whether the carrier waits for its answer or not, the receipt is written; and its group has a limit.
		if _, err := h.receipts.Do(context.Background(), receipt); err != nil {
			problem.Write(c.Writer, notRecorded(c.Request.Context(), h.Logger, err))
			return
		}
		counters.count(receipt)
		c.Status(http.StatusNoContent)
	}
}

// settle writes a group of receipts, and does what follows from it, whoever still waits for an answer.
func (h *Handler) settle(ctx context.Context, receipts ...notify.Receipt) ([]struct{}, error) {
	settled, err := h.Store.Settle(ctx, receipts...)
	if err != nil {
		return nil, err
	}
	h.countUnexplained(ctx, receipts, settled)
	if err := settlement.Handle(ctx, h.Store, h.Logger, settled...); err != nil {
		h.Logger.ErrorContext(ctx, "sender not stopped: the next such receipt will stop it", "error", err)
	}
	if senders := h.heard.now(settled); len(senders) > 0 {
		if err := h.Store.NoteCallbacks(ctx, senders...); err != nil {
			h.Logger.WarnContext(ctx, "not noted that callbacks come: the next one is", "error", err)
		}
	}
	h.Notifier.Notify(ctx, settlement.JustFinal(settled)...)
	return make([]struct{}, len(receipts)), nil
}

// receive reads a callback that Twilio signed, or says why it is refused.
func (h *Handler) receive(channel notify.Channel, r *http.Request) (notify.Receipt, *problem.Problem) {
	form, reason, refusal := verify(h.Validator, r)
	if refusal == nil {
		query, _ := carrier.ParseForm(r.URL.RawQuery) // without an id no row is found
		receipt, err := carrier.ParseCallback(channel, form, query.Get("id"))
		if err == nil {
			return receipt, nil
		}
		reason, refusal = reasonMalformed, problem.New(problem.MalformedCallback, err.Error())
	}
	rejectedTotal.WithLabelValues(reason).Inc()
	h.Logger.WarnContext(r.Context(), "callback rejected", "channel", channel, "reason", reason)
	return notify.Receipt{}, refusal
}

// notRecorded makes Twilio send the callback again: its URL asks for that after a 5xx.
func notRecorded(ctx context.Context, logger *slog.Logger, err error) *problem.Problem {
	if store.IsOutage(err) {
		logger.WarnContext(ctx, "callback not recorded: database unavailable", "error", err)
		return problem.UnavailableBecause(store.Outage(err))
	}
	if errors.Is(err, context.Canceled) {
		logger.WarnContext(ctx, "callback not recorded: database unavailable", "error", err)
		return problem.Unavailable()
	}
	logger.ErrorContext(ctx, "callback not recorded", "error", err)
	return problem.New(problem.Internal, "the callback could not be recorded: send it again")
}
