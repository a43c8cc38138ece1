package workflows_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/todoku/todoku/devstack/devstacktest"
	"github.com/todoku/todoku/workflows"
)

var record = flag.Bool("record", false, "record the histories in testdata anew, on a real Temporal, and not only replay them")

func TestMain(m *testing.M) { devstacktest.Main(m) }

// path is one way through a workflow: what its activities answer, and which signals it gets.
type path struct {
	name      string
	workflow  any
	input     any    // nil: the workflow takes none
	queue     string // of the workflow; empty: workflows.TaskQueue
	answers   answers
	signals   []signal // sent one after the other, signalPause apart
	atOnce    bool     // the first signal is sent together with the start
	scheduled bool     // a Temporal Schedule starts the workflow
	open      bool     // the workflow still waits when the history is taken
	fails     bool     // the workflow ends with an error
}

// answers are what the activities of a path answer, one after the other: a result, an error, or nil where an activity
// has no result. Each must be asked for.
type answers map[step][]any

// step is an activity and the queue on which it must be asked for.
type step struct{ activity, queue string }

type signal struct {
	name  string
	value any
}

// signalPause is long enough for a workflow to do what a signal makes it do.
const signalPause = 2 * time.Second

var paths = slices.Concat(notificationPaths, batchPaths, inboundPaths, reconcilePaths, carrierCheckPaths, schedulePaths, taskRouterPaths)

func registerWorkflows(r worker.WorkflowRegistry) {
	for _, w := range []any{
		workflows.Notification, workflows.Shard, workflows.Batch, workflows.Reconcile, workflows.InboundCall,
		workflows.TaskRouter, workflows.CarrierCheck, workflows.RunSchedule, workflows.SyncSchedules,
	} {
		r.RegisterWorkflow(w)
	}
}

func replayer() worker.WorkflowReplayer {
	r := worker.NewWorkflowReplayer()
	registerWorkflows(r)
	return r
}

func historyFile(name string) string { return filepath.Join("testdata", name+".json") }

