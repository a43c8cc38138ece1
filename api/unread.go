package api

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// What is read and thrown away of a body after an answer that did not wait for its end. A client that writes all of
// its request before it reads would meet a connection that is closed, and not the answer.
const (
	discardBytes       = 64 << 20
	discardLimit       = 15 * time.Second
	discardLimitAtStop = time.Second
)

// incoming is a request's body that remembers whether all of it was read.
type incoming struct {
	io.ReadCloser
	ended bool
}

// readToItsEnd watches the body of a request. The result is nil where there is none, or where the client sends it only
// when asked to (Expect: 100-continue).
func readToItsEnd(r *http.Request) *incoming {
	if r.Body == nil || r.Body == http.NoBody || r.Header.Get("Expect") != "" {
		return nil
	}
	body := &incoming{ReadCloser: r.Body}
	r.Body = body
	return body
}

func (b *incoming) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	// A body that is longer than its reader takes has not ended.
	if err == io.EOF || err != nil && !errors.As(err, new(*http.MaxBytesError)) {
		b.ended = true
	}
	return n, err
}

// Close leaves the body open: whoever reads a part of it closes it, and the rest is still to be read. The server
// closes it at the end.
func (b *incoming) Close() error { return nil }

// discard sends the answer and then reads what is left of the body, within limits.
func (b *incoming) discard(w http.ResponseWriter, limit time.Duration) {
	if b == nil || b.ended {
		return
	}
	connection := http.NewResponseController(w)
	until := time.Now().Add(limit)
	if connection.Flush() != nil || connection.SetReadDeadline(until) != nil {
		return // no connection to a client, or one that broke
	}
	_, _ = io.CopyN(io.Discard, b.ReadCloser, discardBytes) // the answer was sent already
}
