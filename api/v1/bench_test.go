package v1_test

import (
	"net/http"
	"testing"

	"github.com/google/uuid"

	"github.com/todoku/todoku/api/apitest"
)

// BenchmarkAccept is what a notification costs from request to answer, client included: alone, with
// 64 others at the same time, and with a key each.
func BenchmarkAccept(b *testing.B) {
	for _, bench := range []struct {
		name   string
		atOnce int
		keyed  bool
	}{{"alone", 1, false}, {"64 at once", 64, false}, {"64 at once with keys", 64, true}} {
		b.Run(bench.name, func(b *testing.B) {
			a := apitest.Start(b)
			b.SetParallelism(bench.atOnce)
			post := func() {
				var headers []string
				if bench.keyed {
					headers = append(headers, "Idempotency-Key: "+uuid.NewString())
				}
				answer := a.Do("POST", send, `{"channel": "SMS", "to": "090-1234-5678", "body": "ご予約は明日10時です。", "reference": "visit 7"}`, headers...)
				if answer.Status != http.StatusAccepted {
					b.Errorf("answer = %d %s", answer.Status, answer.Text)
				}
			}
			post()
			b.ReportAllocs()
			b.ResetTimer()
			if bench.atOnce == 1 {
				for b.Loop() {
					post()
				}
				return
			}
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					post()
				}
			})
		})
	}
}
