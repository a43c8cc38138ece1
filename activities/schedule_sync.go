package activities

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/panics"
	"github.com/todoku/todoku/store"
)

// TemporalSchedule is what Temporal must have of a schedule.
type TemporalSchedule struct {
	ID            string
	Ledger        string // the identity of the database that it comes from
	ScheduleID    int64
	Timezone      string
	Rules         []notify.CalendarRule
	Exceptions    []time.Time // at which it runs too, where the clocks are changed
	From, Until   time.Time   // until exclusive; zero: no limit
	CatchupWindow time.Duration
	Paused        bool
	Note          string // why it is paused. Temporal does not encrypt it, so numbers in it are masked.
}

// temporalForm counts changes in how a TemporalSchedule is written to Temporal, so that a new version
// of ours writes each once more.
const temporalForm = 1

// Hash is the same for schedules that are the same in Temporal, and for no others.
func (t TemporalSchedule) Hash() string {
	text, err := json.Marshal(struct {
		Form int
		TemporalSchedule
	}{temporalForm, t})
	if err != nil {
		panic(fmt.Errorf("hash a schedule: %w", err)) // it has only texts, numbers and times
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Mark is what a Schedule carries in Temporal: whose it is, and its hash.
func (t TemporalSchedule) Mark() string { return t.Ledger + "/" + t.Hash() }

// LiveSchedule is what Temporal has.
type LiveSchedule struct {
	Mark   string // empty: it is not Todoku's; without a ledger: an older version made it
	Paused bool
	Note   string
}

func (l LiveSchedule) is(want TemporalSchedule) bool {
	return l == LiveSchedule{want.Mark(), want.Paused, want.Note}
}

// ledger is empty where nobody knows.
func (l LiveSchedule) ledger() string {
	ledger, _, marked := strings.Cut(l.Mark, "/")
	if !marked {
		return ""
	}
	return ledger
}

func (l LiveSchedule) isOfAnother(ledger string) bool {
	return l.ledger() != "" && l.ledger() != ledger
}

// TemporalSchedules are the Schedules that Temporal has. Each of its methods is one question.
type TemporalSchedules interface {
	// Schedules lists those of Todoku's, by id, also those of other ledgers. The list may be a moment old.
	Schedules(ctx context.Context) (map[string]LiveSchedule, error)
	// Schedule finds one.
	Schedule(ctx context.Context, id string) (live LiveSchedule, found bool, err error)
	// CreateSchedule adds one that there is not.
	CreateSchedule(ctx context.Context, want TemporalSchedule) error
	// UpdateSchedule makes another one of one that there is, in one call.
	UpdateSchedule(ctx context.Context, want TemporalSchedule) error
	// DeleteSchedule deletes one. One that is gone is success.
	DeleteSchedule(ctx context.Context, id string) error
	// MakeUpRuns starts the runs of one that were due from the first moment to the last, both included.
	MakeUpRuns(ctx context.Context, id string, first, last time.Time) error
}

// ErrTemporalAway means that Temporal did not answer, or takes no more for now: not one schedule is to
// blame.
var ErrTemporalAway = errors.New("no connection to Temporal")

// SyncAction is what a sync does with one Schedule of Temporal's.
type SyncAction string

// The actions of a sync.
const (
	SyncUnchanged SyncAction = "unchanged"
	SyncCreate    SyncAction = "create"
	SyncUpdate    SyncAction = "update"
	SyncDelete    SyncAction = "delete"
)

// SyncChange is one thing that a sync has done, or would do.
type SyncChange struct {
	ID     string     `json:"id"` // Temporal's
	Name   string     `json:"name,omitempty"`
	Action SyncAction `json:"action"`
	Reason string     `json:"reason"`
	Error  string     `json:"error,omitempty"` // why it was not done
}

// Synced says what a sync has done.
type Synced struct {
	Unchanged int
	Changes   []SyncChange // by id
}

// Failed counts the changes that could not be made.
func (s Synced) Failed() (n int) {
	for _, c := range s.Changes {
		if c.Error != "" {
			n++
		}
	}
	return n
}

// ScheduleSync makes Temporal's Schedules what the table says. Over all processes one runs at a time.
type ScheduleSync struct {
	Store    *store.Store
	Temporal TemporalSchedules
	Log      *slog.Logger
	DryRun   bool // say what would change, and change nothing
}

const (
	syncInFlight = 8

	// For so long Temporal is told of the runs that the clocks' changes move, and for so long behind, in
	// which a run may still be made up for. The clocks change a few times a year, so a schedule is
	// rarely written for that.
	exceptionsAhead  = 400 * 24 * time.Hour
	exceptionsBehind = 3 * 24 * time.Hour
)

// Changed syncs those schedules that were changed since they were synced.
func (s *ScheduleSync) Changed(ctx context.Context) (Synced, error) {
	return s.locked(ctx, func(ctx context.Context, ledger string) (Synced, error) {
		rows, err := s.Store.UnsyncedSchedules(ctx)
		if err != nil {
			return Synced{}, err
		}
		return s.rows(ctx, ledger, rows, nil)
	})
}

// All syncs every schedule, and deletes from Temporal those of this ledger that the table does not have.
// It asks Temporal once for all of them; one that is as it should be costs nothing more.
func (s *ScheduleSync) All(ctx context.Context) (Synced, error) {
	return s.locked(ctx, func(ctx context.Context, ledger string) (Synced, error) {
		live, err := s.Temporal.Schedules(ctx)
		if err != nil {
			return Synced{}, err
		}
		rows, err := s.allRows(ctx)
		if err != nil {
			return Synced{}, err
		}
		done, err := s.rows(ctx, ledger, rows, live)
		if err != nil {
			return done, err
		}
		orphans, err := s.orphans(ctx, ledger, rows, live)
		done.Changes = append(done.Changes, orphans...)
		return done, err
	})
}

func (s *ScheduleSync) locked(ctx context.Context, sync func(ctx context.Context, ledger string) (Synced, error)) (Synced, error) {
	ledger, err := s.Store.Identity(ctx)
	if err != nil {
		return Synced{}, err
	}
	held, unlock, err := s.Store.LockScheduleSync(ctx)
	if err != nil {
		return Synced{}, err
	}
	defer unlock()
	done, err := sync(held, ledger)
	if lost := context.Cause(held); lost != nil && ctx.Err() == nil {
		err = lost
	}
	slices.SortFunc(done.Changes, func(a, b SyncChange) int { return cmp.Compare(a.ID, b.ID) })
	return done, err
}

func (s *ScheduleSync) allRows(ctx context.Context) ([]store.Schedule, error) {
	const page = 1000
	rows, err := s.Store.UnsyncedSchedules(ctx) // deleted ones are only here
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(r store.Schedule) bool { return !r.Deleted })
	for after := int64(0); ; {
		some, err := s.Store.Schedules(ctx, after, page)
		if err != nil {
			return nil, err
		}
		rows = append(rows, some...)
		if len(some) < page {
			return rows, nil
		}
		after = some[page-1].ID
	}
}

// rows syncs schedules, several at a time. What Temporal says to one of them is noted there and does
// not stop the others; that Temporal is away does. live is what Temporal had a moment ago; nil: nobody
// has asked.
func (s *ScheduleSync) rows(ctx context.Context, ledger string, rows []store.Schedule, live map[string]LiveSchedule) (done Synced, err error) {
	var mu sync.Mutex
	g, ctx := panics.WithContext(ctx)
	g.SetLimit(syncInFlight)
	for _, row := range rows {
		g.Go(func() error {
			change, err := s.row(ctx, ledger, row, live)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if change.Action == SyncUnchanged {
				done.Unchanged++
			} else {
				done.Changes = append(done.Changes, change)
			}
			return nil
		})
	}
	return done, g.Wait()
}

// row syncs one schedule.
func (s *ScheduleSync) row(ctx context.Context, ledger string, row store.Schedule, live map[string]LiveSchedule) (SyncChange, error) {
	want, err := Wanted(row, ledger, s.Store.Now(ctx))
	have, listed := live[notify.ScheduleID(row.ID)]
	asWanted := want == nil && !listed || want != nil && listed && have.is(*want)
	if err == nil && live != nil && asWanted && row.SyncedRevision == row.Revision {
		return SyncChange{Action: SyncUnchanged}, s.synced(ctx, row)
	}
	// The list may be older than what was last written, and the row may be old by now.
	if row, err = s.Store.ScheduleToSync(ctx, row.ID); err != nil {
		return SyncChange{}, err
	}
	change := SyncChange{ID: notify.ScheduleID(row.ID), Name: row.Name, Action: SyncUpdate, Reason: "it was changed"}
	if want, err = Wanted(row, ledger, s.Store.Now(ctx)); err == nil {
		err = s.apply(ctx, ledger, want, &change)
	}
	if err == nil && want != nil && !s.DryRun {
		err = s.makeUp(ctx, row)
	}
	switch {
	case errors.Is(err, ErrTemporalAway), ctx.Err() != nil:
		return change, err
	case err != nil:
		change.Error = err.Error()
		return change, s.failed(ctx, row, err)
	}
	return change, s.synced(ctx, row)
}

// apply makes one Schedule as it is wanted; nil: there is to be none.
func (s *ScheduleSync) apply(ctx context.Context, ledger string, want *TemporalSchedule, change *SyncChange) error {
	have, found, err := s.Temporal.Schedule(ctx, change.ID)
	if err != nil {
		return err
	}
	change.Action = SyncUnchanged
	switch {
	case want == nil && found && have.isOfAnother(ledger):
		return nil
	case want != nil && found && have.isOfAnother(ledger):
		change.Action, change.Reason = SyncCreate, "Temporal has another database's in its place"
		return fmt.Errorf("%s in Temporal's namespace belongs to another database (ledger %s): give each database a namespace of its own, "+
			"or delete that Schedule if its database is gone", change.ID, have.ledger())
	case want == nil && found:
		change.Action, change.Reason = SyncDelete, "it is deleted, or will not run again"
		return s.unlessDry(func() error { return s.Temporal.DeleteSchedule(ctx, change.ID) })
	case want == nil:
		return nil
	case !found:
		change.Action, change.Reason = SyncCreate, "Temporal does not have it"
		return s.unlessDry(func() error { return s.Temporal.CreateSchedule(ctx, *want) })
	case !have.is(*want):
		change.Action, change.Reason = SyncUpdate, have.differs(*want)
		return s.unlessDry(func() error { return s.Temporal.UpdateSchedule(ctx, *want) })
	}
	return nil
}

// makeUp starts what was due within the catch-up window and did not run: Temporal may not have known of
// the schedule then, or not as it is now.
func (s *ScheduleSync) makeUp(ctx context.Context, row store.Schedule) error {
	calendar, wrong := row.Timetable.Calendar()
	if !row.Active || len(wrong) > 0 {
		return nil
	}
	now := s.Store.Now(ctx)
	since := row.WatchedUntil
	if oldest := now.Add(-row.CatchupWindow); oldest.After(since) {
		since = oldest
	}
	due := calendar.Between(since, now)
	if len(due) == 0 {
		return nil
	}
	due, err := s.Store.DueWithoutRun(ctx, row.ID, due, calendar.Zone())
	if err != nil || len(due) == 0 {
		return err
	}
	return s.Temporal.MakeUpRuns(ctx, notify.ScheduleID(row.ID), due[0], due[len(due)-1])
}

// differs says how Temporal's differs from the one that is wanted.
func (l LiveSchedule) differs(want TemporalSchedule) string {
	switch {
	case l.Mark == want.Mark():
		return "somebody has paused or resumed it in Temporal"
	case l.ledger() == "":
		return "it does not say yet whose it is"
	case l.Paused != want.Paused && want.Paused:
		return "it is paused"
	case l.Paused != want.Paused:
		return "it is resumed"
	}
	return "it was changed"
}

func (s *ScheduleSync) unlessDry(change func() error) error {
	if s.DryRun {
		return nil
	}
	return change()
}

func (s *ScheduleSync) synced(ctx context.Context, row store.Schedule) error {
	if s.DryRun || row.SyncedRevision == row.Revision && row.SyncError == nil {
		return nil
	}
	return s.Store.ScheduleSynced(ctx, row.ID, row.Revision)
}

func (s *ScheduleSync) failed(ctx context.Context, row store.Schedule, why error) error {
	if s.DryRun {
		return nil
	}
	syncFailures.Inc()
	s.Log.WarnContext(ctx, "Temporal does not take a schedule", "schedule_id", row.ID, "error", why)
	return s.Store.ScheduleNotSynced(ctx, row.ID, row.Revision, why.Error())
}

// orphans deletes what Temporal has of this ledger and the table does not. It leaves alone what does not
// say whose it is: it may be another ledger's, which will say so.
func (s *ScheduleSync) orphans(ctx context.Context, ledger string, rows []store.Schedule, live map[string]LiveSchedule) (done []SyncChange, err error) {
	for _, row := range rows {
		delete(live, notify.ScheduleID(row.ID))
	}
	for id, have := range live {
		if have.ledger() != ledger {
			continue
		}
		isOrphan, err := s.isOrphan(ctx, ledger, id)
		switch {
		case err != nil:
			return done, err
		case !isOrphan:
			continue
		}
		change := SyncChange{ID: id, Action: SyncDelete, Reason: "there is no such schedule"}
		err = s.unlessDry(func() error { return s.Temporal.DeleteSchedule(ctx, id) })
		switch {
		case errors.Is(err, ErrTemporalAway), ctx.Err() != nil:
			return done, err
		case err != nil:
			change.Error = err.Error()
			s.Log.WarnContext(ctx, "a Schedule that there should not be cannot be deleted", "id", id, "error", err)
		}
		done = append(done, change)
	}
	return done, nil
}

// isOrphan looks again: the row may be newer than the rows that were read, and the list older than
// what Temporal has.
func (s *ScheduleSync) isOrphan(ctx context.Context, ledger, id string) (bool, error) {
	if row, ok := notify.ParseScheduleID(id); ok {
		found, err := s.Store.ScheduleToSync(ctx, row)
		if err == nil && !found.Deleted || err != nil && !errors.Is(err, store.ErrNotFound) {
			return false, err
		}
	}
	have, found, err := s.Temporal.Schedule(ctx, id)
	return found && have.ledger() == ledger, err
}

// Wanted is what Temporal must have of a ledger's schedule; nil: nothing, because it is deleted or does not run
// again. Temporal deletes a Schedule of the latter kind by itself, some day.
func Wanted(row store.Schedule, ledger string, now time.Time) (*TemporalSchedule, error) {
	if row.Deleted {
		return nil, nil
	}
	calendar, wrong := row.Timetable.Calendar()
	if len(wrong) > 0 {
		return nil, fmt.Errorf("its timetable cannot be read: %w", wrong[0])
	}
	if calendar.Next(now, 1) == nil {
		return nil, nil
	}
	want := &TemporalSchedule{
		ID: notify.ScheduleID(row.ID), Ledger: ledger, ScheduleID: row.ID, Timezone: row.Timetable.Timezone,
		Rules: calendar.Rules(), CatchupWindow: row.CatchupWindow, Paused: !row.Active,
	}
	for _, at := range calendar.Exceptions(now.Add(-exceptionsBehind), now.Add(exceptionsAhead)) {
		want.Exceptions = append(want.Exceptions, at.UTC())
	}
	want.From, want.Until = calendar.Limits()
	want.From, want.Until = want.From.UTC(), want.Until.UTC()
	if want.Paused {
		want.Note = "paused in Todoku"
		if row.PauseNote != nil {
			want.Note += ": " + notify.MaskNumbers(*row.PauseNote)
		}
	}
	return want, nil
}
