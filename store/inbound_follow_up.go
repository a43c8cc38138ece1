package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// InboundFollowUp is what is decided to be done about a caller.
type InboundFollowUp struct {
	Action       notify.FollowUpAction
	Reason       string           // why none, or why another one than was wanted; may be empty
	Notification *NewNotification // for an SMS or a call
}

// DecideInboundFollowUp decides what is done about a caller, once: a notification is accepted in the
// same transaction, so it is sent exactly as often as any other. It reports false, and does nothing,
// when that was decided before or when the call has changed since version.
func (s *Store) DecideInboundFollowUp(ctx context.Context, id uuid.UUID, version int, f InboundFollowUp) (decided bool, err error) {
	var notification *uuid.UUID
	if f.Notification != nil {
		notification = &f.Notification.ID
	}
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			UPDATE inbound_calls SET
				follow_up = $3, follow_up_reason = nullif($4, ''), notification_id = $5,
				followed_up_at = CASE WHEN $5::uuid IS NOT NULL THEN clock_timestamp() END,
				closed_at = CASE WHEN $3 <> 'task' THEN clock_timestamp() END, updated_at = clock_timestamp()
			WHERE id = $1 AND version = $2 AND follow_up IS NULL`, id, version, f.Action, f.Reason, notification)
		if decided = err == nil && tag.RowsAffected() == 1; !decided || f.Notification == nil {
			return err
		}
		return insert(ctx, tx, []NewNotification{*f.Notification}, make([]Acceptance, 1))
	})
	if err != nil {
		return false, fmt.Errorf("decide what is done about a caller: %w", err)
	}
	return decided, nil
}

// MarkInboundTask notes the task of calling back, which ends what is done about the caller.
func (s *Store) MarkInboundTask(ctx context.Context, id uuid.UUID, taskSID string) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE inbound_calls SET follow_up_task_sid = $2, followed_up_at = clock_timestamp(), closed_at = clock_timestamp(), updated_at = clock_timestamp()
		WHERE id = $1 AND follow_up = 'task' AND follow_up_task_sid IS NULL`, id, taskSID)
	if err != nil {
		return fmt.Errorf("note the task of calling back: %w", err)
	}
	return nil
}
