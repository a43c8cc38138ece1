package worker_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.temporal.io/sdk/client"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
	"github.com/todoku/todoku/worker"
)

// reminder makes a schedule that sends to two people.
func (h *house) reminder(timetable notify.Timetable) store.Schedule {
	h.t.Helper()
	ctx := h.t.Context()
	template, err := h.store.CreateTemplate(ctx, "reminder", notify.SMS, store.TemplateText{Body: "Your appointment is today.", Params: []string{}})
	if err != nil {
		h.t.Fatal(err)
	}
	members := []store.NewMember{{Key: []byte("a"), ToHash: []byte("a"), TailHash: []byte("t")}, {Key: []byte("b"), ToHash: []byte("b"), TailHash: []byte("t")}}
	for i, number := range []string{"+12025550143", "+12025550144"} {
		members[i].To = notify.PhoneNumber{E164: number, National: number, Region: "US", Kind: notify.Mobile}
	}
	list, err := h.store.CreateListOf(ctx, "patients", func() (m store.NewMember, ok bool, err error) {
		if len(members) == 0 {
			return m, false, nil
		}
		m, members = members[0], members[1:]
		return m, true, nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	s, err := h.store.CreateSchedule(ctx, store.ScheduleTerms{Name: "reminder", Channel: notify.SMS, Timetable: timetable,
		TemplateID: template.ID, ListID: list.List.ID, Active: true, CatchupWindow: time.Minute})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		_ = h.starter.DeleteSchedule(context.Background(), notify.ScheduleID(s.ID)) // the tests share Temporal
	})
	return s
}

// in is a timetable for a moment from now, to the second.
func in(d time.Duration) notify.Timetable {
	at := time.Now().Add(d).UTC()
	return notify.Timetable{ExecutionTime: at.Format("15:04:05"), Timezone: "UTC"}
}

// awaitRun waits for the schedule's first run.
func (h *house) awaitRun(id int64) store.ScheduleRun {
	h.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		runs, err := h.store.ScheduleRuns(h.t.Context(), 5, id)
		if err != nil {
			h.t.Fatal(err)
		}
		if len(runs[id]) > 0 {
			return runs[id][0]
		}
	}
	h.t.Fatal("it did not run")
	return store.ScheduleRun{}
}

// awaitSync waits until Temporal has the schedule as it is.
func (h *house) awaitSync(id int64) {
	h.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		s, err := h.store.Schedule(h.t.Context(), id)
		if err != nil {
			h.t.Fatal(err)
		}
		if s.SyncedRevision == s.Revision {
			return
		}
	}
	h.t.Fatal("it was not synced")
}

func TestAScheduleThatNobodyToldOfIsSyncedAndRuns(t *testing.T) {
	h := newHouse(t)
	s := h.reminder(in(8 * time.Second))
	h.awaitSync(s.ID)
	run := h.awaitRun(s.ID)
	if run.BatchID == nil || run.LocalTime == nil || run.LocalTime.Format("15:04:05") != s.Timetable.ExecutionTime {
		t.Fatalf("the run is %+v", run)
	}
	b := h.awaitBatch(*run.BatchID, "everything is sent", finished)
	if b.Success != 2 || b.ScheduleID == nil || *b.ScheduleID != s.ID {
		t.Errorf("the batch is %+v", b)
	}
	// Fired again for the same time, it does nothing.
	handle := h.starter.Client().ScheduleClient().GetHandle(t.Context(), notify.ScheduleID(s.ID))
	if err := handle.Backfill(t.Context(), client.ScheduleBackfillOptions{Backfill: []client.ScheduleBackfill{
		{Start: run.ScheduledAt.Add(-time.Second), End: run.ScheduledAt.Add(time.Second)}}}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		have, err := handle.Describe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if have.Info.NumActions >= 2 && len(have.Info.RunningWorkflows) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("Temporal did not fire again: %+v", have.Info)
		}
	}
	if n := h.creates(); n != 2 {
		t.Errorf("%d messages were sent", n)
	}
}

func TestAnEditMovesTheNextRun(t *testing.T) {
	h := newHouse(t)
	s := h.reminder(in(time.Hour))
	h.awaitSync(s.ID)
	s.Timetable = in(8 * time.Second)
	changed, err := h.store.ChangeSchedule(t.Context(), s.ID, s.Revision, s.ScheduleTerms)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.starter.SyncSchedules(t.Context(), false); err != nil { // as the API does
		t.Fatal(err)
	}
	if run := h.awaitRun(s.ID); run.BatchID == nil || run.LocalTime.Format("15:04:05") != changed.Timetable.ExecutionTime {
		t.Errorf("the run is %+v", run)
	}
}

func TestARunThatDidNotHappenIsFound(t *testing.T) {
	h := newHouse(t)
	h.stop()
	s := h.reminder(notify.Timetable{Cron: "* * * * *", Timezone: "Asia/Tokyo"})
	now := time.Now()
	if _, err := h.store.WatchSchedule(t.Context(), s, nil, time.UTC, now.Add(-5*time.Minute)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := make(lines, 100)
	for range 2 { // two workers
		watcher := worker.Schedules{Store: h.store, Starter: h.starter, Log: slog.New(slog.NewTextHandler(log, nil))}
		go watcher.Run(ctx)
	}
	run := h.awaitRun(s.ID)
	if run.SkipReason == nil || *run.SkipReason != store.SkipMissed || run.ScheduledAt.After(now.Add(-time.Minute)) {
		t.Errorf("the run is %+v", run)
	}
	runs, err := h.store.ScheduleRuns(t.Context(), 10, s.ID)
	if err != nil || len(runs[s.ID]) < 3 || len(runs[s.ID]) > 4 {
		t.Errorf("%d runs are missed, error %v", len(runs[s.ID]), err)
	}
	for range runs[s.ID] {
		if line := <-log; !strings.Contains(line, "level=ERROR") || !strings.Contains(line, "did not run when it was due") || !strings.Contains(line, "schedule_id=1") {
			t.Errorf("the log says %s", line)
		}
	}
}

// databaseAt opens the ledger with a clock of the database that is off by so much.
func databaseAt(t *testing.T, url string, offset time.Duration) *store.Store {
	t.Helper()
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.Background())
	if _, err := db.Exec(t.Context(), fmt.Sprintf(`
		CREATE SCHEMA shifted;
		CREATE FUNCTION shifted.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS
			$$ SELECT pg_catalog.clock_timestamp() + interval '%f seconds' $$`, offset.Seconds())); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), url+"&search_path=shifted,pg_catalog,public")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestAWorkerWhoseClockIsAheadWritesNoMissedRunInAdvance(t *testing.T) {
	h := newHouse(t)
	h.stop()
	s := h.reminder(notify.Timetable{Cron: "* * * * *", Timezone: "Asia/Tokyo"})
	const behind = 10 * time.Minute
	ledger := databaseAt(t, h.databaseURL, -behind)
	now := time.Now()
	if _, err := ledger.WatchSchedule(t.Context(), s, nil, time.UTC, now.Add(-behind-5*time.Minute)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watcher := worker.Schedules{Store: ledger, Starter: h.starter, Log: slog.New(slog.DiscardHandler)}
	go watcher.Run(ctx)
	h.awaitRun(s.ID)
	runs, err := h.store.ScheduleRuns(t.Context(), 100, s.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range runs[s.ID] {
		if run.ScheduledAt.After(now.Add(-behind)) {
			t.Errorf("the run of %v is written as %s, and by the database's clock it is %v", run.ScheduledAt, *run.SkipReason, now.Add(-behind))
		}
	}
}

// lines is a log that is read line by line.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}
