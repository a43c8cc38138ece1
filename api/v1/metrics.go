package v1

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

var acceptedTotal = promauto.NewCounterVec(prometheus.CounterOpts{
	Name: "todoku_notifications_accepted_total",
	Help: "Notifications written to the ledger by POST /api/v1/notifications.",
}, []string{"channel"})

var batchesTotal = promauto.NewCounterVec(prometheus.CounterOpts{
	Name: "todoku_batches_accepted_total",
	Help: "Bulk requests written to the ledger by POST /api/v1/batches.",
}, []string{"channel"})
