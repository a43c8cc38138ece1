package activities_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/sdk/client"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/devstack/devstacktest"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/starter"
	"github.com/todoku/todoku/store"
)

// counted is Temporal, and counts what is written to it.
type counted struct {
	*starter.Starter
	writes atomic.Int64
}

func (c *counted) CreateSchedule(ctx context.Context, want activities.TemporalSchedule) error {
	c.writes.Add(1)
	return c.Starter.CreateSchedule(ctx, want)
}

func (c *counted) UpdateSchedule(ctx context.Context, want activities.TemporalSchedule) error {
	c.writes.Add(1)
	return c.Starter.UpdateSchedule(ctx, want)
}

func (c *counted) DeleteSchedule(ctx context.Context, id string) error {
	c.writes.Add(1)
	return c.Starter.DeleteSchedule(ctx, id)
}

// office is where people decide of schedules: a real database, and a real Temporal without any of the
// tests before.
type office struct {
	t              testing.TB
	databaseURL    string
	store          *store.Store
	temporal       *counted
	template, list int64
}

func newOffice(t testing.TB) *office {
	t.Helper()
	o := &office{t: t, databaseURL: devstacktest.Ledger(t)}
	t.Setenv("TEMPORAL_ADDRESS", devstacktest.Temporal(t))
	o.store, o.temporal = o.process()
	if err := o.temporal.EnsureSearchAttributes(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.clear()
	t.Cleanup(o.clear)
	o.template = o.createTemplate("Your appointment is today.")
	created, err := o.store.CreateListOf(t.Context(), "patients", func() (store.NewMember, bool, error) { return store.NewMember{}, false, nil })
	if err != nil {
		t.Fatal(err)
	}
	o.list = created.List.ID
	return o
}

// process opens what a process of ours has: connections of its own.
func (o *office) process() (*store.Store, *counted) {
	o.t.Helper()
	s, err := store.Open(o.t.Context(), o.databaseURL)
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(s.Close)
	temporal, err := starter.Dial("", slog.New(slog.DiscardHandler))
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(temporal.Close)
	return s, &counted{Starter: temporal}
}

func (o *office) createTemplate(body string) int64 {
	o.t.Helper()
	parsed, err := notify.ParseTemplate(body)
	if err != nil {
		o.t.Fatal(err)
	}
	created, err := o.store.CreateTemplate(o.t.Context(), body, notify.SMS, store.TemplateText{Body: body, Params: append([]string{}, parsed.Params()...)})
	if err != nil {
		o.t.Fatal(err)
	}
	return created.ID
}

// clear deletes every Schedule of ours from Temporal.
func (o *office) clear() {
	ctx := context.Background()
	dialed, err := starter.Dial("", slog.New(slog.DiscardHandler))
	if err != nil {
		o.t.Fatal(err)
	}
	defer dialed.Close()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		all, err := dialed.Schedules(ctx)
		if err != nil {
			o.t.Fatal(err)
		}
		if len(all) == 0 {
			return
		}
		for id := range all {
			if err := dialed.DeleteSchedule(ctx, id); err != nil {
				o.t.Fatal(err)
			}
		}
		if time.Now().After(end) {
			o.t.Fatalf("%d Schedules are left", len(all))
		}
	}
}

func (o *office) terms(name, at string) store.ScheduleTerms {
	return store.ScheduleTerms{Name: name, Channel: notify.SMS, TemplateID: o.template, ListID: o.list, Active: true, CatchupWindow: 10 * time.Minute,
		Timetable: notify.Timetable{ExecutionTime: at, Timezone: "Asia/Tokyo"}}
}

func (o *office) create(name, at string) store.Schedule {
	o.t.Helper()
	created, err := o.store.CreateSchedule(o.t.Context(), o.terms(name, at))
	if err != nil {
		o.t.Fatal(err)
	}
	return created
}

// change gives a schedule another time.
func (o *office) change(s store.Schedule, at string) store.Schedule {
	o.t.Helper()
	s.Timetable.ExecutionTime = at
	changed, err := o.store.ChangeSchedule(o.t.Context(), s.ID, s.Revision, s.ScheduleTerms)
	if err != nil {
		o.t.Fatal(err)
	}
	return changed
}

func (o *office) syncer() *activities.ScheduleSync {
	return &activities.ScheduleSync{Store: o.store, Temporal: o.temporal, Log: slog.New(slog.DiscardHandler)}
}

// all syncs everything and returns what was done, as "create schedule/1, update schedule/2".
func (o *office) all() string {
	o.t.Helper()
	done, err := o.syncer().All(o.t.Context())
	if err != nil {
		o.t.Fatal(err)
	}
	return words(done)
}

