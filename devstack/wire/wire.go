// Package wire carries connections to a server in tests. The server can be cut off, fall silent as a host that has
// vanished, and be replaced by another one.
package wire

import (
	"fmt"
	"net"
	"net/url"
	"sync"
)

// A Wire carries what its clients and its server say.
type Wire struct {
	listener net.Listener

	mu     sync.Mutex
	target string
	cut    bool
	passes chan struct{} // closed while what is said is passed on
	made   int
	conns  map[net.Conn]bool
}

// To lays a wire to the server at HOST:PORT, from a free port of this machine. The caller must Close it.
func To(target string) (*Wire, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("lay a wire to %s: %w", target, err)
	}
	w := &Wire{listener: listener, target: target, passes: make(chan struct{}), conns: map[net.Conn]bool{}}
	close(w.passes)
	go w.accept()
	return w, nil
}

// Address is where the clients connect to.
func (w *Wire) Address() *net.TCPAddr { return w.listener.Addr().(*net.TCPAddr) }

// Through is the URL of the server with the wire's address in place of the server's.
func (w *Wire) Through(serverURL string) (string, error) {
	u, err := url.Parse(serverURL)
	if err != nil {
		return "", fmt.Errorf("read a server's URL: %w", err)
	}
	u.Host = w.Address().String()
	return u.String(), nil
}

// Cut ends every connection and refuses new ones.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for conn := range w.conns {
		conn.Close()
	}
}

// Silence passes nothing on any more and answers nothing, while connections stay and new ones are accepted: so does a
// host that has vanished behind a balancer.
func (w *Wire) Silence() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.passes:
		w.passes = make(chan struct{})
	default:
	}
}

// Restore ends what Cut and Silence have begun.
func (w *Wire) Restore() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = false
	select {
	case <-w.passes:
	default:
		close(w.passes)
	}
}

// Lead lets new connections lead to another server. Those that there are stay.
func (w *Wire) Lead(target string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.target = target
}

// Made is how many connections there have been.
func (w *Wire) Made() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.made
}

// Close ends every connection and accepts no more.
func (w *Wire) Close() {
	w.listener.Close()
	w.Cut()
	w.Restore()
}

func (w *Wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		go w.connect(client)
	}
}

func (w *Wire) connect(client net.Conn) {
	w.wait()
	w.mu.Lock()
	target := w.target
	w.mu.Unlock()
	server, err := net.Dial("tcp", target)
	if err != nil {
		client.Close()
		return
	}
	w.mu.Lock()
	if w.cut {
		w.mu.Unlock()
		client.Close()
		server.Close()
		return
	}
	w.made++
	w.conns[client], w.conns[server] = true, true
	w.mu.Unlock()
	go w.carry(client, server)
	w.carry(server, client)
}

// carry passes on what from says, until either side is gone.
func (w *Wire) carry(to, from net.Conn) {
	defer w.end(to, from)
	said := make([]byte, 64<<10)
	for {
		n, err := from.Read(said)
		w.wait()
		if n > 0 {
			if _, err := to.Write(said[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (w *Wire) end(conns ...net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range conns {
		conn.Close()
		delete(w.conns, conn)
	}
}

// wait waits while the wire is silent.
func (w *Wire) wait() {
	w.mu.Lock()
	passes := w.passes
	w.mu.Unlock()
	<-passes
}
