package v1

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

func (a *API) registerScheduleControl(to huma.API) {
	control := func(id, action, scope, summary, description string, errs ...int) huma.Operation {
		return operation(id, http.MethodPost, "/schedules/{id}/"+action, "Schedules", scope, summary, description, append(errs, http.StatusNotFound)...)
	}
	huma.Register(to, control("pause-schedule", "pause", ScopeManage, "Pause a schedule",
		"It does not run until it is resumed. What it has started goes on: pause the batch for that. Pausing again changes the note.",
		http.StatusBadRequest), a.pauseSchedule)
	huma.Register(to, control("resume-schedule", "resume", ScopeManage, "Let a paused schedule go on",
		"What was due in the meantime is not made up for. Resuming one that runs changes nothing.", http.StatusConflict), a.resumeSchedule)
	trigger := control("trigger-schedule", "trigger", ScopeSend, "Run a schedule now",
		"By hand, whether or not it is active or due. Every call sends once more, unless it has the Idempotency-Key of one before.",
		http.StatusBadRequest, http.StatusConflict)
	trigger.DefaultStatus = http.StatusAccepted
	huma.Register(to, trigger, a.triggerSchedule)
}

func (a *API) pauseSchedule(ctx context.Context, in *struct {
	ID   int64  `path:"id"`
	Note string `query:"note" doc:"Why, for people: at most 500 characters."`
}) (*scheduleOutput, error) {
	if !utf8.ValidString(in.Note) {
		return nil, notUTF8("note")
	}
	var wrong problem.Details
	checkNote(&wrong, "/note", &in.Note)
	if len(wrong) > 0 {
		return nil, problem.New(wrong[0].Code, wrong[0].Detail)
	}
	paused, err := a.Store.PauseSchedule(ctx, in.ID, known(in.Note))
	if err != nil {
		return nil, a.scheduleProblem(ctx, err)
	}
	a.syncSchedules()
	return a.scheduleAnswer(ctx, paused)
}

func (a *API) resumeSchedule(ctx context.Context, in *scheduleInput) (*scheduleOutput, error) {
	resumed, err := a.Store.ResumeSchedule(ctx, in.ID)
	if errors.Is(err, store.ErrArchived) { // every run would be skipped
		return nil, problem.New(problem.ScheduleCannotRun, cannotRun[store.SkipTemplateArchived])
	}
	if err != nil {
		return nil, a.scheduleProblem(ctx, err)
	}
	a.syncSchedules()
	return a.scheduleAnswer(ctx, resumed)
}

type triggerOutput struct {
	Location string `header:"Location" doc:"The batch."`
	Replayed string `header:"Idempotent-Replayed" doc:"true: this is the first answer once more."`
	Body     ScheduleRun
}

func (a *API) triggerSchedule(ctx context.Context, in *struct {
	IdempotencyKey
	ID int64 `path:"id"`
}) (*triggerOutput, error) {
	once, err := in.once(ctx, "POST "+schedulesPath+"/"+strconv.FormatInt(in.ID, 10)+"/trigger", nil)
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	s, err := a.Store.Schedule(ctx, in.ID)
	if err != nil {
		return nil, a.scheduleProblem(ctx, err)
	}
	zone, err := notify.LoadZone(s.Timetable.Timezone)
	if err != nil {
		zone = time.UTC
	}
	answer := func(run store.ScheduleRun) (store.Answer, error) {
		text, err := json.Marshal(showRun(run, zone))
		return store.Answer{Status: http.StatusAccepted, Location: batchesPath + "/" + run.BatchID.String(), Body: text}, err
	}
	run, first, err := a.Store.TriggerSchedule(ctx, in.ID, a.runTerms(ctx), once, answer)
	var skipped *store.RunSkippedError
	switch {
	case errors.As(err, &skipped):
		return nil, problem.New(problem.ScheduleCannotRun, cannotRun[skipped.Reason])
	case errors.Is(err, store.ErrKeyInUse), errors.Is(err, store.ErrKeyReused):
		return nil, a.keyProblem(ctx, err)
	case err != nil:
		return nil, a.scheduleProblem(ctx, err)
	case first != nil:
		out := &triggerOutput{Location: first.Location, Replayed: "true"}
		if err := json.Unmarshal(first.Body, &out.Body); err != nil {
			return nil, a.fail(ctx, fmt.Errorf("read the first answer: %w", err))
		}
		return out, nil
	}
	b, err := a.findBatch(ctx, *run.BatchID)
	if err != nil {
		return nil, err
	}
	batchesTotal.WithLabelValues(string(b.Channel)).Inc()
	acceptedTotal.WithLabelValues(string(b.Channel)).Add(float64(b.Total))
	a.startBatch(b)
	return &triggerOutput{Location: batchesPath + "/" + b.ID.String(), Body: showRun(run, zone)}, nil
}

// cannotRun says why a schedule sends nothing, and what to do about it.
var cannotRun = map[store.SkipReason]string{
	store.SkipTemplateArchived: "its template is archived: give it another one, or bring that one back",
	store.SkipListEmpty:        "its list is empty: add members",
	store.SkipNoRecipients:     "nothing can be sent to anybody on its list: see why with a batch in dry run, or fix the members",
	store.SkipMembersLack: "every member of its list lacks a value that its template needs: " +
		"give the members these values, or choose another template or list",
	store.SkipInvalid:  "its template or its list is not there, or of another channel: choose others",
	store.SkipNoSender: "its channel has no number to send from: set TWILIO_PHONE_NUMBER",
}

// runTerms finds what a run by hand takes from the settings.
func (a *API) runTerms(ctx context.Context) func(notify.Channel) (store.RunTerms, error) {
	return func(channel notify.Channel) (store.RunTerms, error) {
		terms := store.RunTerms{RequireHuman: channel == notify.Call && a.Settings.CallRequireHuman,
			ShardSize: a.Settings.BatchShard(channel), Allowed: a.Settings.AllowedCountries,
			AllowedKinds: a.Settings.AllowedNumberKinds}
		address := a.Settings.Sender(channel)
		if address == "" {
			return terms, nil
		}
		var err error
		terms.SenderID, err = a.senders.find(ctx, a.Store, channel, address)
		return terms, err
	}
}
