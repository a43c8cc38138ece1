package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// CallbackStep is what is to be done next about the task of calling somebody back.
type CallbackStep string

const (
	CallbackPost CallbackStep = "post" // it is ours to post now
	CallbackFind CallbackStep = "find" // it was posted, and may be at TaskRouter
	CallbackWait CallbackStep = "wait" // another process is about it
	CallbackOver CallbackStep = "over" // nothing: the call is closed, or needs no task any more
)

// CallbackTask is the intent to have a caller called back by an operator. It is written before the task is posted, so
// that whoever comes after a worker that died, or whose answer was lost, looks for the task first.
type CallbackTask struct {
	CallID       uuid.UUID
	Step         CallbackStep
	In           time.Duration // with CallbackWait: for how long
	PostedAt     time.Time     // which post it is; what another one has replaced changes nothing any more
	WorkspaceSID string        // that it was posted in
	TaskSID      string        // where an event of TaskRouter's has told it
	Absent       time.Duration // since a complete list lacked it; negative: none did
	Withdrawn    bool          // somebody has spoken with the caller: it is to be canceled
}

// ClaimCallbackTask takes on the task of calling back that was decided upon for a call. For the lease nobody else posts
// it or looks for it. workspaceSID is where it is posted, if it is.
func (s *Store) ClaimCallbackTask(
	ctx context.Context, call uuid.UUID, workspaceSID string, lease time.Duration,
) (task CallbackTask, err error) {
	err = s.pool.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		task = CallbackTask{CallID: call}
		wanted, err := lockForCallback(ctx, tx, call)
		if err != nil || !wanted {
			task.Step = CallbackOver
			return err
		}
		var postedAt *time.Time
		var held time.Duration
		err = tx.QueryRow(ctx, `
			SELECT posted_at, held_until - clock_timestamp(), coalesce(workspace_sid, $2), coalesce(task_sid, ''),
				coalesce(clock_timestamp() - absent_since, '-1 second'), withdrawn_at IS NOT NULL
			FROM inbound_callback_tasks
			WHERE call_id = $1
			FOR UPDATE`, call, workspaceSID).
			Scan(&postedAt, &held, &task.WorkspaceSID, &task.TaskSID, &task.Absent, &task.Withdrawn)
		switch {
		case err != nil && !errors.Is(err, pgx.ErrNoRows):
			return err
		case held > 0:
			task.Step, task.In = CallbackWait, held
			return nil
		case postedAt == nil && task.Withdrawn:
			task.Step = CallbackOver
			return withdrawTask(ctx, tx, call)
		case postedAt == nil && task.TaskSID == "":
			task.Step = CallbackPost
			return postCallbackTask(ctx, tx, &task, workspaceSID, lease)
		}
		task.Step = CallbackFind
		return tx.QueryRow(ctx, `
			UPDATE inbound_callback_tasks
			SET held_until = clock_timestamp() + $2::interval, posted_at = coalesce(posted_at, clock_timestamp())
			WHERE call_id = $1
			RETURNING posted_at`, call, lease).Scan(&task.PostedAt)
	})
	if err != nil {
		return task, fmt.Errorf("take on a task of calling back: %w", err)
	}
	return task, nil
}

// lockForCallback locks the call's row, and reports whether its caller is still to be called back by an operator.
// Whoever changes that locks the row first.
func lockForCallback(ctx context.Context, tx pgx.Tx, call uuid.UUID) (wanted bool, err error) {
	err = tx.QueryRow(ctx, `
		SELECT coalesce(follow_up = 'task', false) AND closed_at IS NULL
		FROM inbound_calls
		WHERE id = $1
		FOR UPDATE`, call).Scan(&wanted)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, ErrNotFound
	}
	return wanted, err
}

