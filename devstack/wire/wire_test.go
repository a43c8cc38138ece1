package wire_test

import (
	"bufio"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/todoku/todoku/devstack/wire"
)

// greeter answers each line with its own name.
func greeter(t *testing.T, name string) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					fmt.Fprintln(conn, name)
				}
			}()
		}
	}()
	return listener.Addr().String()
}

func dial(t *testing.T, w *wire.Wire) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", w.Address().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// answer is what the server says within a time; empty: nothing.
func answer(conn net.Conn, within time.Duration) string {
	_ = conn.SetDeadline(time.Now().Add(within)) // a connection that is closed says nothing either
	if _, err := fmt.Fprintln(conn, "hello"); err != nil {
		return ""
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return ""
	}
	return line[:len(line)-1]
}

func TestAWireFallsSilentIsCutAndLeadsElsewhere(t *testing.T) {
	const soon, late = 50 * time.Millisecond, 20 * time.Second
	w, err := wire.To(greeter(t, "first"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	old := dial(t, w)
	if got := answer(old, late); got != "first" {
		t.Fatalf("it says %q", got)
	}

	w.Silence()
	young := dial(t, w)
	if got := answer(old, soon) + answer(young, soon); got != "" {
		t.Errorf("a silent wire says %q", got)
	}
	w.Lead(greeter(t, "second"))
	w.Restore()
	if got := answer(old, late); got != "first" {
		t.Errorf("an old connection leads to %q", got)
	}
	if got := answer(dial(t, w), late); got != "second" {
		t.Errorf("a new connection leads to %q", got)
	}

	open := dial(t, w)
	if got := answer(open, late); got != "second" {
		t.Errorf("it leads to %q", got)
	}
	w.Cut()
	if got := answer(open, late) + answer(dial(t, w), late); got != "" {
		t.Errorf("a wire that is cut says %q", got)
	}
	w.Restore()
	if got := answer(dial(t, w), late); got != "second" {
		t.Errorf("after it was restored it leads to %q", got)
	}
	if made := w.Made(); made < 3 {
		t.Errorf("it counts %d connections", made)
	}
}
