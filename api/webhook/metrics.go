package webhook

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/todoku/todoku/notify"
)

var (
	receiptsTotal = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "todoku_receipts_total",
		Help: "What the carrier said of notifications, by its word; other: a word never heard of.",
	}, []string{"channel", "source", "word"})
	rejectedTotal = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "todoku_webhook_rejected_total",
		Help: "Callbacks that were refused.",
	}, []string{"reason"})
)

func init() {
	for _, reason := range []string{reasonOff, reasonUnsigned, reasonForged, reasonTooLong, reasonUnreadable, reasonMalformed} {
		rejectedTotal.WithLabelValues(reason) // so that each is 0 and not absent before the first one
	}
}

// countReceipt keeps the labels bounded: a word never heard of counts as other.
func countReceipt(r notify.Receipt) {
	word := r.Word
	if _, ok := notify.LookupWord(r.Channel, r.Word); !ok {
		word = "other"
	}
	receiptsTotal.WithLabelValues(string(r.Channel), string(r.Source), word).Inc()
}

var (
	inboundCallsTotal = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "todoku_inbound_calls_total",
		Help: "Calls that came in, by what they were answered: queued, or why they were turned away; lost: nothing could be written down.",
	}, []string{"answer"})
	inboundEventsTotal = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "todoku_inbound_events_total",
		Help: "What was told of calls that came in, by its meaning, repeats too.",
	}, []string{"event"})
)

// outcome is the label of what a call was answered.
func outcome(turnedAway string) string {
	if turnedAway == "" {
		return "queued"
	}
	return turnedAway
}
