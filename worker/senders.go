package worker

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/todoku/todoku/store"
)

// senders tells, whenever metrics are read, what the database says of each sender.
type senders struct {
	store *store.Store
	log   *slog.Logger
}

var (
	senderLabels  = []string{"sender_id", "channel"}
	senderStopped = prometheus.NewDesc("todoku_sender_stopped",
		"1 while an account or sender error has stopped the sender: nothing is sent from it until somebody resumes it.", senderLabels, nil)
	senderWaiting = prometheus.NewDesc("todoku_sender_waiting",
		"Notifications of the sender that are due and were not claimed yet.", senderLabels, nil)
)

// Describe is part of prometheus.Collector.
func (s senders) Describe(to chan<- *prometheus.Desc) {
	to <- senderStopped
	to <- senderWaiting
}

// Collect is part of prometheus.Collector. While the database is away there is nothing to tell.
func (s senders) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	all, err := s.store.Senders(ctx)
	if err != nil {
		s.log.Warn("no metrics of senders", "error", err)
		return
	}
	for _, sender := range all {
		stopped := 0.0
		if sender.StoppedAt != nil {
			stopped = 1
		}
		labels := []string{strconv.FormatInt(sender.ID, 10), string(sender.Channel)}
		to <- prometheus.MustNewConstMetric(senderStopped, prometheus.GaugeValue, stopped, labels...)
		to <- prometheus.MustNewConstMetric(senderWaiting, prometheus.GaugeValue, float64(sender.Waiting), labels...)
	}
}
