package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/store"
	"github.com/todoku/todoku/taskrouter"
)

// TaskRouterQueue is the task queue on which TaskRouter is set up.
const TaskRouterQueue = "taskrouter"

// The actions of a run.
const (
	TaskRouterPlan    = "plan"
	TaskRouterApply   = "apply"
	TaskRouterDestroy = "destroy"
)

// taskRouterTries is how often what Twilio did not do is tried before a run gives up.
const taskRouterTries = 5

// taskRouterLease is how long a try may write to Twilio since it last held on to its run: one that slept for longer,
// while Temporal has begun another, writes nothing any more.
const taskRouterLease = 15 * time.Second

// errRunHeld says that another try holds the run: one whose worker was lost, or one that took it over from us.
var errRunHeld = errors.New("the run is held by another try, whose time is not over yet")

// CarryOutTaskRouter carries out the run of TaskRouter whose turn it is, and reports whether there was one. It may be
// done again at any moment: it looks at what is there, does what is missing, and knows what it has made. Of two tries at
// the same time one waits.
func (a *Activities) CarryOutTaskRouter(ctx context.Context) (more bool, err error) {
	run, err := a.Store.NextTaskRouterRun(ctx)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	defer heartbeat(ctx)()
	s := &setup{Activities: a, twilio: a.Carrier.TaskRouter(), run: run, try: uuid.New()}
	for err = s.hold(ctx); errors.Is(err, errRunHeld); err = s.hold(ctx) {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(time.Second):
		}
	}
	if err == nil {
		defer s.release(ctx)
		err = s.carryOut(ctx)
	}
	refused, fromTwilio := errors.AsType[*carrier.Error](err)
	forNow := fromTwilio && (refused.Class == carrier.SafeToRetry || refused.Class == carrier.Ambiguous)
	switch {
	case ctx.Err() != nil, errors.Is(err, errRunHeld), !fromTwilio && store.IsOutage(err):
		return false, err
	case forNow && s.done > 0: // it comes forward: the tries are counted anew
		a.Log.Warn("a run of TaskRouter goes on in a new try", "run_id", run.ID, "error", refused)
		return true, nil
	case forNow && activity.GetInfo(ctx).Attempt < taskRouterTries:
		return false, refused // without the names and numbers around it, which are not for Temporal
	}
	problem := ""
	switch {
	case err == nil:
		a.Log.Info("a run of TaskRouter is finished", "run_id", run.ID, "action", run.Action, "changes", s.done+len(s.planned))
	case fromTwilio:
		problem = err.Error()
		a.Log.Warn("a run of TaskRouter came to an end early", "run_id", run.ID, "action", run.Action, "error", refused)
	default: // what is wrong with a file is for its author: it may have numbers in it
		problem = err.Error()
		a.Log.Warn("a run of TaskRouter came to an end early: the run says why", "run_id", run.ID, "action", run.Action)
	}
	return true, a.Store.FinishTaskRouterRun(ctx, run.ID, s.planned, s.notes, problem)
}

// setup is one run.
type setup struct {
	*Activities
	twilio carrier.TaskRouter
	run    store.TaskRouterRun
	try    uuid.UUID

	exist []taskrouter.Object      // at Twilio
	made  []store.TaskRouterObject // by us
	in    map[string]string        // the workspace of what is in one, by SID

	planned []taskrouter.Change
	done    int // changes that were made
	notes   []string
}

// hold is called before each write.
func (s *setup) hold(ctx context.Context) error {
	until := time.Now().Add(taskRouterLease) // before the database counts from its own moment
	held, err := s.Store.HoldTaskRouterRun(ctx, s.run.ID, s.try, taskRouterLease)
	switch {
	case err != nil:
		return err
	case !held:
		return errRunHeld
	}
	s.twilio = s.twilio.Until(until)
	return nil
}

// release spares the next try the wait.
func (s *setup) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := s.Store.ReleaseTaskRouterRun(ctx, s.run.ID, s.try); err != nil {
		s.Log.Warn("the next try of a run of TaskRouter has to wait", "run_id", s.run.ID, "error", err)
	}
}

