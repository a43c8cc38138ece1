package simulator_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/todoku/todoku/simulator"
)

// BenchmarkCreates creates messages over HTTP from the same process, which also takes their two callbacks each.
func BenchmarkCreates(b *testing.B) {
	var callbacks atomic.Int64
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		callbacks.Add(1)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer hook.Close()
	sim := simulator.New(simulator.Options{})
	defer sim.Close()
	server := httptest.NewServer(sim)
	defer server.Close()

	client := server.Client()
	client.Transport.(*http.Transport).MaxIdleConnsPerHost = 64
	form := messageForm(map[string]string{"StatusCallback": hook.URL + "/status?id=n-1#rc=5&rp=all"}).Encode()
	b.SetParallelism(16)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			request, _ := http.NewRequest("POST", server.URL+"/2010-04-01/Accounts/"+testAccount+"/Messages.json",
				strings.NewReader(form))
			request.SetBasicAuth(testAccount, testToken)
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			response, err := client.Do(request)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
			if response.StatusCode != http.StatusCreated {
				b.Errorf("answered %d", response.StatusCode)
				return
			}
		}
	})
	for callbacks.Load() < 2*int64(b.N) {
		time.Sleep(time.Millisecond)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "creates/s")
}
