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
	"go.temporal.io/sdk/temporal"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/devstack/devstacktest"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/starter"
	"github.com/todoku/todoku/store"
	"github.com/todoku/todoku/workflows"
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
	ledger         string
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
	return o.furnished()
}

// furnished gives an office what its schedules send.
func (o *office) furnished() *office {
	o.t.Helper()
	var err error
	if o.ledger, err = o.store.Identity(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
	o.template = o.createTemplate("Your appointment is today.")
	created, err := o.store.CreateListOf(o.t.Context(), "patients", func() (store.NewMember, bool, error) { return store.NewMember{}, false, nil })
	if err != nil {
		o.t.Fatal(err)
	}
	o.list = created.List.ID
	return o
}

// other is an office with a database of its own, and the same namespace of Temporal's.
func (o *office) other() *office {
	o.t.Helper()
	other := &office{t: o.t, databaseURL: devstacktest.Ledger(o.t)}
	db, err := pgx.Connect(o.t.Context(), other.databaseURL)
	if err != nil {
		o.t.Fatal(err)
	}
	defer db.Close(context.WithoutCancel(o.t.Context()))
	// Databases of tests are copies of one.
	if _, err := db.Exec(o.t.Context(), `UPDATE ledger_identity SET id = gen_random_uuid()`); err != nil {
		o.t.Fatal(err)
	}
	other.store, other.temporal = other.process()
	return other.furnished()
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
		want, err := activities.Wanted(row, o.ledger, time.Now())
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
		if live != (activities.LiveSchedule{Mark: want.Mark(), Paused: want.Paused, Note: want.Note}) {
			o.t.Errorf("Temporal has %s as %+v (%v), want %+v", want.ID, live, found, want)
		}
		calendar, _ := row.Timetable.Calendar()
		next := o.describe(row.ID).Info.NextActionTimes
		if want := calendar.Next(time.Now(), 1); len(next) == 0 || !next[0].Equal(want[0]) {
			o.t.Errorf("Temporal runs %s at %v, want %v", notify.ScheduleID(row.ID), next, want)
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
	have, err := o.temporal.Client().ScheduleClient().GetHandle(o.t.Context(), notify.ScheduleID(id)).Describe(o.t.Context())
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
	if err := schedules.GetHandle(t.Context(), notify.ScheduleID(a.ID)).Pause(t.Context(), client.SchedulePauseOptions{Note: "by hand"}); err != nil {
		t.Fatal(err)
	}
	if err := schedules.GetHandle(t.Context(), notify.ScheduleID(b.ID)).Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	want, err := activities.Wanted(a, o.ledger, time.Now())
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

// awaitListed waits until Temporal lists just these.
func (o *office) awaitListed(ids ...string) {
	o.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		all, err := o.temporal.Schedules(o.t.Context())
		if err != nil {
			o.t.Fatal(err)
		}
		if slices.Equal(slices.Sorted(maps.Keys(all)), ids) {
			return
		}
		if time.Now().After(end) {
			o.t.Fatalf("Temporal lists %v, want %v", all, ids)
		}
	}
}

func TestDatabasesInOneNamespaceLeaveEachOthersSchedulesAlone(t *testing.T) {
	mine := newOffice(t)
	mine.create("a", "10:30")
	if got := mine.all(); got != "create schedule/1" {
		t.Errorf("the first database: %s", got)
	}
	theirs := mine.other()
	theirs.create("a", "11:30")
	second := theirs.create("b", "11:30")
	if got := theirs.all(); got != "create schedule/1 failed, create schedule/2" {
		t.Errorf("the second database, whose schedule 1 has no place: %s", got)
	}
	shown, err := theirs.store.Schedule(t.Context(), 1)
	if err != nil || shown.SyncError == nil || !strings.Contains(*shown.SyncError, "another database (ledger "+mine.ledger+")") {
		t.Errorf("it shows %+v, error %v", shown, err)
	}
	mine.awaitListed("schedule/1", "schedule/2")
	if got := mine.all(); got != "" {
		t.Errorf("the first database, which has no schedule 2: %s", got)
	}
	for id, o := range map[int64]*office{1: mine, 2: theirs} {
		if comment := o.describe(id).Schedule.Spec.Calendars[0].Comment; !strings.HasPrefix(comment, o.ledger+"/") {
			t.Errorf("schedule %d is marked %s", id, comment)
		}
	}
	if err := theirs.store.DeleteSchedule(t.Context(), 1, shown.Revision); err != nil {
		t.Fatal(err)
	}
	if err := theirs.store.DeleteSchedule(t.Context(), second.ID, second.Revision); err != nil {
		t.Fatal(err)
	}
	if got := theirs.changed(); got != "delete schedule/2" {
		t.Errorf("the second database, which has none any more: %s", got)
	}
	mine.wantEqual()
}

// Versions before wrote the hash alone.
func TestASyncAdoptsAScheduleThatDoesNotSayWhoseItIs(t *testing.T) {
	o := newOffice(t)
	o.create("a", "10:30")
	o.all()
	for _, id := range []string{"schedule/1", "schedule/77"} {
		hash := temporal.NewSearchAttributes(workflows.ScheduleHashAttribute.ValueSet("0123456789abcdef0123456789abcdef"))
		spec := client.ScheduleSpec{Calendars: []client.ScheduleCalendarSpec{{Hour: []client.ScheduleRange{{Start: 10}}, Comment: "0123456789abcdef0123456789abcdef"}}}
		handle := o.temporal.Client().ScheduleClient().GetHandle(t.Context(), id)
		if err := handle.Delete(t.Context()); err != nil && id == "schedule/1" {
			t.Fatal(err)
		}
		if _, err := o.temporal.Client().ScheduleClient().Create(t.Context(), client.ScheduleOptions{ID: id, Spec: spec, TypedSearchAttributes: hash,
			Action: &client.ScheduleWorkflowAction{ID: id, Workflow: workflows.RunSchedule, Args: []any{workflows.RunScheduleInput{}}, TaskQueue: activities.ReminderQueue}}); err != nil {
			t.Fatal(err)
		}
	}
	o.awaitListed("schedule/1", "schedule/77")
	if got := o.all(); got != "update schedule/1" {
		t.Errorf("it did %q", got)
	}
	if comment := o.describe(1).Schedule.Spec.Calendars[0].Comment; !strings.HasPrefix(comment, o.ledger+"/") {
		t.Errorf("it is marked %s", comment)
	}
	if _, found, err := o.temporal.Schedule(t.Context(), "schedule/77"); err != nil || !found {
		t.Errorf("what may be another database's is gone: error %v", err)
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
