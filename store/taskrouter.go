package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/taskrouter"
)

// TaskRouterRun is something that was asked to be done at TaskRouter.
type TaskRouterRun struct {
	ID          uuid.UUID
	Action      string // plan, apply or destroy
	FileName    string
	File        string
	RequestedAt time.Time
	FinishedAt  *time.Time
	Changes     []taskrouter.Change
	Notes       []string
	Problem     *string // why it came to an end early
}

const taskRouterRunColumns = `id, action, file_name, file, requested_at, finished_at, changes, notes, problem`

// AddTaskRouterRun accepts a run, behind those that wait.
func (s *Store) AddTaskRouterRun(ctx context.Context, id uuid.UUID, action, fileName, file string) (TaskRouterRun, error) {
	run, err := one(ctx, s, pgx.RowToStructByPos[TaskRouterRun], `
		INSERT INTO taskrouter_runs (id, action, file_name, file) VALUES ($1, $2, $3, $4)
		RETURNING `+taskRouterRunColumns, id, action, fileName, file)
	if err != nil {
		return run, fmt.Errorf("add a run of TaskRouter: %w", err)
	}
	return run, nil
}

// TaskRouterRun reads a run. The error is ErrNotFound where there is none.
func (s *Store) TaskRouterRun(ctx context.Context, id uuid.UUID) (TaskRouterRun, error) {
	run, err := one(ctx, s, pgx.RowToStructByPos[TaskRouterRun], `
		SELECT `+taskRouterRunColumns+` FROM taskrouter_runs WHERE id = $1`, id)
	if err != nil {
		return run, fmt.Errorf("read a run of TaskRouter: %w", err)
	}
	return run, nil
}

// NextTaskRouterRun is the run whose turn it is. The error is ErrNotFound where none waits.
func (s *Store) NextTaskRouterRun(ctx context.Context) (TaskRouterRun, error) {
	run, err := one(ctx, s, pgx.RowToStructByPos[TaskRouterRun], `
		SELECT `+taskRouterRunColumns+` FROM taskrouter_runs WHERE finished_at IS NULL ORDER BY requested_at, id LIMIT 1`)
	if err != nil {
		return run, fmt.Errorf("find the next run of TaskRouter: %w", err)
	}
	return run, nil
}

