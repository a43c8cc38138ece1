package v1_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/todoku/todoku/api/apitest"
)

// BenchmarkImportMembers uploads 100,000 members as a file to an empty list, and others in their place:
// reading, checking and writing them. Each must take under 10 s.
func BenchmarkImportMembers(b *testing.B) {
	const members = 100_000
	a := apitest.Start(b)
	file := func(time string) string {
		var text strings.Builder
		text.WriteString("to,name,time,timezone\n")
		for i := range members {
			fmt.Fprintf(&text, "090-12%02d-%04d,Name %d,%s,Asia/Tokyo\n", i/10_000, i%10_000, i, time)
		}
		return text.String()
	}
	first, second := file("10:30"), file("11:00")
	var took [2]time.Duration
	for b.Loop() {
		b.StopTimer()
		at := a.Do("POST", lists, `{"name": "`+uuid.NewString()+`"}`).Header.Get("Location")
		b.StartTimer()
		for i, step := range []struct{ mode, file, changed string }{{"add", first, "added"}, {"replace", second, "changed"}} {
			started := time.Now()
			answer := a.Do("POST", at+"/members?mode="+step.mode, step.file, asCSV)
			took[i] += time.Since(started)
			if answer.Status != http.StatusOK || answer.Body[step.changed] != float64(members) {
				b.Fatalf("answer = %d %s", answer.Status, answer.Text)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, name := range []string{"s/100k-added", "s/100k-changed"} {
		each := (took[i] / time.Duration(b.N)).Seconds()
		b.ReportMetric(each, name)
		if each > 10 {
			b.Errorf("%.1f %s: must be 10 at most", each, name)
		}
	}
}

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
