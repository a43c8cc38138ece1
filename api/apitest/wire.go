package apitest

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// Wire carries connections to a database until it is cut.
type Wire struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	cut   bool
	made  int
	conns []net.Conn
}

func newWire(t testing.TB, databaseURL string) *Wire {
	t.Helper()
	target, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &Wire{listener: listener, target: target.Host}
	go w.accept()
	t.Cleanup(func() {
		listener.Close()
		w.Cut()
	})
	return w
}

// url is the database's, through the wire.
func (w *Wire) url(t testing.TB, databaseURL string) string {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = w.listener.Addr().String()
	return u.String()
}

// Cut ends every connection and refuses new ones.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for _, conn := range w.conns {
		conn.Close()
	}
	w.conns = nil
}

// Mend lets connections through again.
func (w *Wire) Mend() { w.mu.Lock(); w.cut = false; w.mu.Unlock() }

// Made is how many connections there have been.
func (w *Wire) Made() int { w.mu.Lock(); defer w.mu.Unlock(); return w.made }

func (w *Wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		database, err := net.Dial("tcp", w.target)
		if err != nil || !w.keep(client, database) {
			client.Close()
			continue
		}
		go carry(client, database)
		go carry(database, client)
	}
}

func (w *Wire) keep(client, database net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		database.Close()
		return false
	}
	w.made++
	w.conns = append(w.conns, client, database)
	return true
}

func carry(to, from net.Conn) {
	_, _ = io.Copy(to, from) // it ends when either side does
	to.Close()
	from.Close()
}
