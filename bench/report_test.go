package main

import (
	"strings"
	"testing"
	"time"

	"github.com/todoku/todoku/bench/rig"
)

func TestMedianIsTheMiddleRound(t *testing.T) {
	for _, c := range []struct {
		of   rates
		want float64
	}{{nil, 0}, {rates{7}, 7}, {rates{9, 1, 5}, 5}, {rates{4, 1, 3, 2}, 2}} {
		if got := c.of.median(); got != c.want {
			t.Errorf("the median of %v is %v, want %v", []float64(c.of), got, c.want)
		}
	}
}

func TestQuantileIsOneOfTheValues(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, c := range []struct {
		q    float64
		want time.Duration
	}{{0, 1}, {0.5, 51}, {0.99, 100}, {1, 100}} {
		if got := quantile(hundred, c.q); got != c.want {
			t.Errorf("quantile %v is %d, want %d", c.q, got, c.want)
		}
	}
	if got := quantile(nil, 0.5); got != 0 {
		t.Errorf("the quantile of nothing is %d, want 0", got)
	}
}

func TestPaceIsHeldAgainstEveryRule(t *testing.T) {
	const interval = 100 * time.Millisecond
	even := func(change func(gaps []time.Duration)) []rig.Create {
		gaps := make([]time.Duration, 400)
		for i := range gaps {
			gaps[i] = interval
		}
		change(gaps)
		at := time.Unix(0, 0)
		creates := []rig.Create{{CreatedAt: at}}
		for _, gap := range gaps {
			at = at.Add(gap)
			creates = append(creates, rig.Create{CreatedAt: at})
		}
		return creates
	}
	for _, c := range []struct {
		name   string
		change func(gaps []time.Duration)
		holds  bool
	}{
		{"even", func([]time.Duration) {}, true},
		{"three of 400 gaps somewhat short", func(g []time.Duration) {
			g[50], g[150], g[250] = 79*time.Millisecond, 79*time.Millisecond, 79*time.Millisecond
		}, false},
		{"jitter that is made up for", func(g []time.Duration) { g[50], g[51] = 85*time.Millisecond, 115*time.Millisecond }, true},
		{"one gap under half", func(g []time.Duration) { g[50], g[51] = 49*time.Millisecond, 151*time.Millisecond }, false},
		{"five gaps in a hundred short", func(g []time.Duration) {
			for i := 0; i < len(g); i += 20 {
				g[i], g[i+1] = 75*time.Millisecond, 125*time.Millisecond
			}
		}, false},
		{"ten gaps that all hurry", func(g []time.Duration) {
			for i := range 10 {
				g[100+i], g[120+i] = 95*time.Millisecond, 105*time.Millisecond
			}
		}, false},
		{"a pause while there is work", func(g []time.Duration) { g[50] = time.Second }, false},
	} {
		f := pace(even(c.change), interval, "SMS")
		if f.holds != c.holds {
			t.Errorf("%s: holds is %v, want %v: %s", c.name, f.holds, c.holds, f.measured)
		}
	}
	if pace(nil, interval, "SMS").holds {
		t.Error("no creates hold no pace")
	}
}

func TestTheReportNamesWhatDoesNotHold(t *testing.T) {
	r := &Report{figures: []figure{
		{what: "speed", must: "fast", measured: "slow", beside: "faster"},
		{what: "shown only", measured: "7"},
	}}
	var out strings.Builder
	r.print(&out)
	for _, want := range []string{"speed", "fast", "slow", "faster", "NO", "shown only"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, &out)
		}
	}
}
