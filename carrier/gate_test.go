package carrier

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"
	"unsafe"
)

func TestAGateOpensOnlyInTime(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		gate   *gate
		sealed bool
		err    error
	}{
		"no deadline":            {gate: &gate{ctx: t.Context()}},
		"before the deadline":    {gate: &gate{ctx: t.Context(), deadline: time.Now().Add(time.Hour)}},
		"after the deadline":     {gate: &gate{ctx: t.Context(), deadline: time.Now().Add(-time.Second)}, err: ErrDeadline},
		"after it was canceled":  {gate: &gate{ctx: canceled}, err: context.Canceled},
		"after it was sealed":    {gate: &gate{ctx: t.Context()}, sealed: true, err: errSealed},
		"after it was, too late": {gate: &gate{ctx: t.Context(), deadline: time.Now().Add(-time.Second)}, sealed: true, err: errSealed},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.sealed && !tc.gate.seal() {
				t.Fatal("a fresh gate was not shut")
			}
			if err := tc.gate.open(); !errors.Is(err, tc.err) {
				t.Fatalf("open: %v, want %v", err, tc.err)
			}
			if opened := !tc.gate.openedAt.IsZero(); opened != (tc.err == nil) {
				t.Errorf("opened: %v", opened)
			}
			if tc.err == nil && tc.gate.seal() {
				t.Error("an open gate let itself be sealed")
			}
		})
	}
}

func TestAnOpenGateLetsTheRestThrough(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	g := &gate{ctx: t.Context(), deadline: time.Now().Add(time.Hour)}
	w := &wire{Conn: here}
	w.gate.Store(g)
	go func() {
		for range 2 {
			_, _ = there.Read(make([]byte, 16))
		}
	}()
	if _, err := w.Write([]byte("POST")); err != nil {
		t.Fatal(err)
	}
	g.deadline = time.Now().Add(-time.Hour)
	if _, err := w.Write([]byte("body")); err != nil {
		t.Fatalf("what had begun was cut off: %v", err)
	}
}

// TestAGateShutsByEitherClock has a wall clock that was set, in both directions, since the deadline was fixed.
func TestAGateShutsByEitherClock(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ wall, monotonic time.Duration }{
		"the wall clock was set back":         {time.Hour, -time.Second},
		"the wall clock was set ahead":        {-time.Hour, time.Second},
		"the machine slept past the deadline": {-time.Second, time.Second},
	} {
		deadline := time.Now().Add(tc.wall)
		(*[2]int64)(unsafe.Pointer(&deadline))[1] += int64(tc.monotonic - tc.wall) // where time.Time keeps its monotonic reading
		if got := time.Until(deadline); (got - tc.monotonic).Abs() > 500*time.Millisecond {
			t.Skipf("time.Time keeps its monotonic reading elsewhere: %v", got)
		}
		g := &gate{ctx: t.Context(), deadline: deadline}
		if err := g.open(); !errors.Is(err, ErrDeadline) {
			t.Errorf("%s: the gate answers %v, want %v", name, err, ErrDeadline)
		}
	}
}
