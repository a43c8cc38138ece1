package v1

import (
	"testing"
	"time"
)

func TestASurgeIsMoreThanTenInASecond(t *testing.T) {
	at := time.Date(2026, 4, 1, 10, 0, 0, 0, time.UTC)
	var s surge
	left := func(n int, apart time.Duration) (surged int) {
		for range n {
			if s.accepted(at) {
				surged++
			}
			at = at.Add(apart)
		}
		return surged
	}
	if n := left(100, 200*time.Millisecond); n != 0 {
		t.Errorf("5 a second: %d of 100 came in a surge, want none", n)
	}
	at = at.Add(surgeTime)
	if n := left(30, time.Millisecond); n != 20 {
		t.Errorf("30 at once: %d came in a surge, want all after the first 10", n)
	}
	if n := left(1000, 10*time.Millisecond); n != 1000 {
		t.Errorf("100 a second after that: %d of 1,000 came in a surge, want all", n)
	}
	at = at.Add(surgeTime)
	if s.accepted(at) {
		t.Error("a second after the surge it still is one")
	}
}
