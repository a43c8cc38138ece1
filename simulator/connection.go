package simulator

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"
)

const (
	// maxReplyBytes is how much of an answer to a callback is read, and as much again of its header.
	maxReplyBytes = maxFormBytes
	// idleTimeout is how long a connection is kept that nobody needs.
	idleTimeout = 90 * time.Second
)

// errUnheard says that a kept connection was closed from the other side before anything could be heard of the
// request, which may thus be made anew.
var errUnheard = errors.New("the connection was closed before the request was heard")

// connection is an HTTP/1.1 connection that callbacks are made over, one at a time. Whoever makes one writes and
// reads by himself.
type connection struct {
	net.Conn
	host   string // whom it reaches, see request.host
	raw    syscall.RawConn
	answer io.LimitedReader
	reader *bufio.Reader
	used   bool
	idle   time.Time // since when it is kept
}

func newConnection(conn net.Conn, host string) (*connection, error) {
	socket := conn
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		socket = secure.NetConn()
	}
	raw, err := socket.(syscall.Conn).SyscallConn()
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: conn, host: host, raw: raw}
	c.answer.R = conn
	c.reader = bufio.NewReader(&c.answer)
	return c, nil
}

// quiet reports whether the other side has neither closed the connection nor said anything unasked.
func (c *connection) quiet() bool {
	if c.reader.Buffered() > 0 {
		return false
	}
	var got error
	err := c.raw.Read(func(fd uintptr) bool {
		var next [1]byte
		_, _, got = syscall.Recvfrom(int(fd), next[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return true
	})
	return err == nil && (errors.Is(got, syscall.EAGAIN) || errors.Is(got, syscall.EINTR))
}

// exchange writes a request and reads the answer, until the deadline or the context's end. It closes the connection
// unless that can take a further request.
func (c *connection) exchange(ctx context.Context, q *request, deadline time.Time) (r reply, kept bool, err error) {
	breakOff := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer func() {
		if kept = breakOff() && kept; !kept {
			_ = c.Close()
		}
	}()
	used := c.used
	c.used = true
	if err = c.SetDeadline(deadline); err != nil {
		return r, false, err
	}
	if n, err := c.Write(q.message); err != nil {
		if used && n == 0 && ctx.Err() == nil {
			err = errUnheard
		}
		return r, false, err
	}
	c.answer.N = 2 * maxReplyBytes
	response, err := c.readResponse()
	if err != nil {
		unheard := used && c.answer.N == 2*maxReplyBytes && q.method == http.MethodGet
		if unheard && ctx.Err() == nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			err = errUnheard
		}
		return r, false, err
	}
	r.status = response.StatusCode
	r.contentType, r.location = response.Header.Get("Content-Type"), response.Header.Get("Location")
	if response.Body == http.NoBody {
		return r, !response.Close, nil
	}
	body := io.LimitedReader{R: response.Body, N: maxReplyBytes}
	r.body, err = io.ReadAll(&body)
	return r, err == nil && body.N > 0 && !response.Close, err
}

// readResponse reads the header of the answer, behind those that only announce it.
func (c *connection) readResponse() (*http.Response, error) {
	for {
		response, err := http.ReadResponse(c.reader, nil)
		if err != nil || response.StatusCode >= 200 || response.StatusCode == http.StatusSwitchingProtocols {
			return response, err
		}
	}
}
