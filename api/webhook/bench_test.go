package webhook_test

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/todoku/todoku/api/apitest"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// BenchmarkCallback is what a callback that settles a notification costs from request to answer,
// client and signature included: alone, and with 64 others at the same time.
func BenchmarkCallback(b *testing.B) {
	for name, atOnce := range map[string]int{"alone": 1, "64 at once": 32} { // goroutines for each of 2 processors
		b.Run(name, func(b *testing.B) {
			a := apitest.Start(b)
			a.Workflows.Down()
			ids := pending(b, a, b.N)
			var next atomic.Int64
			post := func() {
				i := int(next.Add(1)) - 1
				answer := a.Callback(smsPath+"?id="+ids[i].String(), sms(sid("SM", i+1), "delivered"))
				if answer.Status != http.StatusNoContent {
					b.Errorf("answer = %d %s", answer.Status, answer.Text)
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			if atOnce == 1 {
				for range b.N {
					post()
				}
				return
			}
			b.SetParallelism(atOnce)
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					post()
				}
			})
		})
	}
}

// pending makes notifications that the carrier has.
func pending(b *testing.B, a *apitest.API, n int) []uuid.UUID {
	b.Helper()
	sender, err := a.Store.EnsureSender(b.Context(), notify.SMS, apitest.Number)
	if err != nil {
		b.Fatal(err)
	}
	ids, text := make([]uuid.UUID, n), "hello"
	to := notify.PhoneNumber{E164: "+15005550009"}
	for i := range ids {
		ids[i] = uuid.Must(uuid.NewV7())
		if _, err := a.Store.Accept(b.Context(), store.NewNotification{
			ID: ids[i], Channel: notify.SMS, To: to, ToHash: to.Hash([]byte("k")), Message: &text, SenderID: sender,
		}); err != nil {
			b.Fatal(err)
		}
		if _, err := a.Store.Settle(b.Context(), notify.Receipt{
			NotificationID: ids[i].String(), Channel: notify.SMS, SID: sid("SM", i+1), Word: "queued", Source: notify.FromCreate,
		}); err != nil {
			b.Fatal(err)
		}
	}
	return ids
}
