package devstack

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"
)

// Free ports are taken from below the ranges from which Linux (32768 up) and macOS (49152 up) take the near end of
// outgoing connections. A port in those ranges is easily lost while its server is being started again: to any other
// connection, or to a client whose retries connect the port with itself.
const (
	lowestFreePort  = 15000
	highestFreePort = 32000
)

var handedOut = struct {
	sync.Mutex
	ports map[int]bool
}{ports: map[int]bool{}}

// freePort finds a TCP port of host that nothing listens on and that this process has not been given before.
func freePort(host string) (int, error) {
	handedOut.Lock()
	defer handedOut.Unlock()
	for range 1000 {
		port := lowestFreePort + rand.IntN(highestFreePort-lowestFreePort)
		if !handedOut.ports[port] && portFree(host, port) {
			handedOut.ports[port] = true
			return port, nil
		}
	}
	return 0, errors.New("find a free TCP port: 1000 tries between 15000 and 32000 failed")
}

// portFree reports whether a server could listen there now.
func portFree(host string, port int) bool {
	address := net.JoinHostPort(host, strconv.Itoa(port))
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	listener.Close()
	// macOS lets two listen on one port when one of them names the address and the other does not.
	connection, err := net.DialTimeout("tcp", address, time.Second)
	if err == nil {
		connection.Close()
	}
	return err != nil
}

// preferPort gives the preferred port if that is free, else another. A preferred port of 0 means any.
func preferPort(host string, preferred int) (port int, moved bool, err error) {
	if preferred != 0 && portFree(host, preferred) {
		return preferred, false, nil
	}
	port, err = freePort(host)
	return port, preferred != 0, err
}

// withPorts calls start with one port for each of the preferred ones, saying which moved, and again with others when it
// fails and one of the ports turns out to have been taken meanwhile.
func withPorts(host string, say func(string, ...any), start func(ports []int) error, wanted ...wantedPort) error {
	for try := 1; ; try++ {
		ports := make([]int, len(wanted))
		for i, want := range wanted {
			port, moved, err := preferPort(host, want.preferred)
			if err != nil {
				return err
			}
			if moved {
				say("port %d is taken: %s moves to %d", want.preferred, want.of, port)
			}
			ports[i] = port
		}
		err := start(ports)
		if err == nil {
			return nil
		}
		lost := false
		for _, port := range ports {
			lost = lost || !portFree(host, port)
		}
		if !lost || try == 3 {
			return err
		}
	}
}

// wantedPort is a port that somebody needs, and the one they would like (0: any).
type wantedPort struct {
	of        string
	preferred int
}
