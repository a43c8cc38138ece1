package activities

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/todoku/todoku/notify"
)

var slowed = promauto.NewCounterVec(prometheus.CounterOpts{
	Name: "todoku_sender_slowed_total",
	Help: "How often the carrier asked a sender to wait (429, or its queue is full).",
}, []string{"channel"})

var missedSlots = promauto.NewCounterVec(prometheus.CounterOpts{
	Name: "todoku_missed_slots_total",
	Help: "How often a worker came too late for its place in a sender's pace, and took a later one: it has too little processor time.",
}, []string{"channel"})

func init() {
	for _, channel := range []notify.Channel{notify.SMS, notify.Call} {
		slowed.WithLabelValues(string(channel)) // so that each is 0 and not absent before the first time
		missedSlots.WithLabelValues(string(channel))
	}
}

var rowPanics = promauto.NewCounter(prometheus.CounterOpts{
	Name: "todoku_row_panics_total",
	Help: "How often the handling of one notification panicked. The second time the notification is FAILED (BAD_ROW).",
})

var foundAtCarrier = promauto.NewCounter(prometheus.CounterOpts{
	Name: "todoku_found_at_carrier_total",
	Help: "Sends of ours that the carrier showed and no row had, even after they were offered to every row in doubt.",
})

var (
	scheduleRuns = promauto.NewCounterVec(prometheus.CounterOpts{
		Name: "todoku_schedule_runs_total",
		Help: "Runs of schedules that were due: sent, or why they were skipped.",
	}, []string{"outcome"})
	syncFailures = promauto.NewCounter(prometheus.CounterOpts{
		Name: "todoku_schedule_sync_failures_total",
		Help: "Schedules that Temporal did not take. They are tried again every minute; the schedule shows the error.",
	})
)

var missedCalls = promauto.NewCounter(prometheus.CounterOpts{
	Name: "todoku_inbound_missed_total",
	Help: "Calls to our number that came in while Todoku could not be reached, and that were found afterwards.",
})

var followUps = promauto.NewCounterVec(prometheus.CounterOpts{
	Name: "todoku_inbound_follow_ups_total",
	Help: "What was done about callers who spoke with nobody, by how their calls ended.",
}, []string{"state", "action"})
