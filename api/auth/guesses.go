package auth

import (
	"net/netip"
	"sync"
	"time"
)

// A source may send guessBurst wrong keys at once, and another one each guessPause.
const (
	guessBurst = 20
	guessPause = 3 * time.Second

	maxSources = 10_000 // in memory
)

// Guesses counts wrong keys by the address that they came from. The zero value is ready, and safe for concurrent use.
type Guesses struct {
	mu      sync.Mutex
	sources map[netip.Prefix]time.Time // when the source has all its guesses back
}

// Source is what an address is counted as: itself or, as one subscriber has 2^64 of them, its IPv6 network. Text that
// is no address is one source.
func Source(address string) netip.Prefix {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Prefix{}
	}
	ip = ip.Unmap().WithZone("")
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	source, _ := ip.Prefix(bits) // fails only where an address has fewer bits
	return source
}

// Wait is how long a source has to wait before its next guess is looked at; 0: it need not.
func (g *Guesses) Wait(source netip.Prefix) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	restored, counted := g.sources[source]
	if !counted {
		return 0
	}
	return max(time.Until(restored)-(guessBurst-1)*guessPause, 0)
}

// Wrong counts a wrong key.
func (g *Guesses) Wrong(source netip.Prefix) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	restored := g.sources[source]
	if restored.Before(now) {
		restored = now
		g.makeRoom(now)
	}
	g.sources[source] = restored.Add(guessPause)
}

// makeRoom forgets sources that have all their guesses back and, while there are still too many, any others.
func (g *Guesses) makeRoom(now time.Time) {
	if g.sources == nil {
		g.sources = make(map[netip.Prefix]time.Time)
	}
	if len(g.sources) < maxSources {
		return
	}
	for source, restored := range g.sources {
		if restored.Before(now) {
			delete(g.sources, source)
		}
	}
	for source := range g.sources {
		if len(g.sources) < maxSources*9/10 { // so that the next ones need no look at all of them
			return
		}
		delete(g.sources, source)
	}
}
