package store_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// daily is a schedule at 10:30 in Tokyo to these members of a list.
func daily(t testing.TB, s *store.Store, members ...store.NewMember) store.ScheduleTerms {
	t.Helper()
	created, err := s.CreateTemplate(t.Context(), uuid.NewString(), notify.SMS, store.TemplateText{Body: "{{name}}様", Params: []string{"name"}})
	if err != nil {
		t.Fatal(err)
	}
	return store.ScheduleTerms{Name: uuid.NewString(), Channel: notify.SMS, TemplateID: created.ID, ListID: createList(t, s, members...), Active: true,
		CatchupWindow: 10 * time.Minute, Timetable: notify.Timetable{ExecutionTime: "10:30:00", Timezone: "Asia/Tokyo"}}
}

func createSchedule(t testing.TB, s *store.Store, terms store.ScheduleTerms) store.Schedule {
	t.Helper()
	created, err := s.CreateSchedule(t.Context(), terms)
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// settings gives what a run takes from them.
func settings(t testing.TB, s *store.Store) func(notify.Channel) (store.RunTerms, error) {
	t.Helper()
	sender, err := s.EnsureSender(t.Context(), notify.SMS, "+15005550006")
	if err != nil {
		t.Fatal(err)
	}
	return func(notify.Channel) (store.RunTerms, error) {
		return store.RunTerms{SenderID: sender, ShardSize: 1, Allowed: []string{"JP"}}, nil
	}
}

// dueNow gives the schedule a time that was there a second ago.
func dueNow(terms store.ScheduleTerms) (store.ScheduleTerms, time.Time) {
	now := time.Now().Add(-time.Second).UTC().Truncate(time.Second)
	terms.Timetable = notify.Timetable{ExecutionTime: now.Format("15:04:05"), Timezone: "UTC"}
	return terms, now
}

func TestAScheduleReadsAsItWasWritten(t *testing.T) {
	s := openStore(t)
	terms := daily(t, s)
	terms.Timetable = notify.Timetable{ExecutionTime: "23:59:59", DaysOfWeek: []string{"MON"}, DaysOfMonth: []int{}, Timezone: "UTC", StartsOn: "2027-01-31", EndsOn: "2027-02-28"}
	terms.Note, terms.PauseNote, terms.Active, terms.CatchupWindow = new("note"), new("pause"), false, 90*time.Minute
	created := createSchedule(t, s, terms)
	if got, want := fmt.Sprintf("%+v", created.Timetable), fmt.Sprintf("%+v", terms.Timetable); got != want || created.CatchupWindow != 90*time.Minute || *created.PauseNote != "pause" {
		t.Errorf("it reads %+v", created)
	}
	terms = daily(t, s)
	terms.Timetable = notify.Timetable{Cron: "5 4 * * *", Timezone: "Asia/Tokyo"}
	if created := createSchedule(t, s, terms); created.Timetable.Cron != "5 4 * * *" || created.Timetable.ExecutionTime != "" {
		t.Errorf("it reads %+v", created)
	}
}

func TestAChangeByWhoHasNotReadTheLastOneIsRefused(t *testing.T) {
	s := openStore(t)
	first := createSchedule(t, s, daily(t, s))
	second, err := s.ChangeSchedule(t.Context(), first.ID, 1, first.ScheduleTerms)
	if err != nil || second.Revision != 2 {
		t.Fatalf("revision %d, error %v", second.Revision, err)
	}
	_, change := s.ChangeSchedule(t.Context(), first.ID, 1, first.ScheduleTerms)
	remove := s.DeleteSchedule(t.Context(), first.ID, 1)
	if !errors.Is(change, store.ErrStale) || !errors.Is(remove, store.ErrStale) {
		t.Errorf("the errors are %v and %v", change, remove)
	}
	other := createSchedule(t, s, daily(t, s))
	other.Name = first.Name
	if _, err := s.ChangeSchedule(t.Context(), other.ID, 1, other.ScheduleTerms); !errors.Is(err, store.ErrNameTaken) {
		t.Errorf("another's name: %v", err)
	}
	other.Name, other.ListID = "x", 99
	if _, err := s.ChangeSchedule(t.Context(), other.ID, 1, other.ScheduleTerms); !errors.Is(err, store.ErrReferenceGone) {
		t.Errorf("a list that is gone: %v", err)
	}
	if err := s.DeleteSchedule(t.Context(), first.ID, 2); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Schedule(t.Context(), first.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a deleted one: %v", err)
	}
	if err := s.DeleteSchedule(t.Context(), first.ID, 3); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("deleted again: %v", err)
	}
}

