package v1

import (
	"sync"
	"time"
)

// Starting a workflow costs Temporal 40 to 50 ms of CPU, so what comes in a surge is left to the
// relay, which starts one workflow for many.
const (
	surgeSize = 10
	surgeTime = time.Second
)

// surge tells quiet times from surges. It is safe for concurrent use.
type surge struct {
	mu   sync.Mutex
	last [surgeSize]time.Time // when the last notifications were accepted, in a ring
	next int                  // the place of the longest ago of them
}

// accepted notes a notification that is accepted now, and reports whether it came in a surge: with
// ten others in the second before it.
func (s *surge) accepted(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	oldest := s.last[s.next]
	s.last[s.next] = now
	s.next = (s.next + 1) % surgeSize
	return now.Sub(oldest) < surgeTime
}
