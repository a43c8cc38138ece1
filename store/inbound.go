package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// InboundChange says what events did to a call.
type InboundChange struct {
	ID       uuid.UUID
	State    notify.InboundState
	Reason   string // of its end, where it has one
	From, To string
}

// RecordInbound writes what was told of calls: the one statement by which their rows move, whoever
// told. A call that the ledger does not know is added. For every order of the same events and any
// number of repeats the rows end the same; see notify.InboundMeaning. Every event is added to its
// timeline once. The answer has each call that the events name, once.
//
// Rows are locked in the order of their ids, so two writers cannot deadlock.
func (s *Store) RecordInbound(ctx context.Context, events ...notify.InboundEvent) ([]InboundChange, error) {
	var changes []InboundChange
	var err error
	reservations, tasks := those(events, ofReservation), those(events, ofCallbackTask)
	if len(reservations)+len(tasks) == 0 {
		err = s.pool.again(ctx, statementLimit, func(ctx context.Context) (err error) {
			changes, err = recordInbound(ctx, s.pool, events)
			return err
		})
	} else {
		err = s.pool.transact(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
			changes, err = recordInbound(ctx, tx, events)
			if err == nil && len(reservations) > 0 {
				err = recordReservations(ctx, tx, reservations, changes)
			}
			if err == nil && len(tasks) > 0 {
				err = recordCallbackTasks(ctx, tx, tasks)
			}
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("record what was told of calls: %w", err)
	}
	return changes, nil
}

// those are the events of one kind.
func those(events []notify.InboundEvent, kind func(notify.InboundEvent) bool) []notify.InboundEvent {
	return slices.DeleteFunc(slices.Clone(events), func(e notify.InboundEvent) bool { return !kind(e) })
}

// ofCallbackTask reports whether an event names the task of calling somebody back.
func ofCallbackTask(e notify.InboundEvent) bool {
	return e.Word == notify.WordCallbackTask && e.TaskSID != ""
}

func recordInbound(ctx context.Context, q querier, events []notify.InboundEvent) ([]InboundChange, error) {
	if len(events) == 0 {
		return nil, nil
	}
	meaning := func(e notify.InboundEvent) notify.InboundMeaning {
		m := e.Word.Meaning()
		if ofReservation(e) { // see recordReservations
			m.Answered, m.Exit, m.ExitRank = false, "", 0
		}
		return m
	}
	rows, err := q.Query(ctx, recordInboundSQL,
		column(events, func(e notify.InboundEvent) uuid.UUID { return e.CallID }),
		column(events, func(e notify.InboundEvent) string { return e.CallSID }),
		column(events, func(e notify.InboundEvent) string { return e.Key }),
		column(events, func(e notify.InboundEvent) time.Time { return e.At }),
		column(events, func(e notify.InboundEvent) string { return e.Kind }),
		column(events, func(e notify.InboundEvent) string { return string(e.Word) }),
		column(events, func(e notify.InboundEvent) string { return string(e.Source) }),
		column(events, func(e notify.InboundEvent) string { return e.From }),
		column(events, func(e notify.InboundEvent) string { return e.To }),
		column(events, func(e notify.InboundEvent) string { return e.TaskSID }),
		column(events, func(e notify.InboundEvent) string { return e.Reservation }),
		column(events, func(e notify.InboundEvent) string { return e.Operator.SID }),
		column(events, func(e notify.InboundEvent) string { return e.Operator.Name }),
		column(events, func(e notify.InboundEvent) string { return e.Reason }),
		column(events, func(e notify.InboundEvent) string { return string(meaning(e).Phase) }),
		column(events, func(e notify.InboundEvent) int { return meaning(e).Tier }),
		column(events, func(e notify.InboundEvent) int { return phaseOrder[e.Word] }),
		column(events, func(e notify.InboundEvent) bool { return meaning(e).Answered }),
		column(events, func(e notify.InboundEvent) string { return string(meaning(e).Exit) }),
		column(events, func(e notify.InboundEvent) int { return meaning(e).ExitRank }),
		column(events, func(e notify.InboundEvent) []byte { return e.FromHash }))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[InboundChange])
}

