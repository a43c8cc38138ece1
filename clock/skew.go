package clock

import (
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Large is the skew from which on an operator is warned: sends are still made once, but what Twilio shows may be in
// doubt, and schedules run late.
const Large = 2 * time.Second

var skewSeconds = promauto.NewGaugeVec(prometheus.GaugeOpts{
	Name: "todoku_clock_skew_seconds",
	Help: "By how much the first clock of the pair is ahead of the second one, as this process measures it.",
}, []string{"pair"})

// skews holds by how much each clock is ahead of this process, and which pairs are far apart.
var skews = struct {
	sync.Mutex
	ahead map[string]time.Duration
	large map[string]bool
}{ahead: map[string]time.Duration{}, large: map[string]bool{}}

// publish exports by how much a clock is ahead of this process, and of the other clocks that were measured. It logs
// when two clocks part, and when they meet again.
func publish(of string, ahead time.Duration) {
	skews.Lock()
	defer skews.Unlock()
	skews.ahead[of] = ahead
	export(of+"-process", ahead)
	for other, by := range skews.ahead {
		if other < of {
			export(other+"-"+of, by-ahead)
		} else if other > of {
			export(of+"-"+other, ahead-by)
		}
	}
}

func export(pair string, skew time.Duration) {
	skewSeconds.WithLabelValues(pair).Set(skew.Seconds())
	switch large := skew.Abs() > Large; {
	case large && !skews.large[pair]:
		slog.Warn("two clocks differ: check the time synchronisation (NTP) of both machines", "clocks", pair, "ahead", skew.Round(10*time.Millisecond))
		skews.large[pair] = true
	case skew.Abs() < Large/2 && skews.large[pair]:
		slog.Info("two clocks agree again", "clocks", pair)
		delete(skews.large, pair)
	}
}
