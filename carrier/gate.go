package carrier

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// gate stands between one request and the wire. It opens when the first byte is about to be written,
// after a last look at the deadline and at whether the request is held. So a gate that never opened proves
// that nothing was written, and once sealed it never opens, even if net/http still tries.
type gate struct {
	ctx      context.Context
	deadline time.Time // zero: none
	held     func() bool
	openedAt time.Time // set before the gate opens
	state    atomic.Int32
	refused  atomic.Pointer[error] // why a write was not let through
}

const (
	gateShut = iota
	gateOpen
	gateSealed
)

var errSealed = errors.New("the request was given up")

// open lets a write through, or says why not. Only the connection that carries the request calls it.
func (g *gate) open() error {
	err := g.tryOpen()
	if err != nil {
		g.refused.Store(&err)
	}
	return err
}

// refusal is why a write was not let through, or nil. net/http may tell instead that the connection was closed for it.
func (g *gate) refusal() error {
	if err := g.refused.Load(); err != nil {
		return *err
	}
	return nil
}

func (g *gate) tryOpen() error {
	if g.state.Load() == gateShut {
		if !g.deadline.IsZero() && left(g.deadline) <= 0 {
			return ErrDeadline
		}
		if g.held != nil && g.held() {
			return ErrHeld
		}
		if err := g.ctx.Err(); err != nil {
			return err
		}
		g.openedAt = time.Now()
		g.state.CompareAndSwap(gateShut, gateOpen)
	}
	if g.state.Load() == gateSealed {
		return errSealed
	}
	return nil
}

// seal reports whether the gate never opened, and keeps it from opening.
func (g *gate) seal() bool { return g.state.CompareAndSwap(gateShut, gateSealed) }

// trace puts the gate in front of the connection that net/http chooses for the request.
func (g *gate) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		conn := got.Conn
		if encrypted, ok := conn.(*tls.Conn); ok {
			conn = encrypted.NetConn()
		}
		if w, ok := conn.(*wire); ok {
			w.gate.Store(g)
			return
		}
		g.openedAt = time.Now() // not one of ours: from now on it may have been written
		g.state.Store(gateOpen)
	}}
}

// wire is a connection to Twilio. Before a request gets it, in a TLS handshake, nothing holds it back.
type wire struct {
	net.Conn
	gate atomic.Pointer[gate]
}

func (w *wire) Write(p []byte) (int, error) {
	if g := w.gate.Load(); g != nil {
		if err := g.open(); err != nil {
			return 0, err
		}
	}
	return w.Conn.Write(p)
}

// dialWire connects as d does.
func dialWire(d *net.Dialer) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &wire{Conn: conn}, nil
	}
}

// left is the time until the deadline, by the clock that leaves less: the monotonic clock stands still while a
// machine sleeps, and the wall clock may be set back.
func left(deadline time.Time) time.Duration {
	now := time.Now()
	return min(deadline.Sub(now), deadline.Round(0).Sub(now.Round(0)))
}
