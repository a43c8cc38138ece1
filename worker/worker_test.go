package worker_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/carrier/carriertest"
	"github.com/todoku/todoku/devstack/devstacktest"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/starter"
	"github.com/todoku/todoku/store"
	"github.com/todoku/todoku/taskrouter"
	"github.com/todoku/todoku/worker"
	"github.com/todoku/todoku/workflows"
)

func TestMain(m *testing.M) { devstacktest.Main(m) }

// A number of the range that is reserved for fiction.
const recipient = "+12025550143"

// house is a running worker with everything real around it, without an API and without callbacks.
type house struct {
	t           *testing.T
	databaseURL string
	store       *store.Store
	starter     *starter.Starter
	sender      int64
	health      string
	twilio      *carriertest.Twilio
	stop        func()
}

func newHouse(t *testing.T) *house {
	t.Helper()
	url := devstacktest.Ledger(t)
	s, err := store.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	twilio := carriertest.Start(t)
	t.Setenv("TEMPORAL_ADDRESS", devstacktest.Temporal(t))
	logger := slog.New(slog.DiscardHandler)
	temporal, err := starter.Dial("", logger)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(temporal.Close)
	h := &house{t: t, databaseURL: url, store: s, starter: temporal, twilio: twilio}
	if h.sender, err = s.EnsureSender(t.Context(), notify.SMS, "+15005550006"); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.health = "http://" + listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() {
		w := worker.Worker{Store: s, Starter: temporal, Log: logger, Activities: &activities.Activities{Store: s, Carrier: twilio.Client, Log: logger,
			Terms: activities.Terms{ShardSize: 100, StatusCheckDelay: time.Second, AmbiguityWindow: time.Second, SendDeadline: time.Hour,
				Batch: func(notify.Channel) activities.BatchTerms {
					return activities.BatchTerms{Sender: "+15005550006", ShardSize: 1, Countries: []string{"US"}}
				},
				TaskRouterURLs: taskrouter.URLs{Voice: "https://t.example.com/voice", VoiceStatus: "https://t.example.com/status", Wait: "https://t.example.com/wait",
					Assignment: "https://t.example.com/assign", Events: "https://t.example.com/events"},
				Inbound: activities.InboundTerms{From: func(notify.Channel) string { return "+15005550006" }, Countries: []string{"US"}}}}}
		stopped <- w.Run(ctx, listener)
	}()
	h.stop = func() {
		cancel()
		select {
		case err := <-stopped:
			if err != nil {
				t.Error(err)
			}
			stopped <- nil
		case <-time.After(time.Minute):
			t.Error("the worker does not stop")
		}
	}
	t.Cleanup(func() { h.stop() })
	return h
}

// creates is how many messages the simulator accepted.
func (h *house) creates() int { h.t.Helper(); return h.twilio.Stats().Creates }

func (h *house) accept(n int) []uuid.UUID {
	h.t.Helper()
	ids, body := make([]uuid.UUID, n), "Your prescription is ready."
	for i := range ids {
		ids[i] = uuid.Must(uuid.NewV7())
		if _, err := h.store.Accept(h.t.Context(), store.NewNotification{ID: ids[i], Channel: notify.SMS, SenderID: h.sender,
			To: notify.PhoneNumber{E164: recipient, National: recipient}, ToHash: []byte(recipient), Message: &body}); err != nil {
			h.t.Fatal(err)
		}
	}
	return ids
}

// await waits until a row has the status.
func (h *house) await(id uuid.UUID, status notify.Status) store.Notification {
	h.t.Helper()
	var n store.Notification
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		var err error
		if n, err = h.store.Notification(h.t.Context(), id); err != nil {
			h.t.Fatal(err)
		}
		if n.Status == status {
			return n
		}
	}
	h.t.Fatalf("the row is %s, want %s", n.Status, status)
	return n
}

func TestTheRelayCarriesWhatNobodyStarted(t *testing.T) {
	h := newHouse(t)
	id := h.accept(1)[0]
	n := h.await(id, notify.Success)
	if got, want := *n.WorkflowID, notify.NotificationWorkflowID(id); got != want {
		t.Errorf("the owner is %s, want %s: a quiet day has one workflow for each", got, want)
	}
}

func TestABurstIsCarriedInShards(t *testing.T) {
	h := newHouse(t)
	owners := map[string]int{}
	for _, id := range h.accept(200) {
		owners[*h.await(id, notify.Success).WorkflowID]++
	}
	if len(owners) > 60 {
		t.Errorf("200 notifications were carried by %d workflows", len(owners))
	}
}