func (s *setup) carryOut(ctx context.Context) (err error) {
	if s.made, err = s.Store.TaskRouterObjects(ctx); err != nil {
		return err
	}
	if s.run.Action == TaskRouterDestroy {
		return s.destroy(ctx)
	}
	file, err := taskrouter.Parse(s.run.FileName, []byte(s.run.File))
	if err != nil {
		return err
	}
	wanted, err := file.Objects(s.Terms.TaskRouterURLs)
	if err != nil {
		return err
	}
	if err := s.survey(ctx, file); err != nil {
		return err
	}
	if s.run.Action == TaskRouterApply {
		if err := s.recognise(ctx); err != nil {
			return err
		}
	}
	changes, err := taskrouter.Plan(s.run.FileName, wanted, s.exist, s.makings())
	if err != nil {
		return err
	}
	if err := s.validate(ctx, changes); err != nil {
		return err
	}
	have, err := s.Store.InboundPolicy(ctx)
	if err != nil {
		return err
	}
	policy, policyChanges := taskrouter.PlanPolicy(have, file.Policy(s.exist))
	if s.run.Action == TaskRouterPlan {
		if s.planned = changes; policyChanges {
			s.planned = append(s.planned, policy)
		}
		return nil
	}
	for _, change := range changes {
		if err := s.do(ctx, file.Workspace, change); err != nil {
			return err
		}
	}
	if err := s.Store.SaveInboundPolicy(ctx, file.Policy(s.exist)); err != nil || !policyChanges {
		return err
	}
	return s.note(ctx, policy)
}

// validate has Twilio look at flows before anything is made. A flow that names what is made in the same run is looked at
// when it is made.
func (s *setup) validate(ctx context.Context, changes []taskrouter.Change) error {
	for _, change := range changes {
		flow := change.Object
		if flow.Kind != taskrouter.Flows || flow.Fields["Definition"] == "" || change.Action == taskrouter.Delete || taskrouter.Refers(flow) {
			continue
		}
		if err := s.twilio.Validate(ctx, flow); err != nil {
			return fmt.Errorf("%s %q: %w", change.Kind, change.Name, err)
		}
	}
	return nil
}

// survey lists what exists at Twilio: the workspaces of the file's name and all that is in them, the flows, and the number.
func (s *setup) survey(ctx context.Context, file *taskrouter.File) error {
	all, err := s.list(ctx, taskrouter.Workspaces, "")
	if err != nil {
		return err
	}
	s.exist, s.in = nil, map[string]string{}
	for _, ws := range all {
		if ws.Name != file.Workspace {
			continue
		}
		if err := s.surveyWorkspace(ctx, ws); err != nil {
			return err
		}
	}
	flows, err := s.list(ctx, taskrouter.Flows, "", file.FlowNames()...)
	if err != nil {
		return err
	}
	s.exist = append(s.exist, flows...)
	if file.Calls.Number == "" {
		return nil
	}
	numbers, err := s.list(ctx, taskrouter.Numbers, "", file.Calls.Number)
	s.exist = append(s.exist, numbers...)
	return err
}

func (s *setup) surveyWorkspace(ctx context.Context, ws taskrouter.Object) error {
	s.exist = append(s.exist, ws)
	for _, kind := range []taskrouter.Kind{taskrouter.Activities, taskrouter.Queues, taskrouter.Workers, taskrouter.Workflows} {
		inside, err := s.list(ctx, kind, ws.SID)
		if err != nil {
			return err
		}
		for _, o := range inside {
			s.in[o.SID] = ws.SID
		}
		s.exist = append(s.exist, inside...)
	}
	return nil
}

func (s *setup) list(ctx context.Context, kind taskrouter.Kind, workspaceSID string, names ...string) ([]taskrouter.Object, error) {
	return s.twilio.List(ctx, kind, workspaceSID, names...)
}

// recognise completes the notes about objects whose making was cut short: each was made if exactly one of its name is
// there that nobody has a note about, else it never was.
func (s *setup) recognise(ctx context.Context) error {
	var known []store.TaskRouterObject
	for _, m := range s.made {
		if m.SID != "" {
			known = append(known, m)
			continue
		}
		var found []taskrouter.Object
		for _, o := range s.exist {
			ours := slices.ContainsFunc(s.made, func(m store.TaskRouterObject) bool { return m.SID == o.SID })
			if o.Kind == m.Kind && o.Name == m.Name && s.in[o.SID] == m.WorkspaceSID && !ours {
				found = append(found, o)
			}
		}
		if len(found) != 1 {
			if len(found) == 0 && s.seen(m.WorkspaceSID) {
				if err := s.Store.ForgetTaskRouterObject(ctx, m.ID); err != nil {
					return err
				}
			}
			continue
		}
		if err := s.Store.TaskRouterObjectMade(ctx, m.ID, found[0].SID); err != nil {
			return err
		}
		m.SID = found[0].SID
		known = append(known, m)
	}
	s.made = known
	return nil
}

