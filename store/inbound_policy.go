package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// InboundPolicy reads how calls are received. Before anything was applied it is the zero policy.
func (s *Store) InboundPolicy(ctx context.Context) (policy notify.InboundPolicy, err error) {
	text, err := one(ctx, s, pgx.RowTo[[]byte], `SELECT policy FROM inbound_policy WHERE single`)
	switch {
	case errors.Is(err, ErrNotFound):
		return policy, nil
	case err == nil:
		err = json.Unmarshal(text, &policy)
	}
	if err != nil {
		return policy, fmt.Errorf("read how calls are received: %w", err)
	}
	return policy, nil
}

// SaveInboundPolicy makes a policy the one by which calls are received from now on. Calls to a number that it had not
// before are ours from now on too.
func (s *Store) SaveInboundPolicy(ctx context.Context, policy notify.InboundPolicy) error {
	text, err := json.Marshal(policy)
	if err == nil {
		err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `
				INSERT INTO inbound_policy (policy) VALUES ($1)
				ON CONFLICT (single) DO UPDATE SET policy = excluded.policy, applied_at = now()`, text); err != nil {
				return err
			}
			return listInboundOf(ctx, tx, policy.Number)
		})
	}
	if err != nil {
		return fmt.Errorf("keep how calls are received: %w", err)
	}
	return nil
}

// ForgetInboundPolicy undoes SaveInboundPolicy: calls that come in hear that nobody is there.
func (s *Store) ForgetInboundPolicy(ctx context.Context) error {
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM inbound_policy WHERE single`); err != nil {
			return err
		}
		return listInboundOf(ctx, tx, "")
	})
	if err != nil {
		return fmt.Errorf("forget how calls are received: %w", err)
	}
	return nil
}