func postCallbackTask(
	ctx context.Context, tx pgx.Tx, task *CallbackTask, workspaceSID string, lease time.Duration,
) error {
	task.WorkspaceSID, task.Absent = workspaceSID, -time.Second
	return tx.QueryRow(ctx, `
		INSERT INTO inbound_callback_tasks (call_id, posted_at, held_until, workspace_sid)
		VALUES ($1, clock_timestamp(), clock_timestamp() + $2::interval, $3)
		ON CONFLICT (call_id) DO UPDATE SET
			posted_at = excluded.posted_at, held_until = excluded.held_until,
			workspace_sid = excluded.workspace_sid, absent_since = NULL
		RETURNING posted_at`, task.CallID, lease, workspaceSID).Scan(&task.PostedAt)
}

// RepostCallbackTask lets a task be posted again of which it was proven that TaskRouter does not have it. It reports
// false when somebody else has taken it on meanwhile, or the task is not wanted any more.
func (s *Store) RepostCallbackTask(
	ctx context.Context, task *CallbackTask, workspaceSID string, lease time.Duration,
) (post bool, err error) {
	err = s.pool.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		wanted, err := lockForCallback(ctx, tx, task.CallID)
		if err != nil || !wanted {
			return err
		}
		ours := false
		post = false
		if err := tx.QueryRow(ctx, `
			SELECT coalesce(posted_at = $2, false), withdrawn_at IS NOT NULL
			FROM inbound_callback_tasks
			WHERE call_id = $1
			FOR UPDATE`,
			task.CallID, task.PostedAt).Scan(&ours, &task.Withdrawn); err != nil || !ours {
			return err
		}
		if task.Withdrawn {
			return withdrawTask(ctx, tx, task.CallID)
		}
		post = true
		return postCallbackTask(ctx, tx, task, workspaceSID, lease)
	})
	if err != nil {
		return false, fmt.Errorf("take on a task of calling back again: %w", err)
	}
	return post, nil
}

// CallbackTaskRefused notes that TaskRouter did not make the task: the next try posts it.
func (s *Store) CallbackTaskRefused(ctx context.Context, task CallbackTask) error {
	return s.noteCallbackTask(ctx, task, `posted_at = NULL`)
}

// CallbackTaskInDoubt notes that nobody knows whether TaskRouter has made the task: it is looked for at once.
func (s *Store) CallbackTaskInDoubt(ctx context.Context, task CallbackTask) error {
	return s.noteCallbackTask(ctx, task, `posted_at = posted_at`)
}

// CallbackTaskAbsent notes that a complete list of TaskRouter's tasks lacks the task.
func (s *Store) CallbackTaskAbsent(ctx context.Context, task CallbackTask) error {
	return s.noteCallbackTask(ctx, task, `absent_since = coalesce(absent_since, clock_timestamp())`)
}

// noteCallbackTask changes the intent, and lets others take it on.
func (s *Store) noteCallbackTask(ctx context.Context, task CallbackTask, change string) error {
	if _, err := s.pool.Exec(ctx, `
		UPDATE inbound_callback_tasks SET `+change+`, held_until = clock_timestamp()
		WHERE call_id = $1 AND posted_at = $2`, task.CallID, task.PostedAt); err != nil {
		return fmt.Errorf("note what became of a task of calling back: %w", err)
	}
	return nil
}

// MarkInboundTask notes the task of calling back, which ends what is done about the caller unless it was withdrawn.
func (s *Store) MarkInboundTask(ctx context.Context, call uuid.UUID, taskSID string) error {
	err := s.pool.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if wanted, err := lockForCallback(ctx, tx, call); err != nil || !wanted {
			return err
		}
		if _, err := tx.Exec(ctx, `
			UPDATE inbound_callback_tasks SET task_sid = $2, held_until = clock_timestamp()
			WHERE call_id = $1`, call, taskSID); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `
			UPDATE inbound_calls c SET
				follow_up_task_sid = $2, followed_up_at = clock_timestamp(), updated_at = clock_timestamp(),
				closed_at = CASE WHEN NOT EXISTS (
					SELECT FROM inbound_callback_tasks t WHERE t.call_id = c.id AND t.withdrawn_at IS NOT NULL
				) THEN clock_timestamp() END
			WHERE id = $1`, call, taskSID)
		return err
	})
	if err != nil {
		return fmt.Errorf("note the task of calling back: %w", err)
	}
	return nil
}