func TestWhatAScheduleUsesIsNotDeleted(t *testing.T) {
	s := openStore(t)
	made := createSchedule(t, s, daily(t, s))
	if err := s.DeleteList(t.Context(), made.ListID); !errors.Is(err, store.ErrInUse) {
		t.Errorf("its list: %v", err)
	}
	ofList, err := s.ListUsers(t.Context(), made.ListID)
	if err != nil || len(ofList) != 1 || ofList[0] != (store.User{ID: made.ID, Name: made.Name}) {
		t.Errorf("the list is used by %v, error %v", ofList, err)
	}
	if ofTemplate, err := s.TemplateUsers(t.Context(), made.TemplateID); err != nil || len(ofTemplate) != 1 {
		t.Errorf("the template is used by %v, error %v", ofTemplate, err)
	}
	if err := s.DeleteSchedule(t.Context(), made.ID, 1); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteList(t.Context(), made.ListID); err != nil {
		t.Errorf("once the schedule is deleted: %v", err)
	}
}

func TestARunSendsOnceHoweverOftenItIsFired(t *testing.T) {
	s, db := openLedger(t)
	terms, due := dueNow(daily(t, s, named(1, 1, "A"), named(2, 2, "B")))
	made := createSchedule(t, s, terms)
	var ran atomic.Int64
	var firing sync.WaitGroup
	for range 8 {
		firing.Go(func() {
			run, now, err := s.RunSchedule(t.Context(), made.ID, due, settings(t, s))
			if err != nil || run.BatchID == nil {
				t.Errorf("the run is %+v, error %v", run, err)
			}
			if now {
				ran.Add(1)
			}
		})
	}
	firing.Wait()
	if ran.Load() != 1 || count(t, db, `SELECT count(*) FROM batches`) != 1 || count(t, db, `SELECT count(*) FROM notifications WHERE status = 'ACCEPTED'`) != 2 {
		t.Errorf("it ran %d times", ran.Load())
	}
	runs, err := s.ScheduleRuns(t.Context(), 5, made.ID)
	if err != nil || len(runs[made.ID]) != 1 {
		t.Fatalf("the runs are %v, error %v", runs, err)
	}
	b, err := s.Batch(t.Context(), *runs[made.ID][0].BatchID)
	if err != nil || b.ScheduleID == nil || *b.ScheduleID != made.ID || *b.Name != made.Name || b.Accepted != 2 {
		t.Errorf("its batch is %+v, error %v", b, err)
	}
	sent, _, err := s.Notifications(t.Context(), store.Filter{ScheduleID: &made.ID}, nil, 10)
	if err != nil || len(sent) != 2 || *sent[0].ScheduleID != made.ID || sent[0].Params["name"] == "" {
		t.Errorf("its notifications are %+v, error %v", sent, err)
	}
}

func TestARunLeavesOutWhoseParametersAreBlank(t *testing.T) {
	s := openStore(t)
	terms, due := dueNow(daily(t, s, named(1, 1, "A"), named(2, 2, ""), member(3, 3, map[string]string{"name": "C", "memo": ""})))
	run, _, err := s.RunSchedule(t.Context(), createSchedule(t, s, terms).ID, due, settings(t, s))
	if err != nil || run.BatchID == nil {
		t.Fatalf("the run is %+v, error %v", run, err)
	}
	b := wantCounts(t, s, *run.BatchID, store.Counts{Accepted: 2})
	want := store.Rejected{Row: 2, Code: store.CodeParamMissing, Detail: "the parameters do not fit the template: fill in those that are blank: name"}
	if b.RejectedCount != 1 || b.Rejected[0] != want {
		t.Errorf("rejected are %+v, want %+v", b.Rejected, want)
	}
}