func (o *office) changed() string {
	o.t.Helper()
	done, err := o.syncer().Changed(o.t.Context())
	if err != nil {
		o.t.Fatal(err)
	}
	return words(done)
}

func words(done activities.Synced) string {
	var all []string
	for _, c := range done.Changes {
		text := string(c.Action) + " " + c.ID
		if c.Error != "" {
			text += " failed"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// wantEqual holds Temporal's Schedules against the table.
func (o *office) wantEqual() {
	o.t.Helper()
	rows, err := o.store.Schedules(o.t.Context(), 0, 1000)
	if err != nil {
		o.t.Fatal(err)
	}
	var wanted []string
	for _, row := range rows {
		want, err := activities.Wanted(row, time.Now())
		if err != nil {
			o.t.Fatal(err)
		}
		if want == nil {
			continue
		}
		wanted = append(wanted, want.ID)
		live, found, err := o.temporal.Schedule(o.t.Context(), want.ID)
		if err != nil {
			o.t.Fatal(err)
		}
		if live != (activities.LiveSchedule{Hash: want.Hash(), Paused: want.Paused, Note: want.Note}) {
			o.t.Errorf("Temporal has %s as %+v (%v), want %+v", want.ID, live, found, want)
		}
		calendar, _ := row.Timetable.Calendar()
		next := o.describe(row.ID).Info.NextActionTimes
		if want := calendar.Next(time.Now(), 1); len(next) == 0 || !next[0].Equal(want[0]) {
			o.t.Errorf("Temporal runs %s at %v, want %v", store.ScheduleID(row.ID), next, want)
		}
		if row.SyncedRevision != row.Revision || row.SyncError != nil || row.SyncedAt == nil {
			o.t.Errorf("schedule %d is not marked as synced: %+v", row.ID, row)
		}
	}
	slices.Sort(wanted)
	var listed []string
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) { // the list may be old
		all, err := o.temporal.Schedules(o.t.Context())
		if err != nil {
			o.t.Fatal(err)
		}
		if listed = slices.Sorted(maps.Keys(all)); slices.Equal(listed, wanted) {
			return
		}
	}
	o.t.Errorf("Temporal has %v, want %v", listed, wanted)
}

func (o *office) describe(id int64) *client.ScheduleDescription {
	o.t.Helper()
	have, err := o.temporal.Client().ScheduleClient().GetHandle(o.t.Context(), store.ScheduleID(id)).Describe(o.t.Context())
	if err != nil {
		o.t.Fatal(err)
	}
	return have
}

func TestASyncMakesTemporalWhatTheTableSays(t *testing.T) {
	o := newOffice(t)
	a, b := o.create("a", "10:30"), o.create("b", "10:30")
	paused := o.terms("c", "10:30")
	paused.Active, paused.PauseNote = false, new("ask 090-1234-5678")
	c, err := o.store.CreateSchedule(t.Context(), paused)
	if err != nil {
		t.Fatal(err)
	}
	over := o.terms("over", "10:30")
	over.Timetable.EndsOn = "2020-01-01"
	if _, err := o.store.CreateSchedule(t.Context(), over); err != nil {
		t.Fatal(err)
	}
	if got := o.all(); got != "create schedule/1, create schedule/2, create schedule/3" {
		t.Errorf("at first: %s", got)
	}
	o.wantEqual()
	if note := o.describe(c.ID).Schedule.State.Note; !strings.HasPrefix(note, "paused in Todoku: ask ") || strings.Contains(note, "1234") {
		t.Errorf("Temporal's note is %q", note)
	}

	writes := o.temporal.writes.Load()
	if got := o.all() + o.changed(); got != "" || o.temporal.writes.Load() != writes {
		t.Errorf("nothing was changed, and it did: %s", got)
	}

	a = o.change(a, "11:00")
	if err := o.store.DeleteSchedule(t.Context(), b.ID, b.Revision); err != nil {
		t.Fatal(err)
	}
	if _, err := o.store.ResumeSchedule(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	if got := o.changed(); got != "delete schedule/2, update schedule/1, update schedule/3" && got != "update schedule/1, delete schedule/2, update schedule/3" {
		t.Errorf("after changes: %s", got)
	}
	o.wantEqual()

	// What Temporal does not hold is no reason to write to it.
	a.Note = new("for the front desk")
	if _, err := o.store.ChangeSchedule(t.Context(), a.ID, a.Revision, a.ScheduleTerms); err != nil {
		t.Fatal(err)
	}
	writes = o.temporal.writes.Load()
	if got := o.changed(); got != "" || o.temporal.writes.Load() != writes {
		t.Errorf("a note makes it do: %s", got)
	}
	o.wantEqual()
}

func TestASyncMendsWhatSomebodyDidInTemporal(t *testing.T) {
	o := newOffice(t)
	a, b := o.create("a", "10:30"), o.create("b", "10:30")
	o.all()
	schedules := o.temporal.Client().ScheduleClient()
	if err := schedules.GetHandle(t.Context(), store.ScheduleID(a.ID)).Pause(t.Context(), client.SchedulePauseOptions{Note: "by hand"}); err != nil {
		t.Fatal(err)
	}
	if err := schedules.GetHandle(t.Context(), store.ScheduleID(b.ID)).Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	want, err := activities.Wanted(a, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	want.ID = "schedule/77" // which no row is for
	if err := o.temporal.CreateSchedule(t.Context(), *want); err != nil {
		t.Fatal(err)
	}
	if _, err := schedules.Create(t.Context(), client.ScheduleOptions{ID: "schedule/of-somebody-else",
		Spec: client.ScheduleSpec{CronExpressions: []string{"0 9 * * *"}}, Action: &client.ScheduleWorkflowAction{ID: "other", Workflow: "Other", TaskQueue: "other"}}); err != nil {
		t.Fatal(err)
	}
	other := schedules.GetHandle(t.Context(), "schedule/of-somebody-else")
	t.Cleanup(func() { _ = other.Delete(context.Background()) })
	done := map[string]bool{}
	for end := time.Now().Add(20 * time.Second); len(done) < 3 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) { // the list may be old
		for part := range strings.SplitSeq(o.all(), ", ") {
			if part != "" {
				done[part] = true
			}
		}
	}
	if got := slices.Sorted(maps.Keys(done)); !slices.Equal(got, []string{"create schedule/2", "delete schedule/77", "update schedule/1"}) {
		t.Errorf("it did %q", got)
	}
	o.wantEqual()
	if _, err := other.Describe(t.Context()); err != nil {
		t.Errorf("what is somebody else's: %v", err)
	}
}

func TestASyncThatIsOnlyTriedChangesNothing(t *testing.T) {
	o := newOffice(t)
	o.create("a", "10:30")
	try := o.syncer()
	try.DryRun = true
	done, err := try.All(t.Context())
	if err != nil || words(done) != "create schedule/1" {
		t.Errorf("it would %s, error %v", words(done), err)
	}
	if o.temporal.writes.Load() != 0 {
		t.Error("it has written to Temporal")
	}
	if got := o.all(); got != "create schedule/1" {
		t.Errorf("afterwards there is to do: %s", got)
	}
}

func TestAScheduleThatTemporalRefusesStopsNoOther(t *testing.T) {
	o := newOffice(t)
	bad, _ := o.create("bad", "10:30"), o.create("good", "10:30")
	db, err := pgx.Connect(t.Context(), o.databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.WithoutCancel(t.Context()))
	if _, err := db.Exec(t.Context(), `UPDATE schedules SET timezone = 'Mars/Olympus' WHERE id = $1`, bad.ID); err != nil {
		t.Fatal(err)
	}
	done, err := o.syncer().Changed(t.Context())
	if err != nil || done.Failed() != 1 || len(done.Changes) != 2 {
		t.Errorf("it did %s, error %v", words(done), err)
	}
	shown, err := o.store.Schedule(t.Context(), bad.ID)
	if err != nil || shown.SyncError == nil || !strings.Contains(*shown.SyncError, "timezone") {
		t.Errorf("the schedule shows %+v, error %v", shown, err)
	}
	if got := o.changed(); got != "" {
		t.Errorf("it is tried again at once: %s", got)
	}
	if _, err := db.Exec(t.Context(), `UPDATE schedules SET timezone = 'Asia/Tokyo' WHERE id = $1`, bad.ID); err != nil {
		t.Fatal(err)
	}
	if shown, err = o.store.PauseSchedule(t.Context(), bad.ID, nil); err != nil {
		t.Fatal(err)
	}
	if got := o.changed(); got != "create schedule/1" {
		t.Errorf("once it is mended: %s", got)
	}
	o.wantEqual()
}

func TestAChangeIsKeptWhileTemporalIsAway(t *testing.T) {
	o := newOffice(t)
	a := o.create("a", "10:30")
	o.all()
	t.Setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
	away, err := starter.Dial("", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer away.Close()
	t.Setenv("TEMPORAL_ADDRESS", devstacktest.Temporal(t))
	a = o.change(a, "11:00")
	cut := o.syncer()
	cut.Temporal = away
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := cut.Changed(ctx); !errors.Is(err, activities.ErrTemporalAway) {
		t.Errorf("the error is %v", err)
	}
	shown, err := o.store.Schedule(t.Context(), a.ID)
	if err != nil || shown.SyncedRevision == shown.Revision || shown.SyncError != nil {
		t.Errorf("an outage is put down to the schedule: %+v, error %v", shown, err)
	}
	if got := o.changed(); got != "update schedule/1" {
		t.Errorf("once it is back: %s", got)
	}
	o.wantEqual()
}

// A schedule is changed while Temporal is away, and would have run before it was back.
func TestWhatWasDueBeforeTemporalKnewOfAChangeIsMadeUpFor(t *testing.T) {
	o := newOffice(t)
	terms := o.terms("every minute", "")
	terms.Timetable.Cron, terms.CatchupWindow = "* * * * *", 3*time.Minute
	made, err := o.store.CreateSchedule(t.Context(), terms)
	if err != nil {
		t.Fatal(err)
	}
	db, err := pgx.Connect(t.Context(), o.databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context())
	var due time.Time // two minutes ago; what was due before the window, or before the change, is not made up for
	err = db.QueryRow(t.Context(), `
		UPDATE schedules SET watched_until = now() - interval '1 hour' WHERE id = $1
		RETURNING date_trunc('minute', now()) - interval '2 minutes'`, made.ID).Scan(&due)
	if err != nil {
		t.Fatal(err)
	}
	due = due.UTC()
	if got := o.changed(); got != "create schedule/1" {
		t.Errorf("once Temporal is back: %s", got)
	}
	started := map[time.Time]bool{}
	for end := time.Now().Add(20 * time.Second); !started[due] || !started[due.Add(time.Minute)] || !started[due.Add(2*time.Minute)]; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the runs %v are started, not those from %v on", started, due)
		}
		for _, run := range o.describe(made.ID).Info.RecentActions {
			started[run.ScheduleTime.UTC()] = true
			id := run.StartWorkflowResult.WorkflowID
			if err := o.temporal.Client().TerminateWorkflow(t.Context(), id, "", "the test is over"); err != nil {
				t.Logf("%s has ended: %v", id, err)
			}
		}
	}
	if started[due.Add(-2*time.Minute)] {
		t.Error("a run is made up for that is older than the catch-up window")
	}
}

// Three processes change and sync at the same time; in the end both sides are equal.
func TestConcurrentChangesAndSyncsLeaveBothSidesEqual(t *testing.T) {
	o := newOffice(t)
	for i := range 5 {
		o.create(fmt.Sprint("s", i), "10:30")
	}
	var processes sync.WaitGroup
	for p := range 3 {
		s, temporal := o.process()
		syncer := &activities.ScheduleSync{Store: s, Temporal: temporal, Log: slog.New(slog.DiscardHandler)}
		processes.Go(func() {
			for n := range 20 {
				id := int64(1 + (n+p)%5)
				if err := disturb(t.Context(), s, id, n); err != nil {
					t.Error(err)
				}
				sync := syncer.Changed
				if n%5 == 0 {
					sync = syncer.All
				}
				if _, err := sync(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	processes.Wait()
	o.wantEqual()
}

// disturb changes a schedule as several people may at once: whoever comes second is told so.
func disturb(ctx context.Context, s *store.Store, id int64, n int) error {
	row, err := s.Schedule(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	switch {
	case err != nil:
		return err
	case n == 17 && id == 3:
		err = s.DeleteSchedule(ctx, id, row.Revision)
	case n%4 == 3:
		_, err = s.PauseSchedule(ctx, id, new(fmt.Sprint("pause ", n)))
	case n%4 == 0:
		_, err = s.ResumeSchedule(ctx, id)
	default:
		row.Timetable.ExecutionTime = fmt.Sprintf("%02d:%02d", n, id)
		_, err = s.ChangeSchedule(ctx, id, row.Revision, row.ScheduleTerms)
	}
	if errors.Is(err, store.ErrStale) || errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// BenchmarkSyncOf500Schedules makes the Schedules from nothing, and looks at them once more.
func BenchmarkSyncOf500Schedules(b *testing.B) {
	const schedules = 500
	for b.Loop() {
		o := newOffice(b)
		for i := range schedules {
			o.create(fmt.Sprint("s", i), fmt.Sprintf("%02d:%02d", i/60, i%60))
		}
		began := time.Now()
		if done, err := o.syncer().All(b.Context()); err != nil || len(done.Changes) != schedules || done.Failed() > 0 {
			b.Fatalf("%d changes, error %v", len(done.Changes), err)
		}
		b.ReportMetric(time.Since(began).Seconds(), "s/from-nothing")
		writes := o.temporal.writes.Load()
		began = time.Now()
		if done, err := o.syncer().All(b.Context()); err != nil || done.Unchanged != schedules {
			b.Fatalf("%d are unchanged, error %v", done.Unchanged, err)
		}
		b.ReportMetric(time.Since(began).Seconds(), "s/unchanged")
		if o.temporal.writes.Load() != writes {
			b.Error("it has written to Temporal")
		}
	}
}
