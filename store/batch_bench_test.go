package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// BenchmarkWhatTheCountsOfBatchesCostASingle claims and settles singles, one by one by turns with the
// trigger that counts batches and without it, on a database that does not wait for the disk. Each turn
// has sessions of its own in which the trigger fires or does not: to switch it off for all would throw
// away every plan. Medians count, so that what the database does beside it, such as vacuuming, does not.
func BenchmarkWhatTheCountsOfBatchesCostASingle(b *testing.B) {
	with, db := openLedger(b)
	without, err := store.Open(b.Context(), addOption(db.Config().ConnString(), "session_replication_role", "replica"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(without.Close)
	took := map[*store.Store][]time.Duration{}
	single := func(s *store.Store) time.Duration {
		id := accept(b, with, notify.SMS, false)
		began := time.Now()
		claim(b, s, id)
		settle(b, s, notify.Receipt{NotificationID: id.String(), Channel: notify.SMS, Word: "queued", Source: notify.FromCreate})
		settle(b, s, notify.Receipt{NotificationID: id.String(), Channel: notify.SMS, Word: "delivered", Source: notify.FromWebhook})
		return time.Since(began)
	}
	for range 50 { // until statements have their plans
		single(with)
		single(without)
	}
	turns := []*store.Store{with, without}
	for b.Loop() {
		slices.Reverse(turns) // none is always the second one
		for _, s := range turns {
			took[s] = append(took[s], single(s))
		}
	}
	median := func(s *store.Store) float64 {
		slices.Sort(took[s])
		return float64(took[s][len(took[s])/2].Microseconds())
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(without), "µs/single-without")
	b.ReportMetric(median(with), "µs/single-with")
	b.ReportMetric(100*(median(with)/median(without)-1), "%-more")
}

// addOption adds a setting of the server to a database's URL.
func addOption(url, name, value string) string {
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	return url + separator + name + "=" + value
}
