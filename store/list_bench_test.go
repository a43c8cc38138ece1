package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// BenchmarkPagesOfWhatNoIndexHas lists the calls of a ledger of 500,000 SMS, in which there are none, page by page.
func BenchmarkPagesOfWhatNoIndexHas(b *testing.B) {
	s, db := openLedger(b)
	execute(b, db, `INSERT INTO senders (channel, address) VALUES ('SMS', '+15005550006')`)
	execute(b, db, `
		INSERT INTO notifications (id, channel, status, to_number, to_national, to_hash, message, sender_id, settled_at, created_at)
		SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 'SMS', 'SUCCESS',
			'+12025550143', '(202) 555-0143', decode(md5(i::text), 'hex'), 'hello', 1, now(), now()
		FROM generate_series(1, 500000) AS i`)
	execute(b, db, `VACUUM ANALYZE notifications`)
	var took []time.Duration
	for b.Loop() {
		for after := (*store.Place)(nil); ; {
			began := time.Now()
			page, next, err := s.Notifications(b.Context(), store.Filter{Channel: notify.Call}, after, 50)
			if err != nil || len(page) > 0 {
				b.Fatal(page, err)
			}
			took = append(took, time.Since(began))
			if after = next; next == nil {
				break
			}
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms/page-p99")
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms/page-p50")
}
