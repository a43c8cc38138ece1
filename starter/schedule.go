package starter

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/workflows"
)

// SyncSchedules has Temporal's Schedules made what the table says: all of them, or those that were
// changed. It does not wait. One workflow does it for all who ask.
func (s *Starter) SyncSchedules(ctx context.Context, all bool) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	_, err := s.client.SignalWithStartWorkflow(ctx, notify.ScheduleSyncWorkflowID, workflows.SyncSignal, all, client.StartWorkflowOptions{
		TaskQueue:     activities.SyncQueue,
		StaticSummary: "makes Temporal's Schedules what the table says",
		Priority:      temporal.Priority{PriorityKey: singlePriority},
	}, workflows.SyncSchedules, workflows.SyncInput{})
	if err != nil {
		return fmt.Errorf("ask for a sync of schedules: %w", err)
	}
	return nil
}

// schedulePage is how many Schedules one call lists.
const schedulePage = 500

// Schedules lists those of Todoku's, by id, also those of other ledgers.
func (s *Starter) Schedules(ctx context.Context) (map[string]activities.LiveSchedule, error) {
	all, err := s.client.ScheduleClient().List(ctx, client.ScheduleListOptions{PageSize: schedulePage})
	if err != nil {
		return nil, scheduleError("list schedules", err)
	}
	found := map[string]activities.LiveSchedule{}
	for all.HasNext() {
		entry, err := all.Next()
		if err != nil {
			return nil, scheduleError("list schedules", err)
		}
		live := activities.LiveSchedule{Mark: markOf(entry.SearchAttributes), Paused: entry.Paused, Note: entry.Note}
		if live.Mark != "" && strings.HasPrefix(entry.ID, notify.SchedulePrefix) {
			found[entry.ID] = live
		}
	}
	return found, nil
}

// Schedule finds one.
func (s *Starter) Schedule(ctx context.Context, id string) (live activities.LiveSchedule, found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	have, err := s.client.ScheduleClient().GetHandle(ctx, id).Describe(ctx)
	if isGone(err) {
		return live, false, nil
	}
	if err != nil {
		return live, false, scheduleError("describe the schedule "+id, err)
	}
	if spec := have.Schedule.Spec; spec != nil && len(spec.Calendars) > 0 {
		live.Mark = spec.Calendars[0].Comment
	}
	if state := have.Schedule.State; state != nil {
		live.Paused, live.Note = state.Paused, state.Note
	}
	return live, true, nil
}

// CreateSchedule adds one that there is not.
func (s *Starter) CreateSchedule(ctx context.Context, want activities.TemporalSchedule) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	policies := schedulePolicies(want)
	_, err := s.client.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID: want.ID, Spec: *scheduleSpec(want), Action: scheduleAction(want),
		Overlap: policies.Overlap, CatchupWindow: policies.CatchupWindow,
		Paused: want.Paused, Note: want.Note, TypedSearchAttributes: *markAttributes(want),
	})
	if err != nil {
		return scheduleError("create the schedule "+want.ID, err)
	}
	return nil
}

// UpdateSchedule makes another one of one that there is, in one call: a Schedule is never seen with its
// new times and still running when it should be paused.
func (s *Starter) UpdateSchedule(ctx context.Context, want activities.TemporalSchedule) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	err := s.client.ScheduleClient().GetHandle(ctx, want.ID).Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			return &client.ScheduleUpdate{
				Schedule: &client.Schedule{
					Spec: scheduleSpec(want), Action: scheduleAction(want), Policy: schedulePolicies(want),
					State: &client.ScheduleState{Paused: want.Paused, Note: want.Note},
				},
				TypedSearchAttributes: markAttributes(want),
			}, nil
		}})
	if err != nil {
		return scheduleError("update the schedule "+want.ID, err)
	}
	return nil
}

// DeleteSchedule deletes one. One that is gone is success.
func (s *Starter) DeleteSchedule(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	err := s.client.ScheduleClient().GetHandle(ctx, id).Delete(ctx)
	if err != nil && !isGone(err) {
		return scheduleError("delete the schedule "+id, err)
	}
	return nil
}

// MakeUpRuns starts the runs of one that were due from the first moment to the last, both included.
func (s *Starter) MakeUpRuns(ctx context.Context, id string, first, last time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	err := s.client.ScheduleClient().GetHandle(ctx, id).Backfill(ctx, client.ScheduleBackfillOptions{Backfill: []client.ScheduleBackfill{{
		Start: first.Add(-time.Second), // servers differ in whether they include it
		End:   last, Overlap: enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL,
	}}})
	if err != nil {
		return scheduleError("make up for runs of the schedule "+id, err)
	}
	return nil
}

