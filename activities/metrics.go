package activities

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var secondSIDs = promauto.NewCounter(prometheus.CounterOpts{
	Name: "todoku_worker_second_sids_total",
	Help: "Notifications that the carrier accepted twice, as seen by the worker: somebody got two.",
})
