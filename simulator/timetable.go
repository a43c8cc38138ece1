package simulator

import (
	"container/heap"
	"sync"
	"time"
)

// timetable runs functions when they fall due, one after the other in one goroutine: a pending callback costs
// an entry, not a goroutine. The functions must be quick.
type timetable struct {
	mu      sync.Mutex
	entries entries
	added   uint64
	closed  bool
	wake    chan struct{}
	stopped chan struct{}
}

func newTimetable() *timetable {
	t := &timetable{wake: make(chan struct{}, 1), stopped: make(chan struct{})}
	go t.run()
	return t
}

// after has do run in d, behind everything that falls due at the same moment and was added before.
func (t *timetable) after(d time.Duration, do func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.added++
	e := &entry{due: time.Now().Add(d), number: t.added, do: do}
	heap.Push(&t.entries, e)
	if t.entries[0] == e {
		t.nudge()
	}
}

// close forgets what is pending and waits for the function that runs.
func (t *timetable) close() {
	t.mu.Lock()
	t.closed = true
	t.entries = nil
	t.nudge()
	t.mu.Unlock()
	<-t.stopped
}

func (t *timetable) nudge() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *timetable) run() {
	defer close(t.stopped)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		do, wait, ok := t.next()
		switch {
		case !ok:
			return
		case do != nil:
			do()
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-t.wake:
		}
	}
}

// next takes the function that is due, or says how long to wait for the next one; not ok once closed.
func (t *timetable) next() (do func(), wait time.Duration, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return nil, 0, false
	case len(t.entries) == 0:
		return nil, time.Hour, true
	}
	if wait = time.Until(t.entries[0].due); wait > 0 {
		return nil, wait, true
	}
	return heap.Pop(&t.entries).(*entry).do, 0, true
}

type entry struct {
	due    time.Time
	number uint64
	do     func()
}

// entries is a heap with the entry that is due first at its top.
type entries []*entry

func (e entries) Len() int { return len(e) }
func (e entries) Less(i, j int) bool {
	if e[i].due.Equal(e[j].due) {
		return e[i].number < e[j].number
	}
	return e[i].due.Before(e[j].due)
}
func (e entries) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *entries) Push(x any)   { *e = append(*e, x.(*entry)) }
func (e *entries) Pop() any {
	old := *e
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*e = old[:len(old)-1]
	return last
}