// seen reports whether the survey has covered a workspace.
func (s *setup) seen(workspaceSID string) bool {
	return workspaceSID == "" || slices.ContainsFunc(s.exist, func(o taskrouter.Object) bool { return o.SID == workspaceSID })
}

// makings are what we made, as far as it is known.
func (s *setup) makings() []taskrouter.Made {
	var made []taskrouter.Made
	for _, m := range s.made {
		if m.SID != "" && m.Kind != taskrouter.Numbers {
			made = append(made, m.Made)
		}
	}
	return made
}

// do makes one change, so that it is known of whatever happens next.
func (s *setup) do(ctx context.Context, workspace string, change taskrouter.Change) error {
	o := change.Object
	err := s.hold(ctx)
	if err != nil {
		return err
	}
	if change.Action != taskrouter.Delete {
		if o.Fields, err = taskrouter.Resolve(o.Fields, s.exist); err != nil {
			return err
		}
	}
	switch change.Action {
	case taskrouter.Create:
		err = s.create(ctx, s.workspaceFor(o.Kind, workspace), o)
	case taskrouter.Delete:
		err = s.delete(ctx, s.in[o.SID], o)
	default:
		err = s.update(ctx, cmp.Or(s.in[o.SID], s.workspaceFor(o.Kind, workspace)), o)
	}
	if err != nil {
		where := ""
		if o.Line > 0 {
			where = fmt.Sprintf("%s:%d: ", s.run.FileName, o.Line)
		}
		return fmt.Errorf("%s%s %q: %w", where, change.Kind, change.Name, err)
	}
	return s.note(ctx, change)
}

// note writes down what was done.
func (s *setup) note(ctx context.Context, change taskrouter.Change) error {
	s.done++
	return s.Store.AddTaskRouterChange(ctx, s.run.ID, change)
}

// workspaceFor is the SID of the workspace that a kind of object is in, empty for those that are in none.
func (s *setup) workspaceFor(kind taskrouter.Kind, name string) string {
	switch kind {
	case taskrouter.Workspaces, taskrouter.Flows, taskrouter.Numbers:
		return ""
	}
	for _, o := range s.exist {
		if o.Kind == taskrouter.Workspaces && o.Name == name {
			return o.SID
		}
	}
	return ""
}

func (s *setup) create(ctx context.Context, workspaceSID string, o taskrouter.Object) error {
	note, err := s.Store.IntendTaskRouterObject(ctx, o.Kind, o.Name, workspaceSID)
	if err != nil {
		return err
	}
	made, err := s.twilio.Create(ctx, workspaceSID, o)
	if err != nil {
		// Where it was not made for certain, the note goes too; else the next run finds out.
		if class := carrier.ClassOf(err); class != "" && class != carrier.Ambiguous {
			err = errors.Join(err, s.Store.ForgetTaskRouterObject(ctx, note))
		}
		return err
	}
	if err := s.Store.TaskRouterObjectMade(ctx, note, made.SID); err != nil {
		return err
	}
	s.in[made.SID] = workspaceSID
	if o.Kind == taskrouter.Workspaces { // it has activities from the first
		return s.surveyWorkspace(ctx, made)
	}
	s.exist = append(s.exist, made)
	return nil
}

func (s *setup) update(ctx context.Context, workspaceSID string, o taskrouter.Object) error {
	if o.Kind == taskrouter.Numbers {
		i := slices.IndexFunc(s.exist, func(e taskrouter.Object) bool { return e.SID == o.SID })
		before := map[string]string{}
		for field := range o.Fields {
			before[field] = s.exist[i].Fields[field]
		}
		if err := s.Store.NoteNumber(ctx, o.Name, o.SID, before, o.Fields); err != nil {
			return err
		}
	}
	return s.twilio.Update(ctx, workspaceSID, o)
}