// HoldTaskRouterRun lets a try carry out a run, or hold on to it, for so long. It reports false while another try holds
// it. Whoever holds a run must write nothing to Twilio once that time is over.
func (s *Store) HoldTaskRouterRun(ctx context.Context, id, try uuid.UUID, lease time.Duration) (held bool, err error) {
	tag, err := s.pool.Exec(ctx, `
		UPDATE taskrouter_runs SET held_by = $2, held_until = clock_timestamp() + $3::interval
		WHERE id = $1 AND finished_at IS NULL
			AND (held_by = $2 OR held_until IS NULL OR held_until < clock_timestamp())`, id, try, lease)
	if err != nil {
		return false, fmt.Errorf("hold a run of TaskRouter: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// ReleaseTaskRouterRun gives a run that is not over to the next try.
func (s *Store) ReleaseTaskRouterRun(ctx context.Context, id, try uuid.UUID) error {
	_, err := s.pool.Exec(ctx, `UPDATE taskrouter_runs SET held_until = NULL WHERE id = $1 AND held_by = $2`, id, try)
	if err != nil {
		return fmt.Errorf("release a run of TaskRouter: %w", err)
	}
	return nil
}

// AddTaskRouterChange writes down what a run has just done.
func (s *Store) AddTaskRouterChange(ctx context.Context, id uuid.UUID, change taskrouter.Change) error {
	encoded, err := json.Marshal([]taskrouter.Change{change})
	if err == nil {
		_, err = s.pool.Exec(ctx, `
			UPDATE taskrouter_runs SET changes = changes || $2 WHERE id = $1 AND finished_at IS NULL`, id, encoded)
	}
	if err != nil {
		return fmt.Errorf("write down what a run of TaskRouter has done: %w", err)
	}
	return nil
}

// FinishTaskRouterRun ends a run, with what a plan has found, and why it came to an end early, unless that is empty.
// The first word about a run stays.
func (s *Store) FinishTaskRouterRun(ctx context.Context, id uuid.UUID, planned []taskrouter.Change, notes []string, problem string) error {
	if planned == nil {
		planned = []taskrouter.Change{}
	}
	if notes == nil {
		notes = []string{}
	}
	encoded, err := json.Marshal(planned)
	if err == nil {
		_, err = s.pool.Exec(ctx, `
			UPDATE taskrouter_runs
			SET finished_at = clock_timestamp(), changes = changes || $2, notes = $3, problem = nullif($4, '')
			WHERE id = $1 AND finished_at IS NULL`, id, encoded, notes, problem)
	}
	if err != nil {
		return fmt.Errorf("finish a run of TaskRouter: %w", err)
	}
	return nil
}

// PurgeTaskRouterRuns forgets runs, and their files, that were over so long ago, and returns how many.
func (s *Store) PurgeTaskRouterRuns(ctx context.Context, age time.Duration) (int64, error) {
	ctx = unhurried(ctx)
	tag, err := s.pool.Exec(ctx, `DELETE FROM taskrouter_runs WHERE finished_at < now() - $1::interval`, age)
	if err != nil {
		return 0, fmt.Errorf("purge runs of TaskRouter: %w", err)
	}
	return tag.RowsAffected(), nil
}

// TaskRouterObject is something at Twilio that Todoku made, or changed.
type TaskRouterObject struct {
	taskrouter.Made
	ID     int64
	Before map[string]string // of a number: the fields that were changed, as they were
	After  map[string]string // and as they were made
}

// TaskRouterObjects lists what Todoku made or changed, the oldest first.
func (s *Store) TaskRouterObjects(ctx context.Context) ([]TaskRouterObject, error) {
	objects, err := many(ctx, s, func(row pgx.CollectableRow) (o TaskRouterObject, err error) {
		var sid *string
		err = row.Scan(&o.ID, &o.Kind, &o.Name, &o.WorkspaceSID, &sid, &o.Before, &o.After)
		if sid != nil {
			o.SID = *sid
		}
		return o, err
	}, `SELECT id, kind, name, workspace_sid, sid, before, after FROM taskrouter_objects ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("list what was made at TaskRouter: %w", err)
	}
	return objects, nil
}

// IntendTaskRouterObject notes that an object is about to be made, and returns the note's id.
func (s *Store) IntendTaskRouterObject(ctx context.Context, kind taskrouter.Kind, name, workspaceSID string) (int64, error) {
	id, err := one(ctx, s, pgx.RowTo[int64], `
		INSERT INTO taskrouter_objects (kind, name, workspace_sid) VALUES ($1, $2, $3) RETURNING id`, kind, name, workspaceSID)
	if err != nil {
		return 0, fmt.Errorf("note what is made at TaskRouter: %w", err)
	}
	return id, nil
}

// TaskRouterObjectMade completes the note about an object.
func (s *Store) TaskRouterObjectMade(ctx context.Context, id int64, sid string) error {
	if _, err := s.pool.Exec(ctx, `UPDATE taskrouter_objects SET sid = $2 WHERE id = $1`, id, sid); err != nil {
		return fmt.Errorf("note what was made at TaskRouter: %w", err)
	}
	return nil
}

// ForgetTaskRouterObject takes a note back: the object was deleted, or never made.
func (s *Store) ForgetTaskRouterObject(ctx context.Context, id int64) error {
	if _, err := s.pool.Exec(ctx, `DELETE FROM taskrouter_objects WHERE id = $1`, id); err != nil {
		return fmt.Errorf("forget what was made at TaskRouter: %w", err)
	}
	return nil
}

// NoteNumber notes the fields of a number that are about to be changed. What a field was before the first change of
// ours stays.
func (s *Store) NoteNumber(ctx context.Context, name, sid string, before, after map[string]string) error {
	from, err := json.Marshal(before)
	to, toErr := json.Marshal(after)
	if err = errors.Join(err, toErr); err == nil {
		_, err = s.pool.Exec(ctx, `
			INSERT INTO taskrouter_objects AS o (kind, name, workspace_sid, sid, before, after)
			VALUES ($1, $2, '', $3, $4, $5)
			ON CONFLICT (sid) DO UPDATE SET before = excluded.before || o.before, after = o.after || excluded.after`,
			taskrouter.Numbers, name, sid, from, to)
	}
	if err != nil {
		return fmt.Errorf("note what a number was before: %w", err)
	}
	return nil
}

// TaskRouterWaits reports whether a run waits to be carried out.
func (s *Store) TaskRouterWaits(ctx context.Context) (bool, error) {
	waits, err := one(ctx, s, pgx.RowTo[bool], `SELECT EXISTS (SELECT FROM taskrouter_runs WHERE finished_at IS NULL)`)
	if err != nil {
		return false, fmt.Errorf("look for runs of TaskRouter: %w", err)
	}
	return waits, nil
}
