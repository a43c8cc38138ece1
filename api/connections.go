package api

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// connections are those of a server on which a request is being read or answered, or from which the first one
// has not come yet: an [http.Server] that shuts down drops what it reads there without an answer. A connection
// that asks for nothing ends at ReadHeaderTimeout.
type connections struct {
	mu   sync.Mutex
	busy map[net.Conn]struct{}
}

// follow is a [http.Server]'s ConnState.
func (c *connections) follow(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew, http.StateActive:
		if c.busy == nil {
			c.busy = make(map[net.Conn]struct{})
		}
		c.busy[conn] = struct{}{}
	default:
		delete(c.busy, conn)
	}
}

// wait waits until there are none.
func (c *connections) wait(ctx context.Context) error {
	for c.count() > 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("finish requests: %w", ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}

func (c *connections) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.busy)
}
