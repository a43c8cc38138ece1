package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// InboundNews is a call of which its workflow does not know the newest, or that has none yet.
type InboundNews struct {
	ID         uuid.UUID
	WorkflowID *string // nil: it has none
	Started    bool
	State      notify.InboundState
	Operator   string // the SID of the one who answered, or whose phone rings; may be empty
	Version    int
}

// TakeInboundNews takes on calls with news for their workflows, the most overdue first, and calls whose
// workflows have not looked at them when they should have. For a few seconds nobody else takes them on;
// then they are there again, unless they were marked told.
func (s *Store) TakeInboundNews(ctx context.Context, limit int) ([]InboundNews, error) {
	news, err := many(ctx, s, pgx.RowToStructByPos[InboundNews], `
		WITH untold AS MATERIALIZED (
			SELECT id FROM inbound_calls
			WHERE closed_at IS NULL AND told_version < version AND relay_at <= clock_timestamp()
			ORDER BY relay_at
			LIMIT $1
			FOR UPDATE SKIP LOCKED
		), neglected AS MATERIALIZED (
			SELECT id FROM inbound_calls
			WHERE closed_at IS NULL AND look_by <= clock_timestamp()
			ORDER BY look_by
			LIMIT $1
			FOR UPDATE SKIP LOCKED
		)
		UPDATE inbound_calls c SET relay_at = clock_timestamp() + interval '5 seconds',
			look_by = CASE WHEN c.look_by <= clock_timestamp() THEN clock_timestamp() + interval '30 seconds' ELSE c.look_by END
		FROM (SELECT id FROM untold UNION SELECT id FROM neglected) AS due
		WHERE c.id = due.id
		RETURNING c.id, c.workflow_id, c.started_at IS NOT NULL, c.state::text,
			coalesce(CASE WHEN c.answered_at IS NOT NULL THEN c.answered_by WHEN c.state = 'RESERVED' THEN c.phase_operator END, ''), c.version`, limit)
	if err != nil {
		return nil, fmt.Errorf("take on calls with news: %w", err)
	}
	return news, nil
}

// InboundTold is what a workflow of a call has been told.
type InboundTold struct {
	ID         uuid.UUID
	WorkflowID string
	Version    int
}

// MarkInboundTold notes what the workflows know. Each looks at its call within patience, or is gone.
func (s *Store) MarkInboundTold(ctx context.Context, patience time.Duration, told ...InboundTold) error {
	if len(told) == 0 {
		return nil
	}
	_, err := s.pool.Exec(ctx, `
		WITH told AS MATERIALIZED (
			SELECT c.id, t.workflow_id, t.version
			FROM unnest($1::uuid[], $2::text[], $3::int[]) AS t (id, workflow_id, version)
			JOIN inbound_calls c USING (id)
			ORDER BY c.id
			FOR UPDATE OF c
		)
		UPDATE inbound_calls c SET
			workflow_id = told.workflow_id, started_at = coalesce(c.started_at, clock_timestamp()),
			told_version = greatest(c.told_version, told.version), look_by = clock_timestamp() + $4::interval,
			relay_at = CASE WHEN c.version > told.version THEN clock_timestamp() + interval '`+callsWait+`' ELSE c.relay_at END
		FROM told
		WHERE c.id = told.id`,
		column(told, func(t InboundTold) uuid.UUID { return t.ID }), column(told, func(t InboundTold) string { return t.WorkflowID }),
		column(told, func(t InboundTold) int { return t.Version }), patience)
	if err != nil {
		return fmt.Errorf("mark workflows of calls told: %w", err)
	}
	return nil
}

// BequeathInbound gives a call whose workflow is closed or gone to a new one, <id>/r1, <id>/r2 and so
// on, which the relay then starts.
func (s *Store) BequeathInbound(ctx context.Context, id uuid.UUID, owner string) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE inbound_calls SET workflow_id = $3, started_at = NULL, told_version = 0, relay_at = clock_timestamp(), look_by = NULL
		WHERE id = $1 AND workflow_id = $2 AND closed_at IS NULL`, id, owner, notify.SuccessorWorkflowID(owner))
	if err != nil {
		return fmt.Errorf("give a call to another workflow: %w", err)
	}
	return nil
}

// LookAtInbound notes that a call's workflow lives and looks at the call again within patience.
func (s *Store) LookAtInbound(ctx context.Context, id uuid.UUID, patience time.Duration) error {
	if _, err := s.pool.Exec(ctx, `UPDATE inbound_calls SET look_by = clock_timestamp() + $2::interval WHERE id = $1`, id, patience); err != nil {
		return fmt.Errorf("note that a call is looked at: %w", err)
	}
	return nil
}
