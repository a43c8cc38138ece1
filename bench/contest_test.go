package main

import (
	"strings"
	"testing"
)

func TestTheFasterPeerCounts(t *testing.T) {
	for _, c := range []struct {
		name  string
		took  map[string]rates
		times float64
		must  string
		holds bool
	}{
		{"faster than both", map[string]rates{bare: {1000}, peersJobs: {100}, peersLoop: {50}, ours: {500}}, 4, "at least 4 × the peer", true},
		{"faster than one of the two", map[string]rates{bare: {1000}, peersJobs: {50}, peersLoop: {200}, ours: {500}}, 4, "at least 4 × the peer", false},
		{"a little faster", map[string]rates{bare: {1000}, peersJobs: {100}, ours: {101}}, 1, "more than the peer", true},
		{"no peer", map[string]rates{bare: {1000}, ours: {500}}, 4, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := besidePeers(figure{what: "work"}, c.took, c.times)
			if f.must != c.must || f.holds != c.holds || !strings.Contains(f.beside, "bare loop 1000/s") {
				t.Errorf("the figure is %+v", f)
			}
		})
	}
}
