package webhook

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

const (
	policyAge   = time.Second // how old the policy may be that calls are received by
	policyLimit = time.Second // for reading it: somebody holds the line
)

// policies remembers how calls are received, so that while the database is away those who wait and
// those who answer go on. It is safe for concurrent use.
type policies struct {
	store  *store.Store
	logger *slog.Logger

	mu     sync.Mutex
	last   notify.InboundPolicy
	readAt time.Time
	known  bool
}

// now is the policy of the moment, or the last one that could be read. The error says that none ever
// could.
func (p *policies) now(ctx context.Context) (notify.InboundPolicy, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known && time.Since(p.readAt) < policyAge {
		return p.last, nil
	}
	reading, cancel := context.WithTimeout(ctx, policyLimit)
	defer cancel()
	policy, err := p.store.InboundPolicy(reading)
	switch {
	case err == nil:
		p.last, p.known = policy, true
	case !p.known:
		return policy, err
	default:
		p.logger.WarnContext(ctx, "calls are received as before: the database did not say whether that has changed", "error", err)
	}
	p.readAt = time.Now()
	return p.last, nil
}
