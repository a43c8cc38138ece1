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
	previousTokenTotal = promauto.NewCounter(prometheus.CounterOpts{
		Name: "todoku_webhook_previous_token_total",
		Help: "Callbacks that were signed with TWILIO_AUTH_TOKEN_PREVIOUS.",
	})
)

// CountPreviousToken counts a callback that was signed with the token before the present one.
func CountPreviousToken() { previousTokenTotal.Inc() }

func init() {
	for _, reason := range []string{reasonOff, reasonUnsigned, reasonForged, reasonTooLong, reasonUnreadable, reasonMalformed} {
		rejectedTotal.WithLabelValues(reason) // so that each is 0 and not absent before the first one
	}
}

// receiptCounters are those of what callbacks of a channel say. A word never heard of counts as other, so
// that the labels are bounded.
type receiptCounters struct {
	byWord map[string]prometheus.Counter
	other  prometheus.Counter
}

func countersOf(channel notify.Channel) receiptCounters {
	counter := func(word string) prometheus.Counter {
		return receiptsTotal.WithLabelValues(string(channel), string(notify.FromWebhook), word)
	}
	counters := receiptCounters{byWord: make(map[string]prometheus.Counter), other: counter("other")}
	for _, word := range notify.CarrierWords(channel) {
		counters.byWord[word.Name] = counter(word.Name)
	}
	return counters
}

func (c receiptCounters) count(r notify.Receipt) {
	counter, ok := c.byWord[r.Word]
	if !ok {
		counter = c.other
	}
	counter.Inc()
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
