package devstack

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// A Probe asks a process once whether it is ready: nil means yes, an error says what it lacks.
type Probe func(context.Context) error

const (
	probeEvery   = 25 * time.Millisecond
	probeTimeout = 2 * time.Second
)

// probeClient opens a connection for each probe, so that none outlives the process it was made to.
var probeClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// HTTPProbe is ready when a GET of url is answered 200.
func HTTPProbe(url string) Probe {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return fmt.Errorf("probe %s: %w", url, err)
		}
		response, err := probeClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			body, _ := io.ReadAll(io.LimitReader(response.Body, 300)) // only to say more
			return fmt.Errorf("GET %s: %s: %s", url, response.Status, body)
		}
		return nil
	}
}

// TCPProbe is ready when address, as host:port, accepts a connection.
func TCPProbe(address string) Probe {
	return func(ctx context.Context) error {
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return connection.Close()
	}
}

// await probes until the answer is yes, the context ends or the process does.
func await(ctx context.Context, probe Probe, ended <-chan struct{}) error {
	for {
		asked, cancel := context.WithTimeout(ctx, probeTimeout)
		err := probe(asked)
		cancel()
		select {
		case <-ended:
			return errEnded
		default:
		}
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("%w; last answer: %w", context.Cause(ctx), err)
		case <-time.After(probeEvery):
		}
	}
}
