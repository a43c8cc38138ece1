package store_test

import (
	"context"
	"crypto/md5"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// BenchmarkSettleByListOrRowByRow runs the statements alone: it settles 100,000 PENDING rows from the parts
// of a list, through the temporary table, and a sample one by one, and leaves out what it takes to ask the
// carrier for either and that parts are settled at the same time. The whole way is measured by the program
// bench.
func BenchmarkSettleByListOrRowByRow(b *testing.B) {
	const rows, sample, part = 100_000, 2_000, 5000
	s, db := openLedger(b)
	sender, err := s.EnsureSender(b.Context(), notify.SMS, "+15005550006")
	if err != nil {
		b.Fatal(err)
	}
	delivered := func(from, until int) []notify.Receipt {
		var receipts []notify.Receipt
		for n := from; n < until; n++ {
			receipts = append(receipts, notify.Receipt{Channel: notify.SMS, SID: fmt.Sprintf("SM%x", md5.Sum([]byte(strconv.Itoa(n)))), Word: "delivered", Segments: 1, Source: notify.FromPoll})
		}
		return receipts
	}
	var byList, byRow time.Duration
	for b.Loop() {
		b.StopTimer()
		pending(b, db, sender, rows+sample)
		b.StartTimer()

		started := time.Now()
		for from := 0; from < rows; from += part {
			listed, err := s.SettleListed(context.Background(), delivered(from, from+part), time.Minute)
			if err != nil || len(listed.Settled) != part {
				b.Fatalf("settled %d rows of %d, error %v", len(listed.Settled), part, err)
			}
		}
		byList += time.Since(started)

		started = time.Now()
		for _, receipt := range delivered(rows, rows+sample) {
			if settled, err := s.Settle(context.Background(), receipt); err != nil || len(settled) != 1 {
				b.Fatalf("settled %+v, error %v", settled, err)
			}
		}
		byRow += time.Since(started)
	}
	runs := time.Duration(b.N)
	ratio := (byRow.Seconds() / sample) / (byList.Seconds() / rows)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric((byList / runs).Seconds(), "s/100k-rows-by-list")
	b.ReportMetric((byRow/runs/sample).Seconds()*rows, "s/100k-rows-one-by-one")
	b.ReportMetric(ratio, "times-faster")
}

// pending fills the ledger with so many PENDING rows, and nothing else. Their SIDs are in no order, as
// the carrier's are: the n-th has the hash of n.
func pending(b *testing.B, db *pgx.Conn, sender int64, rows int) {
	execute(b, db, `TRUNCATE notifications, notification_events`)
	execute(b, db, `
		INSERT INTO notifications (id, channel, status, to_number, to_national, to_hash, message, sender_id, workflow_id,
			twilio_sid, twilio_status, carrier_rank, started_at, sent_at)
		SELECT gen_random_uuid(), 'SMS', 'PENDING', '+12025550143', '(202) 555-0143', decode(md5(n::text), 'hex'), 'hello', $1, 'batch/1/' || n / 500,
			'SM' || md5(n::text), 'queued', 3, now(), now() - interval '5 minutes'
		FROM generate_series(0, $2::int - 1) AS n`, sender, rows)
	execute(b, db, `ANALYZE notifications`)
}

// BenchmarkSettleGroups settles callbacks as a busy webhook does: what each says of its row is new.
func BenchmarkSettleGroups(b *testing.B) {
	s := openStore(b)
	for _, size := range []int{1, 32} {
		b.Run(fmt.Sprint("of ", size), func(b *testing.B) {
			words := []string{"queued", "sending", "sent", "delivered"}
			group := make([]notify.Receipt, size)
			n := 0
			for b.Loop() {
				if n%len(words) == 0 {
					b.StopTimer()
					for i := range group {
						group[i] = notify.Receipt{NotificationID: accept(b, s, notify.SMS, false).String(), Channel: notify.SMS, SID: newSID("SM"), Source: notify.FromWebhook}
					}
					b.StartTimer()
				}
				for i := range group {
					group[i].Word = words[n%len(words)]
				}
				settle(b, s, group...)
				n++
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(n*size), "µs/receipt")
		})
	}
}
