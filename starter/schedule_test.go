package starter_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/starter"
	"github.com/todoku/todoku/store"
)

// wanted is what Temporal must have of a schedule with this timetable.
func wanted(t *testing.T, id int64, timetable notify.Timetable) activities.TemporalSchedule {
	t.Helper()
	want, err := activities.Wanted(store.Schedule{ID: id, ScheduleTerms: store.ScheduleTerms{
		Timetable: timetable, Active: true, CatchupWindow: 10 * time.Minute}}, "a-ledger", time.Now())
	if err != nil || want == nil {
		t.Fatalf("want %v, error %v", want, err)
	}
	return *want
}

func create(t *testing.T, s *starter.Starter, want activities.TemporalSchedule) *client.ScheduleDescription {
	t.Helper()
	if err := s.EnsureSearchAttributes(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.CreateSchedule(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.DeleteSchedule(context.Background(), want.ID) })
	return describe(t, s, want.ID)
}

func describe(t *testing.T, s *starter.Starter, id string) *client.ScheduleDescription {
	t.Helper()
	have, err := s.Client().ScheduleClient().GetHandle(t.Context(), id).Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return have
}

func rfc3339(times []time.Time, zone *time.Location) string {
	var all []string
	for _, at := range times {
		all = append(all, at.In(zone).Format(time.RFC3339))
	}
	return strings.Join(all, "\n")
}

// Temporal's own next times, around real changes of the clocks, are those that the schedule shows. On
// the day of a change it may fire at others too, at the second moment of a time that comes twice or, as
// on Lord Howe, at one that nobody asked for. The ledger takes none of those.
func TestTemporalRunsSchedulesWhenTheySay(t *testing.T) {
	s := dial(t)
	for i, timetable := range []notify.Timetable{
		{ExecutionTime: "10:30", Timezone: "Asia/Tokyo", StartsOn: "2027-03-27"},
		{ExecutionTime: "10:30:15", Timezone: "Asia/Tokyo", DaysOfWeek: []string{"MON", "SUN"}},
		{ExecutionTime: "09:00", Timezone: "Asia/Tokyo", DaysOfMonth: []int{1, 31}, EndsOn: "2027-02-01"},
		{Cron: "*/20 9-17 1,13 * fri", Timezone: "Asia/Tokyo"},
		{Cron: "15 8 29 2 *", Timezone: "UTC"},
		{ExecutionTime: "02:30", Timezone: "America/New_York", StartsOn: "2027-03-12"},
		{ExecutionTime: "01:30", Timezone: "America/New_York", StartsOn: "2027-11-05"},
		{Cron: "*/15 1-3 * * *", Timezone: "America/New_York", StartsOn: "2027-03-14"},
		{Cron: "*/30 1-2 * * *", Timezone: "America/New_York", StartsOn: "2027-11-07"},
		{ExecutionTime: "01:15", Timezone: "Europe/London", StartsOn: "2027-03-26"},
		{ExecutionTime: "01:15", Timezone: "Europe/London", StartsOn: "2027-10-29"},
		{ExecutionTime: "02:15", Timezone: "Australia/Lord_Howe", StartsOn: "2027-10-01"},
		{ExecutionTime: "01:45", Timezone: "Australia/Lord_Howe", StartsOn: "2027-04-02"},
		{ExecutionTime: "00:00", Timezone: "America/Santiago", StartsOn: "2027-09-03"},
		{ExecutionTime: "23:30", Timezone: "America/Santiago", StartsOn: "2027-04-02"},
		{ExecutionTime: "00:30", Timezone: "Asia/Beirut", StartsOn: "2027-03-26"},
		{ExecutionTime: "00:00", Timezone: "Africa/Cairo", StartsOn: "2027-04-29", EndsOn: "2027-04-30"},
		{ExecutionTime: "23:30", Timezone: "Africa/Cairo", StartsOn: "2027-10-27"},
	} {
		t.Run(timetable.String()+" from "+timetable.StartsOn, func(t *testing.T) {
			calendar, wrong := timetable.Calendar()
			if wrong != nil {
				t.Fatal(wrong[0])
			}
			have := create(t, s, wanted(t, int64(9000+i), timetable))
			var fired []time.Time
			for _, at := range have.Info.NextActionTimes {
				switch {
				case !calendar.Has(at):
					if !clocksChange(at.In(calendar.Zone())) {
						t.Errorf("Temporal fires at %v too", at.In(calendar.Zone()))
					}
				case len(fired) < 5:
					fired = append(fired, at)
				}
			}
			if got, want := rfc3339(fired, calendar.Zone()), rfc3339(calendar.Next(time.Now(), 5), calendar.Zone()); got != want {
				t.Errorf("Temporal says\n%s\nand the schedule says\n%s", got, want)
			}
		})
	}
}

