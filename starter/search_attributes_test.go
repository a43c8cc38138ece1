package starter_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/todoku/todoku/devstack/devstacktest"
	"github.com/todoku/todoku/starter"
	"github.com/todoku/todoku/workflows"
)

// operator is a Temporal whose namespace has these attributes, and lets nobody list (nil) or add any.
type operator struct {
	operatorservice.UnimplementedOperatorServiceServer
	attributes map[string]enums.IndexedValueType
}

func (o *operator) ListSearchAttributes(context.Context, *operatorservice.ListSearchAttributesRequest) (*operatorservice.ListSearchAttributesResponse, error) {
	if o.attributes == nil {
		return nil, status.Error(codes.PermissionDenied, "Request unauthorized.")
	}
	return &operatorservice.ListSearchAttributesResponse{CustomAttributes: o.attributes}, nil
}

func (o *operator) AddSearchAttributes(context.Context, *operatorservice.AddSearchAttributesRequest) (*operatorservice.AddSearchAttributesResponse, error) {
	return nil, status.Error(codes.PermissionDenied, "Request unauthorized.")
}

func TestSearchAttributesThatMayNotBeAddedAreNamed(t *testing.T) {
	one := workflows.ChannelAttribute.GetName()
	lacking, wrong := maps.Clone(workflows.SearchAttributes), maps.Clone(workflows.SearchAttributes)
	delete(lacking, one)
	wrong[one] = enums.INDEXED_VALUE_TYPE_INT
	const create = "`temporal operator search-attribute create --namespace default --name "
	for name, test := range map[string]struct {
		have    map[string]enums.IndexedValueType
		unknown bool
		says    string // empty: no error
	}{
		"may not be listed": {nil, true, create + workflows.BatchAttribute.GetName() + " --type Keyword --name "},
		"are there":         {workflows.SearchAttributes, false, ""},
		"are lacking":       {lacking, false, create + one + " --type Keyword`"},
		"of another type":   {wrong, false, create + one + " --type Keyword`"},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server := grpc.NewServer()
			operatorservice.RegisterOperatorServiceServer(server, &operator{attributes: test.have})
			go func() { _ = server.Serve(listener) }() // until Stop
			defer server.Stop()
			t.Setenv("TEMPORAL_ADDRESS", listener.Addr().String())
			s, err := starter.Dial("", slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			err = s.EnsureSearchAttributes(t.Context())
			var found *starter.AttributesError
			switch {
			case test.says == "":
				if err != nil {
					t.Error(err)
				}
			case !errors.As(err, &found) || found.Unknown != test.unknown || !strings.Contains(err.Error(), test.says):
				t.Errorf("it says %v", err)
			}
		})
	}
}

func TestASearchAttributeOfAnotherTypeIsNamed(t *testing.T) {
	t.Setenv("TEMPORAL_ADDRESS", devstacktest.Temporal(t))
	t.Setenv("TEMPORAL_NAMESPACE", "attribute-of-another-type")
	s, err := starter.Dial("", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.Client().WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: "attribute-of-another-type", WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	name := workflows.ChannelAttribute.GetName()
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) { // the namespace is known a little later
		_, err = s.Client().OperatorService().AddSearchAttributes(t.Context(), &operatorservice.AddSearchAttributesRequest{
			Namespace:        "attribute-of-another-type",
			SearchAttributes: map[string]enums.IndexedValueType{name: enums.INDEXED_VALUE_TYPE_INT},
		})
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	var found *starter.AttributesError
	if err := s.EnsureSearchAttributes(t.Context()); !errors.As(err, &found) || found.Unknown || !strings.Contains(err.Error(), name) {
		t.Errorf("it says %v", err)
	}
}
