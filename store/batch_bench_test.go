package store_test

import (
	"testing"
	"time"

	"github.com/todoku/todoku/notify"
)

// BenchmarkWhatTheCountsOfBatchesCostASingle claims and settles singles, by turns with the trigger that
// counts batches and without it, on a database that does not wait for the disk.
func BenchmarkWhatTheCountsOfBatchesCostASingle(b *testing.B) {
	s, db := openLedger(b)
	var took [2]time.Duration
	var n int
	for b.Loop() {
		for with, sql := range []string{`ALTER TABLE notifications DISABLE TRIGGER notifications_count_batch_moves`, `ALTER TABLE notifications ENABLE TRIGGER notifications_count_batch_moves`} {
			execute(b, db, sql)
			const singles = 200
			for i := range singles + 20 {
				id := accept(b, s, notify.SMS, false)
				started := time.Now()
				claim(b, s, id)
				settle(b, s, notify.Receipt{NotificationID: id.String(), Channel: notify.SMS, Word: "queued", Source: notify.FromCreate})
				settle(b, s, notify.Receipt{NotificationID: id.String(), Channel: notify.SMS, Word: "delivered", Source: notify.FromWebhook})
				if i >= 20 { // plans are made anew after the change
					took[with] += time.Since(started)
				}
			}
			n = singles
		}
	}
	each := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(b.N*n) }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(each(took[0]), "µs/single-without")
	b.ReportMetric(each(took[1]), "µs/single-with")
	b.ReportMetric(100*(each(took[1])/each(took[0])-1), "%-more")
}
