package simulator

import "sync"

// pool runs jobs in at most limit goroutines; further ones wait their turn. It keeps no goroutine while idle.
type pool struct {
	limit int

	mu      sync.Mutex
	waiting []func()
	running int
	closed  bool
	done    sync.WaitGroup
}

// do starts the job now, or as soon as one of those running has ended. After close it does nothing.
func (p *pool) do(job func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
	case p.running == p.limit:
		p.waiting = append(p.waiting, job)
	default:
		p.running++
		p.done.Go(func() { p.work(job) })
	}
}

func (p *pool) work(job func()) {
	for job != nil {
		job()
		job = p.next()
	}
}

// next takes the job that waits longest, or gives the goroutine up.
func (p *pool) next() func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		p.waiting = nil
		p.running--
		return nil
	}
	job := p.waiting[0]
	p.waiting[0] = nil
	p.waiting = p.waiting[1:]
	return job
}

// close drops the jobs that wait and waits for those that run.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.waiting = nil
	p.mu.Unlock()
	p.done.Wait()
}
