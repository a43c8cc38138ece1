package v1

import (
	"context"
	"errors"
	"fmt"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// ScheduleProblem is why the next run of a schedule will not send to everybody on its list.
type ScheduleProblem struct {
	Code   store.SkipReason `json:"code" example:"members_lack_params" doc:"schedule_invalid, template_archived, list_empty, no_sender or members_lack_params."`
	Detail string           `json:"detail" doc:"What is wrong, and what to do about it."`
}

// AffectedSchedule is a schedule that a change leaves with a problem.
type AffectedSchedule struct {
	ID      int64           `json:"id"`
	Name    string          `json:"name"`
	Problem ScheduleProblem `json:"problem"`
}

// outlooks gives what schedules would find if they ran now.
func (a *API) outlooks(ctx context.Context, schedules ...store.Schedule) (map[int64]store.ScheduleOutlook, error) {
	return a.Store.ScheduleOutlooks(ctx, mapped(schedules, func(s store.Schedule) int64 { return s.ID })...)
}

// problemOf says what is wrong with a schedule before it runs; nil: nothing.
func (a *API) problemOf(s store.Schedule, o store.ScheduleOutlook) *ScheduleProblem {
	_, wrong := s.Timetable.Calendar()
	switch {
	case len(wrong) > 0:
		return &ScheduleProblem{store.SkipInvalid, wrong[0].Field + ": " + wrong[0].Detail}
	case o.Broken:
		return cannotRunProblem(store.SkipInvalid)
	case o.TemplateArchived:
		return cannotRunProblem(store.SkipTemplateArchived)
	case o.Members == 0:
		return cannotRunProblem(store.SkipListEmpty)
	case a.Settings.Sender(s.Channel) == "":
		return cannotRunProblem(store.SkipNoSender)
	}
	return misfitsProblem(o)
}

func cannotRunProblem(reason store.SkipReason) *ScheduleProblem {
	return &ScheduleProblem{reason, cannotRun[reason]}
}

func misfitsProblem(o store.ScheduleOutlook) *ScheduleProblem {
	switch {
	case o.Misfits.Count == 0:
		return nil
	case o.Misfits.Count >= o.Members:
		return cannotRunProblem(store.SkipMembersLack)
	}
	return &ScheduleProblem{store.SkipMembersLack, o.Misfits.Error() + ". The schedule will leave them out: give them these values, or choose another template or list"}
}

// affected looks for schedules that a change of their template or their list leaves with members who lack a value.
// The change is made, so a failure to look is logged, and no more: the worker looks again.
func (a *API) affected(ctx context.Context, use store.ScheduleUse) []AffectedSchedule {
	ids, err := a.Store.LookForMisfits(ctx, use, mostAffected)
	var outlooks map[int64]store.ScheduleOutlook
	if err == nil {
		outlooks, err = a.Store.ScheduleOutlooks(ctx, ids...)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		a.Logger.WarnContext(ctx, "not looked for schedules that the change affects: left to the worker", "error", err)
	}
	var affected []AffectedSchedule
	for _, id := range ids {
		if found := misfitsProblem(outlooks[id]); found != nil {
			affected = append(affected, AffectedSchedule{id, outlooks[id].Name, *found})
		}
	}
	return affected
}

// affectedByMember looks for schedules that leave this member of a list out.
func (a *API) affectedByMember(ctx context.Context, list, member int64) []AffectedSchedule {
	found, err := a.Store.SchedulesWithoutMember(ctx, list, member)
	if err != nil && !errors.Is(err, context.Canceled) {
		a.Logger.WarnContext(ctx, "not looked for schedules that the change affects: left to the worker", "error", err)
	}
	return mapped(found, func(s store.ScheduleWithoutMember) AffectedSchedule {
		lacks := notify.ParamsError{Missing: s.Missing, Blank: s.Blank}
		return AffectedSchedule{s.ID, s.Name, ScheduleProblem{store.SkipMembersLack,
			fmt.Sprintf("the member does not fit the template: %s. The schedule will leave the member out: give these values", lacks.Error())}}
	})
}

// mostAffected bounds how many schedules one change looks at.
const mostAffected = 100
