// Package starter is the one door to Temporal for clients: it starts, signals and finds workflows.
package starter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/workflows"
)

// callLimit bounds one call to Temporal, its retries included, so that a slow server holds nobody up.
const callLimit = 10 * time.Second

// Singles go before batches wherever both wait (Temporal's priority keys: 1 is first, 3 the default).
const (
	singlePriority = 2
	batchPriority  = 4
)

// Starter talks to one Temporal namespace. It is safe for concurrent use.
type Starter struct {
	client    client.Client
	namespace string
	uiURL     string
}

// Dial prepares a client by Temporal's own environment variables (TEMPORAL_ADDRESS,
// TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TEMPORAL_TLS_…). It connects at the first call, so that
// whoever uses it starts while Temporal is away. uiURL is the base of Temporal's Web UI; it may be
// empty.
func Dial(uiURL string, logger *slog.Logger) (*Starter, error) {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return nil, fmt.Errorf("read TEMPORAL_ settings: %w", err)
	}
	options.Logger = log.NewStructuredLogger(logger)
	options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(carryConflictToken))
	c, err := client.NewLazyClient(options)
	if err != nil {
		return nil, fmt.Errorf("prepare Temporal client: %w", err)
	}
	namespace := options.Namespace
	if namespace == "" {
		namespace = client.DefaultNamespace
	}
	return &Starter{client: c, namespace: namespace, uiURL: uiURL}, nil
}

// Close closes the connection.
func (s *Starter) Close() { s.client.Close() }

// Client is the connection itself, for workers.
func (s *Starter) Client() client.Client { return s.client }

// Namespace is the namespace that workflows run in.
func (s *Starter) Namespace() string { return s.namespace }

// Ping reports whether Temporal answers.
func (s *Starter) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	_, err := s.client.CheckHealth(ctx, &client.CheckHealthRequest{})
	return err
}

// StartNotification starts the workflow that carries a notification. One that was started before,
// closed or not, is success: the ledger owns the notification, not the start.
func (s *Starter) StartNotification(ctx context.Context, id uuid.UUID, channel notify.Channel) error {
	return s.start(ctx, client.StartWorkflowOptions{
		ID:            notify.NotificationWorkflowID(id),
		StaticSummary: "one " + channelNames[channel],
		TypedSearchAttributes: temporal.NewSearchAttributes(
			workflows.ChannelAttribute.ValueSet(string(channel)), workflows.NotificationAttribute.ValueSet(id.String())),
	}, workflows.Notification, workflows.NotificationInput{ID: id, Channel: channel})
}

// StartShard starts the workflow that carries the notifications that it owns in the ledger and, where
// sender is not 0, adopts singles of that sender that wait. As with StartNotification, one that was
// started before is success.
func (s *Starter) StartShard(ctx context.Context, workflowID string, channel notify.Channel, sender int64) error {
	return s.start(ctx, client.StartWorkflowOptions{
		ID:                    workflowID,
		StaticSummary:         "a shard of " + channelNames[channel] + "s",
		TypedSearchAttributes: temporal.NewSearchAttributes(workflows.ChannelAttribute.ValueSet(string(channel))),
	}, workflows.Shard, workflows.ShardInput{Channel: channel, Adopt: sender})
}

var channelNames = map[notify.Channel]string{notify.SMS: "SMS", notify.Call: "call"}

func (s *Starter) start(ctx context.Context, options client.StartWorkflowOptions, workflow any, input any) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	options.TaskQueue = workflows.TaskQueue
	options.WorkflowIDReusePolicy = enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
	options.WorkflowExecutionErrorWhenAlreadyStarted = true
	if options.Priority.PriorityKey == 0 {
		options.Priority.PriorityKey = singlePriority
	}
	_, err := s.client.ExecuteWorkflow(ctx, options, workflow, input)
	if err != nil && !temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return fmt.Errorf("start workflow: %w", err)
	}
	return nil
}

// Settled tells a workflow that the ledger has the final status of what it carries. A workflow that
// is closed or gone needs no word: that is success too.
func (s *Starter) Settled(ctx context.Context, workflowID string, status notify.Status) error {
	_, err := s.signal(ctx, workflowID, workflows.SettledSignal, status)
	return err
}

// Wake makes a workflow look at the ledger at once, for example because its sender was resumed. It
// reports whether there is such a workflow and it is open.
func (s *Starter) Wake(ctx context.Context, workflowID string) (alive bool, err error) {
	return s.signal(ctx, workflowID, workflows.WakeSignal, nil)
}

// Stuck reports whether a workflow is open and its task has failed, or was lost, since something last happened to
// it. A task that only waits for a worker has not. A worker that dies is enough for it, so ask about a workflow
// that has not gone on for a while. The SDK answers a failure once and then lets the task time out, and each signal
// starts the count anew, so Temporal counts no further for one that is woken often.
func (s *Starter) Stuck(ctx context.Context, workflowID string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	described, err := s.client.DescribeWorkflow(ctx, workflowID, "")
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("describe a workflow: %w", err)
	}
	return described.RawResponse.GetPendingWorkflowTask().GetAttempt() > 1, nil
}

// Terminate ends a workflow at once; one that is closed or gone is success.
func (s *Starter) Terminate(ctx context.Context, workflowID, reason string) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	err := s.client.TerminateWorkflow(ctx, workflowID, "", reason)
	if _, gone := errors.AsType[*serviceerror.NotFound](err); err == nil || gone {
		return nil
	}
	return fmt.Errorf("terminate a workflow: %w", err)
}

func (s *Starter) signal(ctx context.Context, workflowID, name string, arg any) (alive bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	err = s.client.SignalWorkflow(ctx, workflowID, "", name, arg)
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("signal %s: %w", name, err)
	}
	return true, nil
}

// Away reports whether an error says that Temporal does not answer, or takes no more for now: what is asked
// next fails too. Other errors concern one workflow.
func Away(err error) bool {
	_, unavailable := errors.AsType[*serviceerror.Unavailable](err)
	_, exhausted := errors.AsType[*serviceerror.ResourceExhausted](err)
	_, late := errors.AsType[*serviceerror.DeadlineExceeded](err)
	_, noNamespace := errors.AsType[*serviceerror.NamespaceNotFound](err)
	return unavailable || exhausted || late || noNamespace || errors.Is(err, context.DeadlineExceeded)
}

// WorkflowURL is the page of a workflow in Temporal's Web UI, or empty when no UI is configured.
func (s *Starter) WorkflowURL(workflowID string) string {
	if s.uiURL == "" {
		return ""
	}
	return fmt.Sprintf("%s/namespaces/%s/workflows/%s", s.uiURL, url.PathEscape(s.namespace), url.PathEscape(workflowID))
}
