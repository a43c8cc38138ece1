package workflows_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/devstack/devstacktest"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/workflows"
)

var record = flag.Bool("record", false, "record the histories in testdata anew, on a real Temporal, and not only replay them")

func TestMain(m *testing.M) { devstacktest.Main(m) }

// path is one way through the workflow: what its activities answer, and which signals it gets.
type path struct {
	name    string
	shard   bool
	adopts  bool
	answers map[string][]any // by activity: an activities.Next or an error
	signals []string         // sent one after the other, 2 s apart
	open    bool             // the workflow still waits when the history is taken
}

func later(a activities.Action) activities.Next {
	return activities.Next{Action: a, In: 500 * time.Millisecond}
}

var paths = []path{
	{name: "settled-by-webhook", answers: map[string][]any{"Send": {waiting}}, signals: []string{workflows.SettledSignal}},
	{name: "settled-before-the-answer", answers: map[string][]any{"Send": {done}}},
	{name: "settled-by-check", answers: map[string][]any{"Send": {later(activities.CheckStatus)}, "CheckStatus": {later(activities.CheckStatus), done}}},
	{name: "sent-after-retries", answers: map[string][]any{"Send": {
		temporal.NewApplicationErrorWithOptions("refused", "RetryLater", temporal.ApplicationErrorOptions{NextRetryDelay: 100 * time.Millisecond}), done}}},
	{name: "ambiguous-and-found", answers: map[string][]any{"Send": {later(activities.LookUp)}, "LookUp": {later(activities.CheckStatus)}, "CheckStatus": {done}}},
	{name: "ambiguous-and-sent-again", answers: map[string][]any{
		"Send": {later(activities.LookUp), done}, "LookUp": {later(activities.LookUp), later(activities.Send)}}},
	{name: "held-and-resumed", answers: map[string][]any{
		"Send": {activities.Next{Action: activities.Send, In: 5 * time.Minute}, done}}, signals: []string{workflows.WakeSignal}},
	{name: "refused", answers: map[string][]any{"Send": {activities.Next{Action: activities.Done, Status: notify.Failed}}}},
	{name: "not-in-the-ledger", answers: map[string][]any{"Send": {temporal.NewNonRetryableApplicationError("the ledger has no such notification", "NotFound", nil)}}},
	{name: "still-waiting", answers: map[string][]any{"Send": {waiting}}, open: true},
	{name: "shard-settled-by-webhook", shard: true, answers: map[string][]any{"Send": {later(activities.Send), waiting}}, signals: []string{workflows.SettledSignal}},
	{name: "adopting-shard-settled-by-webhook", shard: true, adopts: true, answers: map[string][]any{
		"Send": {waiting}, "CheckStatus": {activities.Next{Action: activities.Done}}}, signals: []string{workflows.SettledSignal}},
	{name: "shard-settled-by-check", shard: true, answers: map[string][]any{
		"Send": {later(activities.LookUp)}, "LookUp": {later(activities.CheckStatus)}, "CheckStatus": {activities.Next{Action: activities.Done}}}},
}

// TestRecordedHistoriesReplay holds the workflow code against histories of each path: a change that
// would break workflows that are under way fails here. After an intended change, run
// `go test ./workflows -record`.
func TestRecordedHistoriesReplay(t *testing.T) {
	if *record {
		recordHistories(t)
	}
	for _, p := range paths {
		t.Run(p.name, func(t *testing.T) {
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

func TestAHappySingleHasAtMost16Events(t *testing.T) {
	content, err := os.ReadFile(historyFile("settled-by-webhook"))
	if err != nil {
		t.Fatal(err)
	}
	var h struct{ Events []json.RawMessage }
	if err := json.Unmarshal(content, &h); err != nil {
		t.Fatal(err)
	}
	if n := len(h.Events); n == 0 || n > 16 {
		t.Errorf("the history has %d events", n)
	}
}

func replayer() worker.WorkflowReplayer {
	r := worker.NewWorkflowReplayer()
	r.RegisterWorkflow(workflows.Notification)
	r.RegisterWorkflow(workflows.Shard)
	r.RegisterWorkflow(workflows.Batch)
	r.RegisterWorkflow(workflows.Reconcile)
	r.RegisterWorkflow(workflows.InboundCall)
	r.RegisterWorkflow(workflows.TaskRouter)
	r.RegisterWorkflow(workflows.CarrierCheck)
	r.RegisterWorkflow(workflows.RunSchedule)
	r.RegisterWorkflow(workflows.SyncSchedules)
	return r
}

func historyFile(name string) string { return filepath.Join("testdata", name+".json") }

// script answers for the activities.
type script struct {
	mu      sync.Mutex
	answers map[string][]any // by workflow ID and activity
}

func (s *script) next(ctx context.Context, ref activities.Ref) (activities.Next, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := ref.WorkflowID + " " + activity.GetInfo(ctx).ActivityType.Name
	if len(s.answers[key]) == 0 {
		return activities.Next{}, fmt.Errorf("no answer is left for %s", key)
	}
	answer := s.answers[key][0]
	s.answers[key] = s.answers[key][1:]
	if err, ok := answer.(error); ok {
		return activities.Next{}, err
	}
	return answer.(activities.Next), nil
}

func recordHistories(t *testing.T) {
	c, err := client.Dial(client.Options{HostPort: devstacktest.Temporal(t), Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := &script{answers: map[string][]any{}}
	for _, queue := range []string{workflows.TaskQueue, activities.SendSMSQueue, activities.StatusCheckQueue} {
		w := worker.New(c, queue, worker.Options{})
		w.RegisterWorkflow(workflows.Notification)
		w.RegisterWorkflow(workflows.Shard)
		for _, name := range []string{"Send", "LookUp", "CheckStatus"} {
			w.RegisterActivityWithOptions(s.next, activity.RegisterOptions{Name: name})
		}
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
	}
	for _, p := range paths {
		recordHistory(t, c, s, p)
	}
}

func recordHistory(t *testing.T, c client.Client, s *script, p path) {
	id := uuid.MustParse("01890000-0000-7000-8000-000000000001")
	options := client.StartWorkflowOptions{ID: "record/" + p.name, TaskQueue: workflows.TaskQueue}
	s.mu.Lock()
	for name, answers := range p.answers {
		s.answers[options.ID+" "+name] = answers
	}
	s.mu.Unlock()
	var run client.WorkflowRun
	var err error
	if p.shard {
		in := workflows.ShardInput{Channel: notify.SMS}
		if p.adopts {
			in.Adopt = 1
		}
		run, err = c.ExecuteWorkflow(t.Context(), options, workflows.Shard, in)
	} else {
		run, err = c.ExecuteWorkflow(t.Context(), options, workflows.Notification, workflows.NotificationInput{ID: id, Channel: notify.SMS})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range p.signals {
		time.Sleep(2 * time.Second)
		if err := c.SignalWorkflow(t.Context(), options.ID, "", name, notify.Success); err != nil {
			t.Fatal(err)
		}
	}
	if p.open {
		time.Sleep(time.Second)
	} else {
		_ = run.Get(t.Context(), nil) // some paths end with an error
	}
	writeHistory(t, c, options.ID, p.name)
}

// writeHistory keeps the history of a workflow in testdata.
func writeHistory(t *testing.T, c client.Client, workflowID, name string) {
	var h history.History
	for events := c.GetWorkflowHistory(t.Context(), workflowID, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
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