func count(t testing.TB, db *pgx.Conn, sql string, args ...any) (n int) {
	t.Helper()
	if err := db.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// archiveUnder archives a template although schedules send with it, as older versions could.
func archiveUnder(t *testing.T, db *pgx.Conn, template int64) {
	t.Helper()
	if _, err := db.Exec(t.Context(), `UPDATE templates SET archived_at = now() WHERE id = $1`, template); err != nil {
		t.Fatal(err)
	}
}

func TestARunIsSkippedWithTheReason(t *testing.T) {
	for want, arrange := range map[store.SkipReason]func(s *store.Store, terms *store.ScheduleTerms, due *time.Time){
		store.SkipTooLate:  func(_ *store.Store, _ *store.ScheduleTerms, due *time.Time) { *due = due.Add(-48 * time.Hour) },
		store.SkipInactive: func(_ *store.Store, terms *store.ScheduleTerms, _ *time.Time) { terms.Active = false },
		store.SkipOutsideDates: func(_ *store.Store, terms *store.ScheduleTerms, _ *time.Time) {
			terms.Timetable.EndsOn = "2020-01-01"
		},
		store.SkipListEmpty: func(s *store.Store, terms *store.ScheduleTerms, _ *time.Time) { terms.ListID = createList(t, s) },
		store.SkipMembersLack: func(s *store.Store, terms *store.ScheduleTerms, _ *time.Time) {
			terms.ListID = createList(t, s, member(1, 1, nil), named(2, 2, "\u3000"))
		},
		store.SkipNoSender:         nil,
		store.SkipTemplateArchived: func(*store.Store, *store.ScheduleTerms, *time.Time) {},
	} {
		t.Run(string(want), func(t *testing.T) {
			s, db := openLedger(t)
			terms, due := dueNow(daily(t, s, named(1, 1, "A")))
			from := settings(t, s)
			if arrange != nil {
				arrange(s, &terms, &due)
			} else {
				from = func(notify.Channel) (store.RunTerms, error) { return store.RunTerms{ShardSize: 1}, nil }
			}
			made := createSchedule(t, s, terms)
			if want == store.SkipTemplateArchived {
				archiveUnder(t, db, terms.TemplateID)
			}
			for first := range []bool{true, false} {
				run, ran, err := s.RunSchedule(t.Context(), made.ID, due, from)
				if err != nil || run.BatchID != nil || run.SkipReason == nil || *run.SkipReason != want || ran != (first == 0) {
					t.Errorf("the run is %+v (%v), error %v", run, ran, err)
				}
			}
			if n := count(t, db, `SELECT count(*) FROM notifications`) + count(t, db, `SELECT count(*) FROM batches`); n != 0 {
				t.Errorf("it left %d rows", n)
			}
		})
	}
}

func TestATimeThatIsNoneOfTheSchedulesLeavesNothing(t *testing.T) {
	s, db := openLedger(t)
	terms, due := dueNow(daily(t, s, named(1, 1, "A")))
	made := createSchedule(t, s, terms)
	if _, _, err := s.RunSchedule(t.Context(), made.ID, due.Add(-time.Minute), settings(t, s)); !errors.Is(err, store.ErrNotDue) {
		t.Errorf("another time: %v", err)
	}
	if _, _, err := s.RunSchedule(t.Context(), made.ID, due.AddDate(0, 0, 1), settings(t, s)); !isEarly(err) {
		t.Errorf("a time to come: %v", err)
	}
	if _, _, err := s.RunSchedule(t.Context(), 99, due, settings(t, s)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another schedule: %v", err)
	}
	if n := count(t, db, `SELECT count(*) FROM schedule_runs`); n != 0 {
		t.Errorf("%d runs are left", n)
	}
}

// The clocks showed 01:30 twice on 1 November 2020 in New York, and did not show 02:30 on 8 March.
func TestTimesAtWhichTheClocksChangeRunOnce(t *testing.T) {
	s := openStore(t)
	terms := daily(t, s, named(1, 1, "A"))
	terms.Timetable = notify.Timetable{Cron: "30 1,2 * * *", Timezone: "America/New_York"}
	made := createSchedule(t, s, terms)
	for _, fired := range []struct {
		at, want string
		ran      bool
	}{
		{"2020-11-01T06:30:00Z", "2020-11-01T05:30:00Z", true}, // at the second
		{"2020-11-01T05:30:00Z", "2020-11-01T05:30:00Z", false},
		{"2020-11-01T07:30:00Z", "2020-11-01T07:30:00Z", true},
		{"2020-03-08T07:00:00Z", "2020-03-08T07:00:00Z", true}, // 03:00
	} {
		at, err := time.Parse(time.RFC3339, fired.at)
		if err != nil {
			t.Fatal(err)
		}
		run, ran, err := s.RunSchedule(t.Context(), made.ID, at, settings(t, s))
		if err != nil || ran != fired.ran || run.ScheduledAt.UTC().Format(time.RFC3339) != fired.want || *run.SkipReason != store.SkipTooLate {
			t.Errorf("at %s: %+v (%v), error %v", fired.at, run, ran, err)
		}
	}
}

func TestARunByHandIsOneMoreUnlessItHasTheSameKey(t *testing.T) {
	s, db := openLedger(t)
	terms, due := dueNow(daily(t, s, named(1, 1, "A")))
	terms.Active = false
	made := createSchedule(t, s, terms)
	once := &store.Once{Key: "one", Request: sha256.Sum256([]byte("request"))}
	answer := func(run store.ScheduleRun) (store.Answer, error) {
		return store.Answer{Status: 202, Location: run.BatchID.String(), Body: []byte(`{}`)}, nil
	}
	first, replay, err := s.TriggerSchedule(t.Context(), made.ID, settings(t, s), once, answer)
	if err != nil || replay != nil || first.LocalTime != nil || first.BatchID == nil {
		t.Fatalf("the run is %+v, error %v", first, err)
	}
	if _, replay, err := s.TriggerSchedule(t.Context(), made.ID, settings(t, s), once, answer); err != nil || replay == nil || replay.Location != first.BatchID.String() {
		t.Errorf("again: %+v, error %v", replay, err)
	}
	if _, _, err := s.TriggerSchedule(t.Context(), made.ID, settings(t, s), nil, nil); err != nil {
		t.Error(err)
	}
	if n := count(t, db, `SELECT count(*) FROM batches`); n != 2 {
		t.Errorf("%d batches were made", n)
	}
	if _, err := s.ResumeSchedule(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	if run, ran, err := s.RunSchedule(t.Context(), made.ID, due, settings(t, s)); err != nil || !ran || run.BatchID == nil {
		t.Errorf("the run that is due is %+v, error %v", run, err)
	}
	archiveUnder(t, db, made.TemplateID)
	var skipped *store.RunSkippedError
	if _, _, err := s.TriggerSchedule(t.Context(), made.ID, settings(t, s), nil, nil); !errors.As(err, &skipped) || skipped.Reason != store.SkipTemplateArchived {
		t.Errorf("with an archived template: %v", err)
	}
}

func TestWhatWasMissedIsFoundOnce(t *testing.T) {
	s := openStore(t)
	made := createSchedule(t, s, daily(t, s, named(1, 1, "A")))
	utc := func(day, hour int) time.Time { return time.Date(2020, 3, day, hour, 30, 0, 0, time.UTC) }
	due := []time.Time{utc(1, 1), utc(2, 1), utc(3, 1)}
	tokyo, err := notify.LoadZone("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.RunSchedule(t.Context(), made.ID, due[1], settings(t, s)); err != nil { // which happened
		t.Fatal(err)
	}
	if missing, err := s.DueWithoutRun(t.Context(), made.ID, due, tokyo); err != nil || len(missing) != 2 || !missing[0].Equal(due[0]) || !missing[1].Equal(due[2]) {
		t.Errorf("without a run are %v, error %v", missing, err)
	}
	var mu sync.Mutex
	var found []time.Time
	var watchers sync.WaitGroup
	for range 4 {
		watchers.Go(func() {
			missed, err := s.WatchSchedule(t.Context(), made, due, tokyo, utc(4, 0))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			found = append(found, missed...)
		})
	}
	watchers.Wait()
	if len(found) != 2 {
		t.Errorf("missed are %v", found)
	}
}

func TestOnlyAChangeOfItsTimesEndsTheLookForRunsOfBefore(t *testing.T) {
	s := openStore(t)
	for name, change := range map[string]struct {
		of   func(*store.ScheduleTerms)
		ends bool
	}{
		"a note":         {func(terms *store.ScheduleTerms) { terms.Note = new("for the front desk") }, false},
		"a name":         {func(terms *store.ScheduleTerms) { terms.Name += " and more" }, false},
		"nothing":        {func(*store.ScheduleTerms) {}, false},
		"another time":   {func(terms *store.ScheduleTerms) { terms.Timetable.ExecutionTime = "11:00:00" }, true},
		"another zone":   {func(terms *store.ScheduleTerms) { terms.Timetable.Timezone = "UTC" }, true},
		"a last day":     {func(terms *store.ScheduleTerms) { terms.Timetable.EndsOn = "2099-01-01" }, true},
		"switched off":   {func(terms *store.ScheduleTerms) { terms.Active = false }, true},
		"days of months": {func(terms *store.ScheduleTerms) { terms.Timetable.DaysOfMonth = []int{1} }, true},
	} {
		terms := daily(t, s, named(1, 1, "A"))
		terms.Name = name
		made := createSchedule(t, s, terms)
		change.of(&made.ScheduleTerms)
		changed, err := s.ChangeSchedule(t.Context(), made.ID, made.Revision, made.ScheduleTerms)
		if err != nil {
			t.Fatal(name, err)
		}
		if ends := changed.WatchedUntil.After(made.WatchedUntil); ends != change.ends {
			t.Errorf("%s ends it: %v", name, ends)
		}
	}
}

func TestTheSyncIsDoneByOneAtATime(t *testing.T) {
	s, db := openLedger(t)
	held, unlock, err := s.LockScheduleSync(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan func())
	go func() {
		_, unlock, err := s.LockScheduleSync(t.Context())
		if err != nil {
			t.Error(err)
		}
		second <- unlock
	}()
	for end := time.Now().Add(20 * time.Second); count(t, db, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`) == 0; time.Sleep(5 * time.Millisecond) {
		select {
		case <-second:
			t.Fatal("two have the lock")
		default:
		}
		if time.Now().After(end) {
			t.Fatal("nobody waits for the lock")
		}
	}
	unlock()
	if held.Err() == nil {
		t.Error("what is no longer held goes on")
	}
	(<-second)()
}

func TestWhoLosesTheLockOfTheSyncIsToldSo(t *testing.T) {
	s, db := openLedger(t)
	held, unlock, err := s.LockScheduleSync(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := db.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`); err != nil {
		t.Fatal(err)
	}
	<-held.Done()
	_, again, err := s.LockScheduleSync(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func isEarly(err error) bool {
	early, ok := errors.AsType[*store.NotYetDueError](err)
	return ok && early.In > 0
}

func TestARunOfAScheduleThatCannotBeReadEndsWithAReason(t *testing.T) {
	for name, change := range map[string]string{
		"zone": `UPDATE schedules SET timezone = 'Asia/Nowhere'`,
		"days": `UPDATE schedules SET days_of_week = '{NODAY}'`,
	} {
		t.Run(name, func(t *testing.T) {
			s, db := openLedger(t)
			of, due := dueNow(daily(t, s, named(1, 1, "A")))
			schedule := createSchedule(t, s, of)
			execute(t, db, change)
			run, ran, err := s.RunSchedule(t.Context(), schedule.ID, due, settings(t, s))
			if err != nil || !ran || run.SkipReason == nil || *run.SkipReason != store.SkipInvalid {
				t.Fatalf("run %+v, ran %v, error %v: want it skipped as schedule_invalid", run, ran, err)
			}
			if _, ran, err = s.RunSchedule(t.Context(), schedule.ID, due, settings(t, s)); ran || err != nil {
				t.Errorf("again: ran %v, error %v", ran, err)
			}
		})
	}
}

func TestAScheduleThatMovesToAnotherZoneRunsAtTheSameLocalTimeThere(t *testing.T) {
	s := openStore(t)
	of, due := dueNow(daily(t, s, named(1, 1, "A")))
	schedule := createSchedule(t, s, of)
	if run, ran, err := s.RunSchedule(t.Context(), schedule.ID, due, settings(t, s)); err != nil || !ran || run.BatchID == nil {
		t.Fatalf("run %+v, ran %v, error %v", run, ran, err)
	}
	of.Timetable.Timezone = "Africa/Abidjan" // its clocks show what those of UTC show
	moved, err := s.ChangeSchedule(t.Context(), schedule.ID, schedule.Revision, of)
	if err != nil {
		t.Fatal(err)
	}
	if run, ran, err := s.RunSchedule(t.Context(), moved.ID, due, settings(t, s)); err != nil || !ran || run.BatchID == nil {
		t.Errorf("after the move: run %+v, ran %v, error %v", run, ran, err)
	}
}