// CloseWithdrawnTask ends what is done about a caller whose task of calling back was withdrawn: it is gone, or an
// operator had it already.
func (s *Store) CloseWithdrawnTask(ctx context.Context, task CallbackTask, gone bool) error {
	err := s.pool.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		wanted, err := lockForCallback(ctx, tx, task.CallID)
		switch {
		case err != nil || !wanted:
			return err
		case gone:
			return withdrawTask(ctx, tx, task.CallID)
		}
		_, err = tx.Exec(ctx, `
			UPDATE inbound_calls SET
				follow_up_task_sid = coalesce(follow_up_task_sid, $2),
				followed_up_at = coalesce(followed_up_at, clock_timestamp()),
				closed_at = clock_timestamp(), updated_at = clock_timestamp()
			WHERE id = $1`, task.CallID, task.TaskSID)
		return err
	})
	if err != nil {
		return fmt.Errorf("end a withdrawn task of calling back: %w", err)
	}
	return nil
}

// withdrawTask ends what is done about a caller with nothing done. The call's row is locked.
func withdrawTask(ctx context.Context, tx pgx.Tx, call uuid.UUID) error {
	_, err := tx.Exec(ctx, `
		UPDATE inbound_calls SET follow_up = 'none', follow_up_reason = $2, follow_up_task_sid = NULL, followed_up_at = NULL,
			closed_at = coalesce(closed_at, clock_timestamp()), updated_at = clock_timestamp()
		WHERE id = $1 AND follow_up = 'task'`, call, notify.FollowUpSpoken)
	return err
}

// withdrawPostedTask has a task canceled that TaskRouter has or may have: a workflow of the call does it, a new one
// where the last is closed. It reports false for a task that was not posted. The call's row is locked.
func withdrawPostedTask(ctx context.Context, tx pgx.Tx, call uuid.UUID) (posted bool, err error) {
	var closed, before bool
	var owner *string
	err = tx.QueryRow(ctx, `
		SELECT c.follow_up_task_sid IS NOT NULL OR t.posted_at IS NOT NULL OR t.task_sid IS NOT NULL, c.closed_at IS NOT NULL,
			t.withdrawn_at IS NOT NULL, c.workflow_id
		FROM inbound_calls c
		LEFT JOIN inbound_callback_tasks t ON t.call_id = c.id
		WHERE c.id = $1`, call).Scan(&posted, &closed, &before, &owner)
	if err != nil || !posted || before {
		return posted, err
	}
	if _, err := tx.Exec(ctx, `
		INSERT INTO inbound_callback_tasks (call_id, posted_at, held_until, task_sid, withdrawn_at)
		SELECT id, clock_timestamp(), clock_timestamp(), follow_up_task_sid, clock_timestamp()
		FROM inbound_calls
		WHERE id = $1
		ON CONFLICT (call_id) DO UPDATE SET withdrawn_at = excluded.withdrawn_at`, call); err != nil || !closed {
		return true, err
	}
	if owner != nil { // it is closed, or about to be
		owner = new(notify.SuccessorWorkflowID(*owner))
	}
	_, err = tx.Exec(ctx, `
		UPDATE inbound_calls SET
			closed_at = NULL, workflow_id = $2, started_at = NULL, told_version = 0, relay_at = clock_timestamp(), look_by = NULL,
			updated_at = clock_timestamp()
		WHERE id = $1`, call, owner)
	return true, err
}

// recordCallbackTasks notes the SIDs of tasks of calling back that events name.
func recordCallbackTasks(ctx context.Context, tx pgx.Tx, events []notify.InboundEvent) error {
	_, err := tx.Exec(ctx, `
		UPDATE inbound_callback_tasks t SET task_sid = told.task_sid
		FROM (
			SELECT call_id, min(task_sid) AS task_sid
			FROM unnest($1::uuid[], $2::text[]) AS e (call_id, task_sid)
			GROUP BY call_id
			ORDER BY call_id
		) AS told
		WHERE t.call_id = told.call_id AND t.task_sid IS NULL`,
		column(events, func(e notify.InboundEvent) uuid.UUID { return e.CallID }),
		column(events, func(e notify.InboundEvent) string { return e.TaskSID }))
	return err
}
