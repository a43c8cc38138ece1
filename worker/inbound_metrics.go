package worker

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/todoku/todoku/store"
)

var (
	inboundOpen = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Name: "todoku_inbound_open_calls",
		Help: "Calls that came in and are not over, by state. Each worker shows the same.",
	}, []string{"state"})
	inboundLongestWait = promauto.NewGauge(prometheus.GaugeOpts{
		Name: "todoku_inbound_longest_wait_seconds",
		Help: "How long the caller has waited who waits the longest. Each worker shows the same.",
	})
	inboundServiceLevel = promauto.NewGauge(prometheus.GaugeOpts{
		Name: "todoku_inbound_service_level_ratio",
		Help: "Of the calls of the last hour that were answered or given up, the share that was answered in time; 1 when there were none. Each worker shows the same.",
	})
	inboundEnded = promauto.NewGaugeVec(prometheus.GaugeOpts{
		Name: "todoku_inbound_last_hour_calls",
		Help: "Calls that came in within the last hour, by what became of them. Each worker shows the same.",
	}, []string{"outcome"})
)

func showFigures(f store.InboundFigures) {
	for state, n := range map[string]int64{"received": f.Received, "waiting": f.Waiting, "reserved": f.Reserved, "answered": f.Answered} {
		inboundOpen.WithLabelValues(state).Set(float64(n))
	}
	for outcome, n := range map[string]int64{
		"handled": f.Handled, "abandoned": f.Abandoned, "timed_out": f.TimedOut, "callback_requested": f.Callbacks, "turned_away": f.TurnedAway,
		"missed": f.Missed,
	} {
		inboundEnded.WithLabelValues(outcome).Set(float64(n))
	}
	inboundLongestWait.Set(f.LongestWait.Seconds())
	inboundServiceLevel.Set(f.ServiceLevel())
}
