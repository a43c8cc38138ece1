package activities

import (
	"cmp"
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// defaultConnections is how many creates of one process are in flight at most.
	defaultConnections = 100

	// claimedAhead is how many rows of batches and shards may be claimed and wait for a connection: while a group is
	// claimed, as many wait. They are in doubt when the worker dies, as those in flight are.
	claimedAhead = 2 * groupSize

	// loweredFor is how long after the connections were lowered they are not lowered again: what comes in that time
	// answers requests of before.
	loweredFor = time.Second
)

// connections bounds the creates of this process that are in flight at the carrier. Where the carrier says that there
// are too many, a quarter of them is taken away; one comes back with each round of answers.
type connections struct {
	once sync.Once
	most int
	free *semaphore.Weighted // connections
	room *semaphore.Weighted // rows that may be claimed

	mu        sync.Mutex
	taken     int       // away, of most
	owed      int       // of these, in use: they are taken when they come back
	answers   int       // since one came back
	loweredAt time.Time // when some were last taken away
}

func (c *connections) init(most int) {
	c.once.Do(func() {
		c.most = cmp.Or(most, defaultConnections)
		c.free = semaphore.NewWeighted(int64(c.most))
		c.room = semaphore.NewWeighted(int64(c.most + claimedAhead))
	})
}

// acquire waits for a connection.
func (c *connections) acquire(ctx context.Context) error { return c.free.Acquire(ctx, 1) }

// release gives a connection back. answered reports that the carrier took the request up.
func (c *connections) release(answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owed > 0 {
		c.owed--
	} else {
		c.free.Release(1)
	}
	if !answered || c.taken == 0 {
		return
	}
	if c.answers++; c.answers >= c.most-c.taken {
		c.answers = 0
		c.taken--
		if c.owed > 0 {
			c.owed--
		} else {
			c.free.Release(1)
		}
	}
}

// lower takes a quarter of the connections away, but never the last one, and reports how many are left; false: some
// were taken away just now.
func (c *connections) lower() (left int, lowered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left = c.most - c.taken
	if time.Since(c.loweredAt) < loweredFor || left == 1 {
		return left, false
	}
	away := max(1, left/4)
	c.taken, c.answers, c.loweredAt = c.taken+away, 0, time.Now()
	for range away {
		if !c.free.TryAcquire(1) {
			c.owed++
		}
	}
	return left - away, true
}

// claimable waits until a group may be claimed: a claim costs nearly as much for one row as for all of them. Its rows
// are given back one by one, or those that were not claimed together.
func (c *connections) claimable(ctx context.Context) error { return c.room.Acquire(ctx, groupSize) }