// phaseOrder decides between two events of one reservation at one moment: it is released after it was
// made.
var phaseOrder = map[notify.InboundWord]int{notify.WordReserved: 1, notify.WordReleased: 2}

// callsWait is how long the relay waits for more to happen to a call before it tells its workflow.
const callsWait = "200 milliseconds"

const recordInboundSQL = `
WITH told AS MATERIALIZED (
	SELECT t.id, nullif(t.call_sid, '') AS call_sid, t.key, t.at, t.kind, t.word, t.source,
		nullif(t.from_number, '') AS from_number, nullif(t.to_number, '') AS to_number, nullif(t.task_sid, '') AS task_sid,
		t.reservation, nullif(t.operator, '') AS operator, nullif(t.operator_name, '') AS operator_name, nullif(t.reason, '') AS reason,
		nullif(t.phase, '')::inbound_state AS phase, t.tier, t.phase_order, t.answered, nullif(t.exit, '')::inbound_state AS exit, t.exit_rank, t.from_hash
	FROM unnest($1::uuid[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[],
			$11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::int[], $17::int[], $18::bool[], $19::text[], $20::int[], $21::bytea[])
		AS t (id, call_sid, key, at, kind, word, source, from_number, to_number, task_sid,
			reservation, operator, operator_name, reason, phase, tier, phase_order, answered, exit, exit_rank, from_hash)
), phases AS (
	SELECT DISTINCT ON (id) id, phase, tier, at, reservation, phase_order, operator, operator_name
	FROM told
	WHERE phase IS NOT NULL
	ORDER BY id, tier DESC, at DESC, reservation DESC, phase_order DESC
), answers AS (
	SELECT id, min(at) AS at
	FROM told
	WHERE answered
	GROUP BY id
), exits AS (
	SELECT DISTINCT ON (id) id, exit, exit_rank, at, reason
	FROM told
	WHERE exit IS NOT NULL
	ORDER BY id, exit_rank DESC, exit = 'MISSED' DESC, at, reason
), moved AS (
	INSERT INTO inbound_calls AS c (
		id, call_sid, task_sid, from_number, from_hash, to_number, received_at, waiting_at, reserved_at,
		answered_at, answer_told_at,
		phase, phase_tier, phase_at, phase_reservation, phase_order, phase_operator, phase_operator_name,
		exit, exit_rank, exit_at, exit_reason, relay_at
	)
	SELECT facts.id, facts.call_sid, facts.task_sid, facts.from_number, facts.from_hash, facts.to_number, facts.received_at, facts.waiting_at, facts.reserved_at,
		a.at, a.at,
		coalesce(p.phase, 'RECEIVED'), coalesce(p.tier, 0), coalesce(p.at, '-infinity'), coalesce(p.reservation, ''),
		coalesce(p.phase_order, 0), p.operator, p.operator_name,
		e.exit, coalesce(e.exit_rank, 0), e.at, e.reason, clock_timestamp() + interval '` + callsWait + `'
	FROM (
		SELECT id, max(call_sid) AS call_sid, min(task_sid) AS task_sid, min(from_number) AS from_number,
			(array_agg(from_hash ORDER BY from_number) FILTER (WHERE from_hash IS NOT NULL))[1] AS from_hash, min(to_number) AS to_number,
			min(at) FILTER (WHERE word = 'received') AS received_at,
			min(at) FILTER (WHERE word IN ('waiting', 'holding')) AS waiting_at,
			min(at) FILTER (WHERE word IN ('reserved', 'ringing')) AS reserved_at
		FROM told
		WHERE call_sid IS NOT NULL AND word <> 'callback_task'
		GROUP BY id
	) AS facts
	LEFT JOIN phases p USING (id)
	LEFT JOIN answers a USING (id)
	LEFT JOIN exits e USING (id)
	ORDER BY facts.id
	ON CONFLICT (id) DO UPDATE SET
		task_sid = least(c.task_sid, excluded.task_sid),
		from_number = least(c.from_number, excluded.from_number),
		from_hash = coalesce(c.from_hash, excluded.from_hash),
		to_number = least(c.to_number, excluded.to_number),
		received_at = least(c.received_at, excluded.received_at),
		waiting_at = least(c.waiting_at, excluded.waiting_at),
		reserved_at = least(c.reserved_at, excluded.reserved_at),
		answered_at = least(c.answered_at, excluded.answered_at),
		answer_told_at = least(c.answer_told_at, excluded.answer_told_at),
		(phase, phase_tier, phase_at, phase_reservation, phase_order, phase_operator, phase_operator_name) = (
			SELECT phase, tier, at, reservation, place, operator, name
			FROM (VALUES
				(c.phase, c.phase_tier, c.phase_at, c.phase_reservation, c.phase_order, c.phase_operator, c.phase_operator_name),
				(excluded.phase, excluded.phase_tier, excluded.phase_at, excluded.phase_reservation, excluded.phase_order,
					excluded.phase_operator, excluded.phase_operator_name)
			) AS either (phase, tier, at, reservation, place, operator, name)
			ORDER BY tier DESC, at DESC, reservation DESC, place DESC
			LIMIT 1
		),
		(exit, exit_rank, exit_at, exit_reason) = (
			SELECT exit, rank, at, reason
			FROM (VALUES (c.exit, c.exit_rank, c.exit_at, c.exit_reason),
				(excluded.exit, excluded.exit_rank, excluded.exit_at, excluded.exit_reason)) AS either (exit, rank, at, reason)
			ORDER BY rank DESC, exit = 'MISSED' DESC NULLS LAST, at, reason
			LIMIT 1
		),
		(follow_up, follow_up_reason, closed_at) = (
			SELECT CASE WHEN NOT again THEN c.follow_up END, CASE WHEN NOT again THEN c.follow_up_reason END, CASE WHEN NOT again THEN c.closed_at END
			FROM (SELECT coalesce(` + inboundReopened + `, false) AS again) AS decision
		),
		version = c.version + CASE WHEN ` + inboundNews + ` THEN 1 ELSE 0 END,
		relay_at = CASE WHEN c.told_version < c.version THEN c.relay_at ELSE clock_timestamp() + interval '` + callsWait + `' END,
		updated_at = clock_timestamp()
	RETURNING c.id, c.state, coalesce(c.exit_reason, ''), coalesce(c.from_number, ''), coalesce(c.to_number, '')
), timeline AS (
	INSERT INTO inbound_call_events (call_id, key, at, kind, word, source, operator, operator_name, reservation, reason)
	SELECT id, key, at, kind, word, source, operator, operator_name, nullif(reservation, ''), reason
	FROM told
	ORDER BY id, key
	ON CONFLICT (call_id, key) DO NOTHING
)
SELECT * FROM moved`

// inboundReopened is the condition under which it is decided anew what is done about a caller: nothing was, and the
// caller has asked to be called back after all. A long message may be heard before a key is pressed.
const inboundReopened = `(c.follow_up = 'none' AND c.answered_at IS NULL AND excluded.answered_at IS NULL
				AND excluded.exit = 'CALLBACK_REQUESTED' AND excluded.exit_rank > c.exit_rank)`

// inboundNews is the condition under which what is told changes a call's state or operator.
const inboundNews = `(c.answered_at IS NULL AND excluded.answered_at IS NOT NULL
			OR excluded.exit_rank > c.exit_rank
			OR excluded.exit_rank = c.exit_rank AND excluded.exit = 'MISSED' AND c.exit = 'ABANDONED'
			OR c.answered_at IS NULL AND c.exit IS NULL
				AND (excluded.phase_tier, excluded.phase_at, excluded.phase_reservation, excluded.phase_order)
					> (c.phase_tier, c.phase_at, c.phase_reservation, c.phase_order)
				AND (excluded.phase, excluded.phase_operator) IS DISTINCT FROM (c.phase, c.phase_operator))`
