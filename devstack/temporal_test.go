package devstack

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
)

func startTestTemporal(t *testing.T, options TemporalOptions) *TemporalServer {
	t.Helper()
	options.Out = testWriter{t}
	server, err := StartTemporal(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	return server
}

func dial(t *testing.T, server *TemporalServer) client.Client {
	t.Helper()
	c, err := client.DialContext(t.Context(), client.Options{HostPort: server.Address, Namespace: TemporalNamespace})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestTemporalKeepsItsWorkflowsOverStopAndKill(t *testing.T) {
	options := TemporalOptions{
		Dir:              t.TempDir(),
		SearchAttributes: map[string]enumspb.IndexedValueType{"TodokuReference": enumspb.INDEXED_VALUE_TYPE_KEYWORD},
	}
	server := startTestTemporal(t, options)
	reference := temporal.NewSearchAttributeKeyKeyword("TodokuReference").ValueSet("first")
	_, err := dial(t, server).ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: "kept", TaskQueue: "nobody", TypedSearchAttributes: temporal.NewSearchAttributes(reference),
	}, "Waiting")
	if err != nil {
		t.Fatal(err)
	}
	first := server.PID()
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a new Temporal", func() bool {
		return server.PID() != first && temporalProbe(server.Address)(t.Context()) == nil
	})
	server.Stop()
	server = startTestTemporal(t, options)
	if _, err := dial(t, server).DescribeWorkflow(t.Context(), "kept", ""); err != nil {
		t.Error(err)
	}
	if err := HTTPProbe(server.UIURL)(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTemporalCLIIsFoundAboveUpToTheModule(t *testing.T) {
	module := t.TempDir()
	below := filepath.Join(module, "a", "b")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(module, "go.mod"), []byte("module example.com/m\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "")
	t.Chdir(below)
	if _, err := FindTemporalCLI(); !errors.Is(err, ErrNoTemporalCLI) {
		t.Errorf("without one: %v", err)
	}
	cli := filepath.Join(module, ".bin", "temporal")
	if err := os.MkdirAll(filepath.Dir(cli), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cli, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	found, err := FindTemporalCLI()
	if err != nil || !strings.HasSuffix(found, filepath.Join(".bin", "temporal")) {
		t.Errorf("found %q, %v", found, err)
	}
	built, err := BuildTemporalCLI(t.Context(), filepath.Join(module, ".bin"), nil)
	if err != nil || built == "" {
		t.Errorf("a build where one is there: %q, %v", built, err)
	}
}
