package devstack

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
)

// takenPort is a port that somebody listens on until the test ends.
func takenPort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().(*net.TCPAddr).Port
}

func TestTakenPortMovesAndSaysSo(t *testing.T) {
	taken := takenPort(t)
	free, err := freePort("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	say := func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }
	var got []int
	err = withPorts("127.0.0.1", say, func(ports []int) error { got = ports; return nil },
		wantedPort{"Temporal", taken}, wantedPort{"the API", free}, wantedPort{})
	if err != nil {
		t.Fatal(err)
	}
	if got[0] == taken || got[1] != free || got[2] == 0 {
		t.Errorf("ports %v for taken %d, free %d and any", got, taken, free)
	}
	if want := fmt.Sprintf("port %d is taken: Temporal moves to %d", taken, got[0]); strings.Join(said, "\n") != want {
		t.Errorf("said %q, want %q", said, want)
	}
}

func TestPortLostBetweenChoiceAndStartIsChosenAgain(t *testing.T) {
	failure := errors.New("address already in use")
	tries := 0
	err := withPorts("127.0.0.1", func(string, ...any) {}, func(ports []int) error {
		if tries++; tries > 1 {
			return nil
		}
		thief, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", ports[0]))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { thief.Close() })
		return failure
	}, wantedPort{})
	if err != nil || tries != 2 {
		t.Errorf("%d tries, %v", tries, err)
	}
	tries = 0
	err = withPorts("127.0.0.1", func(string, ...any) {}, func([]int) error { tries++; return failure }, wantedPort{})
	if !errors.Is(err, failure) || tries != 1 {
		t.Errorf("a failure with the port still free: %d tries, %v", tries, err)
	}
}