// clocksChange reports whether they are changed on the day of the moment.
func clocksChange(at time.Time) bool {
	start, _ := at.ZoneBounds()
	return !start.IsZero() && at.Sub(start) < 24*time.Hour
}

func TestAScheduleIsChangedInOneCall(t *testing.T) {
	s := dial(t)
	want := wanted(t, 9100, notify.Timetable{ExecutionTime: "10:30", Timezone: "Asia/Tokyo"})
	made := create(t, s, want)
	action := made.Schedule.Action.(*client.ScheduleWorkflowAction)
	if action.ID != "schedule/9100" || action.Workflow != "RunSchedule" || action.TaskQueue != "reminder" ||
		made.Schedule.Policy.Overlap != enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL || made.Schedule.Policy.CatchupWindow != 10*time.Minute {
		t.Errorf("it was made as %+v with %+v", action, made.Schedule.Policy)
	}
	other := wanted(t, 9100, notify.Timetable{ExecutionTime: "11:00", Timezone: "Europe/London"})
	other.Paused, other.Note, other.CatchupWindow = true, "paused in Todoku: closed today", time.Hour
	if err := s.UpdateSchedule(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	have := describe(t, s, other.ID)
	at := have.Info.NextActionTimes[0].In(time.FixedZone("", 0))
	if at.Hour() != 11 && at.Hour() != 10 || at.Minute() != 0 || !have.Schedule.State.Paused || have.Schedule.State.Note != other.Note ||
		have.Schedule.Policy.CatchupWindow != time.Hour {
		t.Errorf("it is %+v at %v", have.Schedule.State, at)
	}
	live, found, err := s.Schedule(t.Context(), other.ID)
	if err != nil || !found || live != (activities.LiveSchedule{Mark: other.Mark(), Paused: true, Note: other.Note}) {
		t.Errorf("it is found as %+v (%v), error %v", live, found, err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		all, err := s.Schedules(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if all[other.ID] == live {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the list has %+v", all)
		}
	}
}

func TestAScheduleIsDeletedOnce(t *testing.T) {
	s := dial(t)
	want := wanted(t, 9101, notify.Timetable{ExecutionTime: "10:30", Timezone: "Asia/Tokyo"})
	create(t, s, want)
	for range 2 {
		if err := s.DeleteSchedule(t.Context(), want.ID); err != nil {
			t.Fatal(err)
		}
		if _, found, err := s.Schedule(t.Context(), want.ID); found || err != nil {
			t.Errorf("a deleted one is found: %v, error %v", found, err)
		}
	}
	if err := s.CreateSchedule(t.Context(), want); err != nil {
		t.Errorf("it cannot be made again: %v", err)
	}
}

// What Temporal says of one schedule does not sound as if it were away, and the other way round.
func TestARefusedScheduleIsToldFromAnOutage(t *testing.T) {
	s := dial(t)
	want := wanted(t, 9102, notify.Timetable{ExecutionTime: "10:30", Timezone: "Asia/Tokyo"})
	want.Timezone = "Mars/Olympus"
	if err := s.CreateSchedule(t.Context(), want); err == nil || errors.Is(err, activities.ErrTemporalAway) || !strings.Contains(err.Error(), "Mars/Olympus") {
		t.Errorf("an unknown zone: %v", err)
	}
	t.Setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
	away, err := starter.Dial("", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer away.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := away.CreateSchedule(ctx, want); !errors.Is(err, activities.ErrTemporalAway) {
		t.Errorf("an outage: %v", err)
	}
	if _, err := away.Schedules(ctx); !errors.Is(err, activities.ErrTemporalAway) {
		t.Errorf("an outage: %v", err)
	}
}

func TestAskingForASyncStartsOneWorkflow(t *testing.T) {
	s := dial(t)
	for range 3 {
		if err := s.SyncSchedules(t.Context(), true); err != nil {
			t.Fatal(err)
		}
	}
	run, err := s.Client().DescribeWorkflow(t.Context(), notify.ScheduleSyncWorkflowID, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Client().TerminateWorkflow(context.Background(), notify.ScheduleSyncWorkflowID, "", "the test is over")
	})
	if info := run.RawResponse.WorkflowExecutionInfo; info.Type.Name != "SyncSchedules" || run.RawResponse.ExecutionConfig.TaskQueue.Name != "sync" {
		t.Errorf("it started %+v", info)
	}
}
