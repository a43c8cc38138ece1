package webhook

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// What a signed callback may say that we do not understand.
const (
	unknownStatus = "unknown_status"
	unknownCode   = "unknown_error_code"
	withoutRow    = "no_notification"
	withoutCall   = "no_inbound_call"
)

var unexplainedTotal = promauto.NewCounterVec(prometheus.CounterOpts{
	Name: "todoku_webhook_unexplained_total",
	Help: "Signed callbacks that were recorded and not understood, by what was strange.",
}, []string{"kind"})

func init() {
	for _, kind := range []string{unknownStatus, unknownCode, withoutRow, withoutCall} {
		unexplainedTotal.WithLabelValues(kind) // so that each is 0 and not absent before the first one
	}
}

// countUnexplained counts and logs what callbacks say that we do not understand. The timelines keep the words.
func (h *Handler) countUnexplained(ctx context.Context, receipts []notify.Receipt, settled []store.Settled) {
	for _, r := range receipts {
		if _, known := notify.LookupWord(r.Channel, r.Word); !known {
			h.unexplained(ctx, unknownStatus, r)
		}
		if r.UnknownCode != "" {
			h.unexplained(ctx, unknownCode, r)
		}
	}
	for _, r := range store.WithoutRow(receipts, settled) {
		h.unexplained(ctx, withoutRow, r)
	}
}

func (h *Handler) unexplained(ctx context.Context, kind string, r notify.Receipt) {
	unexplainedTotal.WithLabelValues(kind).Inc()
	h.Logger.WarnContext(ctx, "callback not understood", "kind", kind, "channel", r.Channel, "sid", r.SID,
		"twilio_status", r.Word, "unknown_error_code", r.UnknownCode)
}
