package devstack

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
)

// TemporalNamespace is the namespace of every Temporal server that this package starts.
const TemporalNamespace = "default"

// TemporalOptions are the settings of a Temporal dev server of our own. The zero value gives one on free ports, gone
// without a trace when it is stopped.
type TemporalOptions struct {
	// Dir is where the server keeps its file, temporal.db, and its log. Empty: a temporary folder.
	Dir string
	// Port (gRPC) and UIPort (Web UI) are the preferred ports of 127.0.0.1; others are taken where they are in use. 0: any.
	Port, UIPort int
	// SearchAttributes are registered in the namespace.
	SearchAttributes map[string]enumspb.IndexedValueType
	// Out takes lines about what moved.
	Out io.Writer
}

// TemporalServer is a running Temporal dev server.
type TemporalServer struct {
	// Address is host:port of its gRPC API, as in TEMPORAL_ADDRESS.
	Address string
	// UIURL is the base URL of its Web UI.
	UIURL string

	child      *Child
	supervisor *Supervisor
}

// StartTemporal finds the Temporal CLI (on PATH, else .bin/temporal in this folder or one above) and runs its dev server
// under supervision. It returns when the namespace [TemporalNamespace] can be used; ctx limits only that wait. The caller
// must Stop it. Without a CLI it fails with [ErrNoTemporalCLI].
func StartTemporal(ctx context.Context, options TemporalOptions) (*TemporalServer, error) {
	binary, err := FindTemporalCLI()
	if err != nil {
		return nil, err
	}
	supervisor, err := superviseOne(&options.Dir, options.Out)
	if err != nil {
		return nil, err
	}
	t, err := startTemporal(ctx, supervisor, binary, options)
	if err != nil {
		supervisor.Stop()
		return nil, err
	}
	t.supervisor = supervisor
	return t, nil
}

// PID is the id of the server's process.
func (t *TemporalServer) PID() int { return t.child.PID() }

// Stop ends the server and removes its folder if that was temporary.
func (t *TemporalServer) Stop() { t.supervisor.Stop() }

// startTemporal runs a dev server under a given supervisor.
func startTemporal(ctx context.Context, s *Supervisor, binary string, options TemporalOptions) (*TemporalServer, error) {
	if err := os.MkdirAll(options.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder for Temporal: %w", err)
	}
	started := &TemporalServer{}
	err := withPorts("127.0.0.1", s.say, func(ports []int) error {
		address := "127.0.0.1:" + strconv.Itoa(ports[0])
		children, err := s.Start(ctx, Process{
			Name: "temporal",
			Path: binary,
			Args: options.arguments(ports[0], ports[1], ports[2], ports[3]),
			// A home of its own keeps the user's Temporal profiles out.
			Env:   []string{"PATH=" + os.Getenv("PATH"), "HOME=" + options.Dir},
			Ready: temporalProbe(address),
		})
		if err != nil {
			return err
		}
		started.child = children[0]
		started.Address = address
		started.UIURL = "http://127.0.0.1:" + strconv.Itoa(ports[1])
		return nil
	}, wantedPort{"Temporal", options.Port}, wantedPort{"Temporal's Web UI", options.UIPort}, wantedPort{}, wantedPort{})
	if err != nil {
		return nil, err
	}
	return started, nil
}

// arguments are those of `temporal server start-dev`. Its ports for metrics and HTTP are random if not given, and a
// server that is started again should be found where it was.
func (o TemporalOptions) arguments(port, uiPort, metricsPort, httpPort int) []string {
	arguments := []string{
		"server", "start-dev",
		"--ip", "127.0.0.1",
		"--port", strconv.Itoa(port),
		"--ui-port", strconv.Itoa(uiPort),
		"--metrics-port", strconv.Itoa(metricsPort),
		"--http-port", strconv.Itoa(httpPort),
		"--db-filename", filepath.Join(o.Dir, "temporal.db"),
		// A write-ahead log waits for the disk far less often than SQLite's default journal. What it may lose is what
		// the system itself had not written when it died; the ledger has that too, and the relay starts it again.
		"--sqlite-pragma", "journal_mode=WAL",
		"--sqlite-pragma", "synchronous=NORMAL",
		"--namespace", TemporalNamespace,
		"--log-level", "error",
		"--dynamic-config-value", "matching.useNewMatcher=true", // else priorities do nothing before server 1.30
		// A dev server has one history shard, which reads its queues at most 20 times a second unless told
		// otherwise: at five notifications a second each step would wait 45 ms for its turn.
		"--dynamic-config-value", "history.transferProcessorMaxPollRPS=1000",
		"--dynamic-config-value", "history.timerProcessorMaxPollRPS=1000",
		"--dynamic-config-value", "system.forceSearchAttributesCacheRefreshOnRead=true", // a new attribute works at once
	}
	for _, name := range slices.Sorted(maps.Keys(o.SearchAttributes)) {
		arguments = append(arguments, "--search-attribute", name+"="+o.SearchAttributes[name].String())
	}
	return arguments
}

// temporalProbe is ready when the namespace is there, which comes after the port is open.
func temporalProbe(address string) Probe {
	return func(ctx context.Context) error {
		c, err := client.DialContext(ctx, client.Options{
			HostPort:  address,
			Namespace: TemporalNamespace,
			Logger:    log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
		})
		if err != nil {
			return err
		}
		defer c.Close()
		_, err = c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: TemporalNamespace})
		return err
	}
}
