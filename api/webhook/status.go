// Package webhook receives Twilio's status callbacks. A callback is answered once the ledger has it;
// the workflow hears of it afterwards.
package webhook

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/todoku/todoku/api/background"
	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/starter"
	"github.com/todoku/todoku/store"
)

// Signaler tells a workflow that its notification has a final status. A workflow that is closed or
// unknown is success.
type Signaler interface {
	Settled(ctx context.Context, workflowID string, status notify.Status) error
}

// Handler serves the callbacks.
type Handler struct {
	Store     *store.Store
	Workflows Signaler
	Validator *carrier.SignatureValidator // nil: callbacks are not set up, and all are refused
	Logger    *slog.Logger
	Signals   *background.Tasks // what finds no place is left to the workflow's own check
}

// Register adds the callbacks' addresses. Each has the notification's id in its query.
func (h *Handler) Register(to gin.IRoutes) {
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
		settled, err := h.Store.Settle(c.Request.Context(), receipt)
		if err != nil {
			problem.Write(c.Writer, h.failed(c.Request.Context(), err))
			return
		}
		countReceipt(receipt)
		c.Status(http.StatusNoContent)
		c.Writer.WriteHeaderNow()
		c.Writer.Flush()
		for _, s := range settled {
			h.report(c.Request.Context(), s)
			h.signal(s)
		}
	}
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

// report says aloud what must not happen.
func (h *Handler) report(ctx context.Context, s store.Settled) {
	if s.SecondSID {
		secondSIDTotal.Inc()
		h.Logger.ErrorContext(ctx, "two SIDs for one notification: somebody got two", "notification_id", s.ID, "channel", s.Channel)
	}
	if s.Conflict {
		h.Logger.WarnContext(ctx, "two final statuses of Twilio disagree", "notification_id", s.ID, "channel", s.Channel, "status", s.Status)
	}
}

// signal tells the workflow that carries this notification alone: it has nothing left to wait for. A
// shard has other notifications to carry and would end at the first of them, so it finds out by its
// own look at the ledger. A signal never starts a workflow.
func (h *Handler) signal(s store.Settled) {
	if !s.JustSettled() || s.WorkflowID == nil || !carriesOnly(*s.WorkflowID, s.ID) {
		return
	}
	told := h.Signals.Submit(func(ctx context.Context) {
		if err := h.Workflows.Settled(ctx, *s.WorkflowID, s.Status); err != nil {
			unsignaledTotal.Inc()
			h.Logger.WarnContext(ctx, "workflow not told: it will look at the ledger by itself", "notification_id", s.ID, "error", err)
		}
	})
	if !told {
		unsignaledTotal.Inc()
	}
}

// carriesOnly reports whether the workflow is a notification's own, or one that took its place.
func carriesOnly(workflowID string, id uuid.UUID) bool {
	own := starter.NotificationWorkflowID(id)
	return workflowID == own || strings.HasPrefix(workflowID, own+"/")
}
