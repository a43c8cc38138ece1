package cli

import (
	"strings"
	"testing"
	"time"

	v1 "github.com/todoku/todoku/api/v1"
)

func TestTheBarFitsIntoTheTerminal(t *testing.T) {
	end := time.Now().Add(time.Hour + 500*time.Millisecond)
	b := v1.Batch{Total: 100_000, Percent: 50, SendsPerSecond: 10.04, ETA: &end,
		Counts: v1.BatchCounts{Accepted: 49_000, Sending: 500, Pending: 500, Success: 40_000, Failed: 10_000}}
	for width, want := range map[int]string{
		200: "[###############...............] 50.0 % of 100000, 10.0/s, 1h0m0s left\n49000 accepted, 500 sending, 500 pending, 40000 success, 10000 failed",
		80:  "[###############...............] 50.0 % of 100000, 10.0/s, 1h0m0s left\n49000 accepted, 500 sending, 500 pending, 40000 success, 10000 failed",
		60:  "50.0 % of 100000, 10.0/s, 1h0m0s left\n49000 accepted, 500 sending, 500 pending, 40000 success",
		30:  "50.0 % of 100000, 10.0/s\n49000 accepted, 500 sending",
		15:  "\n49000 accepted",
		5:   "\n",
	} {
		bar, counts := progressBar(b, width)
		if got := bar + "\n" + counts; got != want {
			t.Errorf("in %d columns it is\n%s\nwant\n%s", width, got, want)
		}
	}
}

func TestTheBarIsDrawnOverTheOneBefore(t *testing.T) {
	var out strings.Builder
	p := &progress{out: &out, width: func() int { return 80 }}
	p.update(v1.Batch{Total: 2, Counts: v1.BatchCounts{Accepted: 2}})
	p.update(v1.Batch{Total: 2, Percent: 100, Counts: v1.BatchCounts{Success: 2}})
	p.end()
	const erased = "\r\x1b[K"
	want := erased + "[" + strings.Repeat(".", 30) + "] 0.0 % of 2\n" + erased + "2 accepted" +
		"\x1b[A" + erased + "[" + strings.Repeat("#", 30) + "] 100.0 % of 2\n" + erased + "2 success\n"
	if out.String() != want {
		t.Errorf("it writes\n%q, want\n%q", out.String(), want)
	}
}
