package simulator

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"
)

// connection is one that a [poster]'s clients make requests over, one at a time. It is closed when its context is done.
type connection struct {
	*net.TCPConn
	raw    syscall.RawConn
	forget func() bool // forgets to close it then
	used   bool        // a request was made over it
}

// dial makes a connection, within the timeout.
func dial(ctx context.Context, address string, timeout time.Duration) (net.Conn, error) {
	dialer := net.Dialer{Timeout: timeout}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	socket := conn.(*net.TCPConn)
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &connection{TCPConn: socket, raw: raw, forget: context.AfterFunc(ctx, func() { _ = socket.Close() })}, nil
}

func (c *connection) Close() error {
	c.forget()
	return c.TCPConn.Close()
}

// errStale says that a kept connection is of no use any more, so the request was not written and may be made over another.
var errStale = errors.New("the other side has closed the connection, or has spoken unasked")

// SetWriteDeadline is what the client begins a request with, before it writes. A kept connection is looked at then: the
// client itself would notice only behind the request, which may have been heard by then and so cannot be repeated.
func (c *connection) SetWriteDeadline(t time.Time) error {
	if c.used && !c.quiet() {
		return errStale
	}
	c.used = true
	return c.TCPConn.SetWriteDeadline(t)
}

// quiet reports whether the other side has neither closed the connection nor said anything unasked.
func (c *connection) quiet() bool {
	var got error
	err := c.raw.Control(func(fd uintptr) {
		var next [1]byte
		_, _, got = syscall.Recvfrom(int(fd), next[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	})
	return err == nil && (errors.Is(got, syscall.EAGAIN) || errors.Is(got, syscall.EINTR))
}
