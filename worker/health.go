package worker

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/todoku/todoku/starter"
	"github.com/todoku/todoku/store"
)

var relayed = promauto.NewCounter(prometheus.CounterOpts{
	Name: "todoku_relayed_total",
	Help: "Workflows that were started by the relay and not by the API.",
})

// health answers whether the worker lives (/healthz) and can work (/readyz), and its metrics.
type health struct {
	store   *store.Store
	starter *starter.Starter
	ledger  *prometheus.Registry // metrics that are read from the database when they are asked for
	working atomic.Bool          // pollers run

	attributes atomic.Pointer[starter.AttributesError] // what is wrong with search attributes; nil: nothing
}

func newHealth(s *store.Store, t *starter.Starter, log *slog.Logger) *health {
	h := &health{store: s, starter: t, ledger: prometheus.NewRegistry()}
	h.ledger.MustRegister(senders{store: s, log: log})
	return h
}

func (h *health) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, nil, "") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 3*time.Second)
		defer cancel()
		attributes := ""
		if wrong := h.attributes.Load(); wrong != nil {
			attributes = wrong.Error()
		}
		answer(w, h.down(ctx), attributes)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(prometheus.Gatherers{prometheus.DefaultGatherer, h.ledger}, promhttp.HandlerOpts{}))
	return mux
}

// down names what keeps the worker from working.
func (h *health) down(ctx context.Context) []string {
	var down []string
	if h.store.Ready(ctx) != nil {
		down = append(down, "database")
	}
	if h.starter.Ping(ctx) != nil {
		down = append(down, "temporal")
	}
	if wrong := h.attributes.Load(); wrong != nil && !wrong.Unknown {
		down = append(down, "search_attributes")
	}
	if !h.working.Load() {
		down = append(down, "pollers")
	}
	down = append(down, loops.stalled()...)
	return down
}

// answer says what is down, and what there is to say about search attributes.
func answer(w http.ResponseWriter, down []string, attributes string) {
	w.Header().Set("Content-Type", "application/json")
	status := "ok"
	if len(down) > 0 {
		status = "unavailable"
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(struct {
		Status           string   `json:"status"`
		Down             []string `json:"down,omitempty"`
		SearchAttributes string   `json:"search_attributes,omitempty"`
	}{status, down, attributes}) // the reader has gone
}
