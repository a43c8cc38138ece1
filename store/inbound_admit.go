package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// InboundLimits are how many calls may be taken. 0 means as many as come.
type InboundLimits struct {
	Open      int // at the same time
	PerSecond int
	Waiting   int // for an operator at the same time
}

// InboundArrival is a call that comes in.
type InboundArrival struct {
	Event   notify.InboundEvent // its word is notify.WordReceived
	Limits  InboundLimits
	Refused string // why it is turned away whatever the limits are; empty: it is not
}

// Admission is what is decided about a call: once, however often it is announced.
type Admission struct {
	ID         uuid.UUID
	TurnedAway string // why; empty: it may wait for an operator
}

// AdmitInbound decides which calls may enter the queue and records them, one admission for each
// arrival, in their order. The limits hold exactly, over all processes: those who decide wait for each
// other. A call that was announced before keeps the decision that was made then.
func (s *Store) AdmitInbound(ctx context.Context, arrivals ...InboundArrival) ([]Admission, error) {
	admissions := make([]Admission, len(arrivals))
	err := s.pool.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		// A statement of its own: what comes after it sees what those have committed who held the lock.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('inbound calls', 0))`); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `
			WITH arrival AS (
				SELECT t.*, c.received_at IS NOT NULL AS known, c.exit, c.exit_reason,
					row_number() OVER (PARTITION BY id ORDER BY place) = 1 AS first -- of this group
				FROM unnest($1::uuid[], $2::text[], $3::int[], $4::int[], $5::int[])
					WITH ORDINALITY AS t (id, refused, max_open, per_second, max_waiting, place)
				LEFT JOIN inbound_calls c USING (id)
			), turn AS (
				SELECT *, count(*) FILTER (WHERE refused = '' AND NOT known AND first) OVER (ORDER BY place) AS turn FROM arrival
			), there AS (
				SELECT count(*) AS open, count(*) FILTER (WHERE state <> 'ANSWERED') AS waiting
				FROM inbound_calls
				WHERE state IN ('RECEIVED', 'WAITING', 'RESERVED', 'ANSWERED')
			), lately AS (
				SELECT count(*) AS calls
				FROM inbound_calls
				WHERE created_at > clock_timestamp() - interval '1 second' -- by the clock of the database: received_at is the API's
					AND received_at IS NOT NULL AND (exit IS NULL OR exit NOT IN ('TURNED_AWAY', 'MISSED'))
			), decided AS (
				SELECT id, place, CASE
					WHEN known THEN CASE WHEN exit = 'TURNED_AWAY' THEN exit_reason ELSE '' END
					WHEN refused <> '' THEN refused
					WHEN max_open > 0 AND open + turn > max_open THEN $6
					WHEN per_second > 0 AND calls + turn > per_second THEN $7
					WHEN max_waiting > 0 AND waiting + turn > max_waiting THEN $8
					ELSE '' END AS reason
				FROM turn, there, lately
			)
			SELECT id, first_value(reason) OVER (PARTITION BY id ORDER BY place)
			FROM decided
			ORDER BY place`,
			column(arrivals, func(a InboundArrival) uuid.UUID { return a.Event.CallID }),
			column(arrivals, func(a InboundArrival) string { return a.Refused }),
			column(arrivals, func(a InboundArrival) int { return a.Limits.Open }),
			column(arrivals, func(a InboundArrival) int { return a.Limits.PerSecond }),
			column(arrivals, func(a InboundArrival) int { return a.Limits.Waiting }),
			notify.TurnedAwayBusy, notify.TurnedAwayRush, notify.TurnedAwayFull)
		if err != nil {
			return err
		}
		if admissions, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Admission]); err != nil {
			return err
		}
		events := column(arrivals, func(a InboundArrival) notify.InboundEvent { return a.Event })
		for i, admission := range admissions {
			if admission.TurnedAway != "" {
				events = append(events, turnedAway(arrivals[i].Event, admission.TurnedAway))
			}
		}
		_, err = recordInbound(ctx, tx, events)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("admit calls: %w", err)
	}
	return admissions, nil
}

func turnedAway(arrival notify.InboundEvent, reason string) notify.InboundEvent {
	e := arrival
	e.Key, e.Kind, e.Word, e.Reason = "turned away", "turned away", notify.WordTurnedAway, reason
	return e
}
