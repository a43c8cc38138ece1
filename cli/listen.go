package cli

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// listen opens an address. Its error names the setting that the address came from.
func listen(setting, address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s: another program listens on %s: stop it, or choose another port", setting, address)
	case err != nil:
		return nil, fmt.Errorf("%s: cannot listen on %s: %w", setting, address, err)
	}
	return listener, nil
}
