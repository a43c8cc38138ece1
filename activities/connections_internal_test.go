package activities

import (
	"testing"
	"time"
)

// inUse acquires connections until none is free, and returns how many.
func (c *connections) inUse() (n int) {
	for c.free.TryAcquire(1) {
		n++
	}
	return n
}

func TestConnectionsAreLoweredByAQuarterAndRecoverWithTheAnswers(t *testing.T) {
	t.Parallel()
	var c connections
	c.init(8)
	if n := c.inUse(); n != 8 {
		t.Fatalf("%d connections, want 8", n)
	}
	if left, lowered := c.lower(); left != 6 || !lowered {
		t.Fatalf("after too many requests %d are left, lowered %v", left, lowered)
	}
	if left, lowered := c.lower(); left != 6 || lowered {
		t.Fatalf("answers to requests of before leave %d, lowered %v", left, lowered)
	}
	for range 8 {
		c.release(false)
	}
	if n := c.inUse(); n != 6 {
		t.Fatalf("%d connections are used, want 6", n)
	}
	for range 6 {
		c.release(true)
	}
	if n := c.inUse(); n != 7 {
		t.Fatalf("after a round of answers %d connections are used, want 7", n)
	}
	for range 7 {
		c.release(true)
	}
	if n := c.inUse(); n != 8 {
		t.Fatalf("after two rounds of answers %d connections are used, want 8", n)
	}
}

func TestTheLastConnectionIsKept(t *testing.T) {
	t.Parallel()
	var c connections
	c.init(3)
	for range 5 {
		c.lower()
		c.loweredAt = time.Time{}
	}
	if n := c.inUse(); n != 1 {
		t.Errorf("%d connections are used, want 1", n)
	}
}

func TestAGroupIsClaimedAheadOfTheConnections(t *testing.T) {
	t.Parallel()
	var c connections
	c.init(4)
	for range claimedAhead / groupSize {
		if err := c.claimable(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if c.room.TryAcquire(groupSize) {
		t.Error("another group may be claimed while as many rows wait as may")
	}
	c.room.Release(groupSize - 4)
	if err := c.claimable(t.Context()); err != nil {
		t.Error(err)
	}
}
