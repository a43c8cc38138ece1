package webhook

import (
	"sync"
	"time"

	"github.com/todoku/todoku/store"
)

// heardEvery is how often a process notes at most that callbacks for a sender come.
const heardEvery = time.Second

// heard remembers when this process last noted that callbacks for a sender come.
type heard struct {
	mu   sync.Mutex
	last map[int64]time.Time
}

// now returns the senders of these rows for which it is to be noted again.
func (h *heard) now(settled []store.Settled) []int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	var due []int64
	for _, row := range settled {
		if time.Since(h.last[row.SenderID]) < heardEvery {
			continue
		}
		if h.last == nil {
			h.last = make(map[int64]time.Time)
		}
		h.last[row.SenderID] = time.Now()
		due = append(due, row.SenderID)
	}
	return due
}
