package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// syncLock is the number of the advisory lock that the sync of schedules holds, over all processes.
const syncLock = 0x7363_6865_6475_6c65 // "schedule"

// syncPatience is how long a schedule rests that Temporal has refused.
const syncPatience = time.Minute

// Whoever holds the lock says every few seconds that he lives, and loses it otherwise: a process that
// is frozen, or cut off, keeps nobody from syncing.
const (
	syncBeat  = 5 * time.Second
	syncDeath = 30 * time.Second
)

// LockScheduleSync waits until nobody else syncs schedules, and keeps others from it until unlock is
// called. The context that it returns ends when the lock is lost.
func (s *Store) LockScheduleSync(ctx context.Context) (held context.Context, unlock func(), err error) {
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("lock the sync of schedules: %w", err)
	}
	_, err = tx.Exec(ctx, `SELECT set_config('idle_in_transaction_session_timeout', $1, true)`, strconv.FormatInt(syncDeath.Milliseconds(), 10))
	if err == nil {
		_, err = tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(syncLock))
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("lock the sync of schedules: %w", err), tx.Rollback(context.WithoutCancel(ctx)))
	}
	held, lose := context.WithCancelCause(ctx)
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-beating.Done():
				return
			case <-time.After(syncBeat):
			}
			limited, cancel := context.WithTimeout(beating, syncBeat)
			_, err := tx.Exec(limited, `SELECT 1`)
			cancel()
			if err != nil && beating.Err() == nil {
				lose(fmt.Errorf("the lock of the sync of schedules is lost: %w", err))
				return
			}
		}
	}()
	return held, func() {
		stop()
		<-stopped
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), syncBeat)
		defer cancel()
		_ = tx.Rollback(end) // where it fails, the connection is closed, which unlocks too
		lose(nil)
	}, nil
}

// UnsyncedSchedules lists those that Temporal does not have as they are, deleted ones too, but for
// those that it refused a moment ago.
func (s *Store) UnsyncedSchedules(ctx context.Context) ([]Schedule, error) {
	found, err := many(ctx, s, scanSchedule, `
		SELECT `+scheduleColumns+` FROM schedules s
		WHERE s.synced_revision < s.revision AND (s.sync_retry_at IS NULL OR s.sync_retry_at <= clock_timestamp())
		ORDER BY s.id`)
	return found, scheduleError("look for schedules to sync", err)
}

// ScheduleSyncDue reports whether UnsyncedSchedules has any that was changed so long ago that whoever
// changed it has told so, or never will.
func (s *Store) ScheduleSyncDue(ctx context.Context, age time.Duration) (bool, error) {
	due, err := one(ctx, s, pgx.RowTo[bool], `
		SELECT EXISTS (
			SELECT FROM schedules
			WHERE synced_revision < revision AND updated_at <= clock_timestamp() - $1::interval
				AND (sync_retry_at IS NULL OR sync_retry_at <= clock_timestamp())
		)`, age)
	return due, scheduleError("look for schedules to sync", err)
}

// ScheduleToSync reads a schedule, a deleted one too. The error is ErrNotFound when there is none.
func (s *Store) ScheduleToSync(ctx context.Context, id int64) (Schedule, error) {
	found, err := one(ctx, s, scanSchedule, `SELECT `+scheduleColumns+` FROM schedules s WHERE s.id = $1`, id)
	return found, scheduleError("read schedule", err)
}

// ScheduleSynced notes that Temporal has a revision.
func (s *Store) ScheduleSynced(ctx context.Context, id int64, revision int32) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE schedules SET synced_revision = $2, synced_at = now(), sync_error = NULL, sync_retry_at = NULL
		WHERE id = $1 AND synced_revision <= $2`, id, revision)
	return scheduleError("note what Temporal has", err)
}

// ScheduleNotSynced notes why Temporal does not have a revision. The sync leaves it alone for a minute.
func (s *Store) ScheduleNotSynced(ctx context.Context, id int64, revision int32, why string) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE schedules SET sync_error = $3, sync_retry_at = clock_timestamp() + $4::interval,
			synced_revision = least(synced_revision, $2 - 1)
		WHERE id = $1 AND revision = $2`, id, revision, why, syncPatience)
	return scheduleError("note what Temporal lacks", err)
}