func (s *setup) delete(ctx context.Context, workspaceSID string, o taskrouter.Object) error {
	if o.Kind == taskrouter.Workers { // an available one cannot be deleted
		for _, off := range s.exist {
			if off.Kind == taskrouter.Activities && s.in[off.SID] == workspaceSID && off.Fields["Available"] == "false" {
				goes := taskrouter.Object{Kind: o.Kind, Name: o.Name, SID: o.SID, Fields: map[string]string{"ActivitySid": off.SID}}
				if err := errors.Join(s.twilio.Update(ctx, workspaceSID, goes), s.hold(ctx)); err != nil {
					return err
				}
				break
			}
		}
	}
	if err := s.twilio.Delete(ctx, workspaceSID, o); err != nil {
		return err
	}
	for _, m := range s.made {
		if m.SID == o.SID {
			return s.Store.ForgetTaskRouterObject(ctx, m.ID)
		}
	}
	return nil
}

// destroy takes away what we made, gives numbers back what they had, and has calls hear that nobody is there.
func (s *setup) destroy(ctx context.Context) error {
	if err := s.surveyMade(ctx); err != nil {
		return err
	}
	if err := s.recognise(ctx); err != nil {
		return err
	}
	if err := s.Store.ForgetInboundPolicy(ctx); err != nil {
		return err
	}
	for _, m := range s.made {
		if m.Kind == taskrouter.Numbers {
			if err := s.restore(ctx, m); err != nil {
				return err
			}
		}
	}
	changes, notes := taskrouter.Unplan(s.exist, s.makings())
	s.notes = append(s.notes, notes...)
	for _, change := range changes {
		if err := s.do(ctx, "", change); err != nil {
			return err
		}
	}
	// What somebody else has deleted needs no note any more.
	for _, m := range s.made {
		if m.Kind != taskrouter.Numbers && !slices.ContainsFunc(s.exist, func(o taskrouter.Object) bool { return o.SID == m.SID }) {
			if err := s.Store.ForgetTaskRouterObject(ctx, m.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// surveyMade lists what exists in the workspaces in which we made something, with the flows and numbers.
func (s *setup) surveyMade(ctx context.Context) error {
	s.in = map[string]string{}
	workspaces, err := s.list(ctx, taskrouter.Workspaces, "")
	if err != nil {
		return err
	}
	for _, ws := range workspaces {
		if slices.ContainsFunc(s.made, func(m store.TaskRouterObject) bool {
			return m.SID == ws.SID || m.WorkspaceSID == ws.SID || m.SID == "" && m.Kind == taskrouter.Workspaces && m.Name == ws.Name
		}) {
			if err := s.surveyWorkspace(ctx, ws); err != nil {
				return err
			}
		}
	}
	flows, err := s.list(ctx, taskrouter.Flows, "")
	s.exist = append(s.exist, flows...)
	return err
}

// restore gives a number back the fields that still are as we made them.
func (s *setup) restore(ctx context.Context, m store.TaskRouterObject) error {
	numbers, err := s.list(ctx, taskrouter.Numbers, "", m.Name)
	if err != nil {
		return err
	}
	for _, have := range numbers {
		if have.SID != m.SID {
			continue
		}
		back := maps.Clone(m.Before)
		maps.DeleteFunc(back, func(field, _ string) bool { return have.Fields[field] != m.After[field] })
		if len(back) == 0 {
			continue
		}
		change := taskrouter.Change{Action: taskrouter.Restore, Kind: m.Kind, Name: m.Name}
		for _, field := range slices.Sorted(maps.Keys(back)) {
			change.Fields = append(change.Fields, taskrouter.FieldChange{Field: field, From: have.Fields[field], To: back[field]})
		}
		if err := s.hold(ctx); err != nil {
			return err
		}
		if err := s.twilio.Update(ctx, "", taskrouter.Object{Kind: m.Kind, Name: m.Name, SID: m.SID, Fields: back}); err != nil {
			return fmt.Errorf("%s %s: %w", m.Kind, m.Name, err)
		}
		if err := s.note(ctx, change); err != nil {
			return err
		}
	}
	return s.Store.ForgetTaskRouterObject(ctx, m.ID)
}