// TestRecordedHistoriesReplay holds the workflow code against histories of each path: a change that
// would break workflows that are under way fails here. After an intended change, run
// `go test ./workflows -record -run Record`.
func TestRecordedHistoriesReplay(t *testing.T) {
	var r *recorder
	if *record {
		r = newRecorder(t)
	}
	for _, p := range paths {
		t.Run(p.name, func(t *testing.T) {
			if *record {
				r.record(t, p)
			}
			if err := replayer().ReplayWorkflowHistoryFromJSONFile(nil, historyFile(p.name)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAReplayNoticesOtherSteps proves that the test above can fail.
func TestAReplayNoticesOtherSteps(t *testing.T) {
	content, err := os.ReadFile(historyFile("settled-by-check"))
	if err != nil {
		t.Fatal(err)
	}
	var h history.History
	other := strings.ReplaceAll(string(content), `"name": "CheckStatus"`, `"name": "LookUp"`)
	if err := (temporalproto.CustomJSONUnmarshalOptions{DiscardUnknown: true}).Unmarshal([]byte(other), &h); err != nil {
		t.Fatal(err)
	}
	if err := replayer().ReplayWorkflowHistory(nil, &h); err == nil {
		t.Error("a history with another activity replays")
	}
}

// recorder takes one path after the other on a real Temporal.
type recorder struct {
	client client.Client

	mu   sync.Mutex
	left answers // of the path that is recorded
}

// newRecorder starts a worker for each queue that a path uses.
func newRecorder(t *testing.T) *recorder {
	c, err := client.Dial(client.Options{HostPort: devstacktest.Temporal(t), Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	r := &recorder{client: c}
	queues := map[string]bool{}
	for _, p := range paths {
		queues[p.taskQueue()] = true
		for s := range p.answers {
			queues[s.queue] = true
		}
	}
	for queue := range queues {
		w := worker.New(c, queue, worker.Options{})
		registerWorkflows(w)
		w.RegisterDynamicActivity(r.answer, activity.DynamicRegisterOptions{})
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
	}
	return r
}

func (p path) taskQueue() string {
	if p.queue == "" {
		return workflows.TaskQueue
	}
	return p.queue
}

func (p path) args() []any {
	if p.input == nil {
		return nil
	}
	return []any{p.input}
}

// answer stands for every activity. It gives a pointer because a nil one leaves no result in the history.
func (r *recorder) answer(ctx context.Context, _ converter.EncodedValues) (*any, error) {
	info := activity.GetInfo(ctx)
	s := step{info.ActivityType.Name, info.TaskQueue}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.left[s]) == 0 {
		return nil, temporal.NewNonRetryableApplicationError(fmt.Sprintf("no answer is left for %s on %s", s.activity, s.queue), "NoAnswer", nil)
	}
	answer := r.left[s][0]
	r.left[s] = r.left[s][1:]
	switch answer := answer.(type) {
	case nil:
		return nil, nil
	case error:
		return nil, answer
	}
	return &answer, nil
}

func (r *recorder) record(t *testing.T, p path) {
	r.mu.Lock()
	r.left = maps.Clone(p.answers)
	r.mu.Unlock()
	id, signals := r.start(t, p), p.signals
	if p.atOnce {
		signals = signals[1:]
	}
	for _, s := range signals {
		time.Sleep(signalPause)
		if err := r.client.SignalWorkflow(t.Context(), id, "", s.name, s.value); err != nil {
			t.Fatal(err)
		}
	}
	if p.open {
		time.Sleep(time.Second)
	} else if err := r.client.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil); (err != nil) != p.fails {
		t.Fatalf("it ended with the error %v", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for s, left := range r.left {
		if len(left) > 0 {
			t.Fatalf("%s was not asked for %d of its answers on %s", s.activity, len(left), s.queue)
		}
	}
	r.write(t, id, p.name)
}

// start starts the workflow of a path and returns its ID.
func (r *recorder) start(t *testing.T, p path) string {
	id := "record/" + p.name
	if p.scheduled {
		return r.startBySchedule(t, id, p)
	}
	options := client.StartWorkflowOptions{ID: id, TaskQueue: p.taskQueue()}
	var err error
	if p.atOnce {
		_, err = r.client.SignalWithStartWorkflow(t.Context(), id, p.signals[0].name, p.signals[0].value, options, p.workflow, p.args()...)
	} else {
		_, err = r.client.ExecuteWorkflow(t.Context(), options, p.workflow, p.args()...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// startBySchedule has a real Schedule start the workflow.
func (r *recorder) startBySchedule(t *testing.T, id string, p path) string {
	handle, err := r.client.ScheduleClient().Create(t.Context(), client.ScheduleOptions{ID: id, TriggerImmediately: true,
		Action: &client.ScheduleWorkflowAction{ID: id, Workflow: p.workflow, Args: p.args(), TaskQueue: p.taskQueue()}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = handle.Delete(context.WithoutCancel(t.Context())) }()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		have, err := handle.Describe(t.Context())
		if err != nil || time.Now().After(end) {
			t.Fatalf("it started nothing, error %v", err)
		}
		for _, action := range have.Info.RecentActions {
			return action.StartWorkflowResult.WorkflowID
		}
	}
}

// write keeps the history of a workflow in testdata.
func (r *recorder) write(t *testing.T, workflowID, name string) {
	var h history.History
	for events := r.client.GetWorkflowHistory(t.Context(), workflowID, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		event, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		h.Events = append(h.Events, event)
	}
	content, err := temporalproto.CustomJSONMarshalOptions{Indent: "  "}.Marshal(&h)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	// The machine's name is nobody's business.
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	content = []byte(strings.ReplaceAll(string(content), host, "recorder"))
	if err := os.WriteFile(historyFile(name), append(content, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