func TestAWorkflowThatIsGoneIsReplaced(t *testing.T) {
	h := newHouse(t)
	// Its sender has no slot for a while, so the workflow waits.
	if err := h.store.DelaySender(t.Context(), h.sender, 5*time.Second, "429"); err != nil {
		t.Fatal(err)
	}
	id := h.accept(1)[0]
	workflowID := notify.NotificationWorkflowID(id)
	c := h.starter.Client()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if run, err := c.DescribeWorkflow(t.Context(), workflowID, ""); err == nil && run.RawResponse.WorkflowExecutionInfo.HistoryLength >= 5 {
			break // it tries to send, and waits
		}
		if time.Now().After(end) {
			t.Fatal("the workflow was not started")
		}
	}
	if err := c.TerminateWorkflow(t.Context(), workflowID, "", "lost, for the test"); err != nil {
		t.Fatal(err)
	}
	if n := h.await(id, notify.Success); !strings.HasPrefix(*n.WorkflowID, workflowID+"/r") {
		t.Errorf("the owner is %s, want a successor of %s", *n.WorkflowID, workflowID)
	}
}

func TestNothingIsStartedForAStoppedSender(t *testing.T) {
	h := newHouse(t)
	if err := h.store.StopSender(t.Context(), h.sender, false, "21606", "stopped by the test"); err != nil {
		t.Fatal(err)
	}
	ids := h.accept(30)
	time.Sleep(2 * time.Second) // twenty looks of the relay
	for _, id := range ids {
		if n := h.await(id, notify.Held); n.WorkflowID != nil {
			t.Fatalf("%s was started", *n.WorkflowID)
		}
	}
	if _, err := h.store.ResumeSender(t.Context(), h.sender); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		h.await(id, notify.Success)
	}
}

func TestAHappySingleCostsWhatWeSay(t *testing.T) {
	h := newHouse(t)
	id := h.accept(1)[0]
	n := h.await(id, notify.Success)
	run := h.starter.Client().GetWorkflow(t.Context(), *n.WorkflowID, "")
	var status notify.Status
	if err := run.Get(t.Context(), &status); err != nil || status != notify.Success {
		t.Errorf("the workflow's result is %s, error %v", status, err)
	}
	found, err := h.starter.Client().ListWorkflow(t.Context(), byNotification(id))
	for end := time.Now().Add(20 * time.Second); err == nil && len(found.Executions) == 0 && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		found, err = h.starter.Client().ListWorkflow(t.Context(), byNotification(id))
	}
	if err != nil || len(found.Executions) != 1 {
		t.Errorf("the search attribute finds %+v, error %v", found, err)
	}
}

func TestTheWorkerSaysWhetherItWorks(t *testing.T) {
	h := newHouse(t)
	h.await(h.accept(1)[0], notify.Success)
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200, "/other": 404} {
		res, err := http.Get(h.health + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s answers %d, want %d", path, res.StatusCode, want)
		}
	}
	for _, stopped := range []string{"0", "1"} {
		res, err := http.Get(h.health + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if want := `todoku_sender_stopped{channel="SMS",sender_id="1"} ` + stopped; err != nil || !strings.Contains(string(text), want) {
			t.Errorf("the metrics lack %s, error %v", want, err)
		}
		if err := h.store.StopSender(t.Context(), 1, false, "21606", "it cannot send"); err != nil {
			t.Fatal(err)
		}
	}
	h.stop()
	if res, err := http.Get(h.health + "/healthz"); err == nil {
		res.Body.Close()
		t.Error("it answers after it has stopped")
	}
}

func TestTheWorkersListenerKeepsNobodyWhoSaysNothing(t *testing.T) {
	h := newHouse(t)
	for _, said := range []string{"", "GET /healthz HTTP/1.1\r\nHost:"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(h.health, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, said); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute)) // far longer than the listener's
		if _, err := io.ReadAll(conn); err != nil {
			t.Errorf("a client that says %q is kept: %v", said, err)
		}
	}
}

func TestAWorkflowWhoseTaskFailsIsReplaced(t *testing.T) {
	h := newHouse(t)
	id, body := uuid.Must(uuid.NewV7()), "Your prescription is ready."
	owner := notify.NotificationWorkflowID(id)
	_, err := h.starter.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: owner, TaskQueue: workflows.TaskQueue}, "NoSuchWorkflow")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.store.Accept(t.Context(), store.NewNotification{ID: id, Channel: notify.SMS, SenderID: h.sender,
		To: notify.PhoneNumber{E164: recipient, National: recipient}, ToHash: []byte(recipient), Message: &body}); err != nil {
		t.Fatal(err)
	}
	hasty := worker.Relay{Store: h.store, Starter: h.starter, Log: slog.New(slog.DiscardHandler), ShardSize: 100, Patience: 4 * time.Second}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); hasty.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	if sent := h.await(id, notify.Success); sent.WorkflowID == nil || *sent.WorkflowID != owner+"/r1" {
		t.Errorf("it was carried by %v, want the successor %s/r1", sent.WorkflowID, owner)
	}
	if n := h.creates(); n != 1 {
		t.Errorf("%d messages were sent, want 1", n)
	}
}

func byNotification(id uuid.UUID) *workflowservice.ListWorkflowExecutionsRequest {
	return &workflowservice.ListWorkflowExecutionsRequest{
		Query: workflows.NotificationAttribute.GetName() + " = '" + id.String() + "'",
	}
}
