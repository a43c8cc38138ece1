package simulator

import (
	"testing"
	"time"
)

func TestPaceIsTheSmallestGapOfASender(t *testing.T) {
	base := time.Now()
	for _, test := range []struct {
		name     string
		arrivals []int // milliseconds
		want     int
	}{
		{"the smallest in the middle", []int{0, 100, 130, 500}, 30},
		{"the smallest at first", []int{0, 20, 130, 500}, 20},
		{"two taken in the wrong order", []int{0, 110, 100, 200}, 10},
		{"measured from the last one after that", []int{0, 110, 100, 115}, 5},
		{"two at once", []int{0, 100, 100}, 0},
	} {
		l := newLedger()
		for _, ms := range test.arrivals {
			l.add(&record{sender: "sender", createdAt: base.Add(milliseconds(ms))})
		}
		l.add(&record{sender: "another", createdAt: base.Add(time.Millisecond)})
		if got := l.paces["sender"].minGap; got != milliseconds(test.want) {
			t.Errorf("%s: %s, want %d ms", test.name, got, test.want)
		}
	}
}