// ScheduleURL is the page of a Schedule in Temporal's Web UI, or empty when no UI is configured.
func (s *Starter) ScheduleURL(id string) string {
	if s.uiURL == "" {
		return ""
	}
	return fmt.Sprintf("%s/namespaces/%s/schedules/%s", s.uiURL, url.PathEscape(s.namespace), url.PathEscape(id))
}

// markOf is empty where there is none.
func markOf(attributes *common.SearchAttributes) (mark string) {
	payload := attributes.GetIndexedFields()[workflows.ScheduleHashAttribute.GetName()]
	if converter.GetDefaultDataConverter().FromPayload(payload, &mark) != nil {
		return "" // it is not Todoku's
	}
	return mark
}

func isGone(err error) bool {
	_, gone := errors.AsType[*serviceerror.NotFound](err)
	return gone
}

// scheduleError tells what Temporal says of one Schedule from what it says to everybody just now.
func scheduleError(doing string, err error) error {
	if Away(err) {
		return fmt.Errorf("%s: %w: %w", doing, activities.ErrTemporalAway, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func scheduleSpec(want activities.TemporalSchedule) *client.ScheduleSpec {
	spec := &client.ScheduleSpec{TimeZoneName: want.Timezone, StartAt: want.From}
	if !want.Until.IsZero() {
		spec.EndAt = want.Until.Add(-time.Second) // to Temporal it is the last moment
	}
	for _, rule := range want.Rules {
		spec.Calendars = append(spec.Calendars, calendarSpec(rule))
	}
	// The mark is in the search attribute too, for the list. That one is a moment old, also where one
	// Schedule is described; its spec never is.
	spec.Calendars[0].Comment = want.Mark()
	for _, at := range want.Exceptions {
		offset := time.Duration(at.Unix()) * time.Second % onceInOurTime
		spec.Intervals = append(spec.Intervals, client.ScheduleIntervalSpec{Every: onceInOurTime, Offset: offset})
	}
	return spec
}

// onceInOurTime makes of an interval one moment in a lifetime: Temporal counts intervals from 1970, in
// UTC, and finds the first one only from its offset on.
const onceInOurTime = 50 * 365 * 24 * time.Hour

func calendarSpec(rule notify.CalendarRule) client.ScheduleCalendarSpec {
	return client.ScheduleCalendarSpec{
		Second: ranges(rule.Seconds), Minute: ranges(rule.Minutes), Hour: ranges(rule.Hours), DayOfMonth: ranges(rule.MonthDays),
		Month: ranges(rule.Months), DayOfWeek: ranges(rule.Weekdays),
	}
}

// ranges makes as few ranges of numbers, which are in order, as there are runs of neighbours.
func ranges(numbers []int) (all []client.ScheduleRange) {
	for i, n := range numbers {
		if i > 0 && numbers[i-1] == n-1 {
			all[len(all)-1].End = n
			continue
		}
		all = append(all, client.ScheduleRange{Start: n, End: n, Step: 1})
	}
	return all
}

// runLimit is how much longer than its catch-up window a run may last: a worker takes it late, and a
// list may have a million members.
const runLimit = 15 * time.Minute

func scheduleAction(want activities.TemporalSchedule) *client.ScheduleWorkflowAction {
	return &client.ScheduleWorkflowAction{
		ID:                       want.ID, // Temporal adds the time
		Workflow:                 workflows.RunSchedule,
		Args:                     []any{workflows.RunScheduleInput{ScheduleID: want.ScheduleID}},
		TaskQueue:                activities.ReminderQueue,
		WorkflowExecutionTimeout: want.CatchupWindow + runLimit,
		StaticSummary:            "a run of a schedule",
	}
}

// schedulePolicies let runs overlap: each looks at the ledger, so none is doubled, and one that waits
// for a worker must not make Temporal drop those after it without a word.
func schedulePolicies(want activities.TemporalSchedule) *client.SchedulePolicies {
	return &client.SchedulePolicies{Overlap: enums.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL, CatchupWindow: want.CatchupWindow}
}

func markAttributes(want activities.TemporalSchedule) *temporal.SearchAttributes {
	attributes := temporal.NewSearchAttributes(workflows.ScheduleHashAttribute.ValueSet(want.Mark()))
	return &attributes
}
