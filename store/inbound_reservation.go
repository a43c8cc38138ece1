package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// ofReservation reports whether an event is about one operator's reservation of a call.
func ofReservation(e notify.InboundEvent) bool {
	switch e.Word {
	case notify.WordReserved, notify.WordReleased, notify.WordAnswered, notify.WordFinished:
		return e.CallSID != "" && (e.Reservation != "" || e.Operator.SID != "")
	}
	return false
}

// recordReservations merges what was told of reservations, and lets what follows from all of them move the calls: who
// speaks with the caller, and whether everybody has ended. The calls' rows are locked, so statements that come one
// after the other see what others have written. It puts the states into changes.
func recordReservations(ctx context.Context, tx pgx.Tx, events []notify.InboundEvent, changes []InboundChange) error {
	if _, err := tx.Exec(ctx, `
		INSERT INTO inbound_reservations AS r (call_id, reservation, operator, operator_name, began_at, answered_at, released_at, ended_at)
		SELECT t.id, t.reservation, min(nullif(t.operator, '')), min(nullif(t.name, '')), min(t.at),
			min(t.at) FILTER (WHERE t.word = 'answered'), min(t.at) FILTER (WHERE t.word = 'released'), min(t.at) FILTER (WHERE t.word = 'finished')
		FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::text[]) AS t (id, reservation, operator, name, at, word)
		GROUP BY t.id, t.reservation
		ORDER BY t.id, t.reservation
		ON CONFLICT (call_id, reservation) DO UPDATE SET
			operator = least(r.operator, excluded.operator), operator_name = least(r.operator_name, excluded.operator_name),
			began_at = least(r.began_at, excluded.began_at), answered_at = least(r.answered_at, excluded.answered_at),
			released_at = least(r.released_at, excluded.released_at), ended_at = least(r.ended_at, excluded.ended_at)`,
		column(events, func(e notify.InboundEvent) uuid.UUID { return e.CallID }),
		column(events, func(e notify.InboundEvent) string { return e.Reservation }),
		column(events, func(e notify.InboundEvent) string { return e.Operator.SID }),
		column(events, func(e notify.InboundEvent) string { return e.Operator.Name }),
		column(events, func(e notify.InboundEvent) time.Time { return e.At }),
		column(events, func(e notify.InboundEvent) string { return string(e.Word) })); err != nil {
		return err
	}
	// An end that follows from reservations has rank 0: a new reservation takes it back, and whatever else says that the
	// call is over outranks it.
	rows, err := tx.Query(ctx, `
		WITH reservation AS (
			SELECT call_id, reservation, operator, operator_name, ended_at, ended_at IS NULL AND released_at IS NULL AS goes_on,
				CASE WHEN `+reservationAnswered+` THEN coalesce(answered_at, ended_at) END AS answered_at
			FROM inbound_reservations r
			WHERE call_id = ANY ($1)
		), talk AS (
			SELECT call_id, min(answered_at) AS answered_at, max(ended_at) AS ended_at, bool_or(goes_on) AS goes_on,
				(array_agg(operator ORDER BY answered_at DESC, reservation DESC)
					FILTER (WHERE answered_at IS NOT NULL))[1] AS operator,
				(array_agg(operator_name ORDER BY answered_at DESC, reservation DESC)
					FILTER (WHERE answered_at IS NOT NULL))[1] AS operator_name
			FROM reservation
			GROUP BY call_id
		)
		UPDATE inbound_calls c SET
			answered_at = least(c.answer_told_at, talk.answered_at),
			answered_by = talk.operator, answered_by_name = talk.operator_name,
			talked_until = CASE WHEN NOT talk.goes_on THEN talk.ended_at END,
			exit = CASE
				WHEN c.exit_rank > 0 THEN c.exit
				WHEN NOT talk.goes_on AND talk.ended_at IS NOT NULL THEN 'FINISHED'::inbound_state END,
			exit_at = CASE WHEN c.exit_rank > 0 THEN c.exit_at WHEN NOT talk.goes_on THEN talk.ended_at END,
			version = c.version + CASE
				WHEN c.exit_rank = 0 AND (c.exit IS NULL) <> (talk.goes_on OR talk.ended_at IS NULL)
				OR c.answered_by IS DISTINCT FROM talk.operator
				OR (c.answered_at IS NULL) <> (least(c.answer_told_at, talk.answered_at) IS NULL) THEN 1 ELSE 0 END,
			updated_at = clock_timestamp()
		FROM talk
		WHERE c.id = talk.call_id
		RETURNING c.id, c.state::text`, column(events, func(e notify.InboundEvent) uuid.UUID { return e.CallID }))
	if err != nil {
		return err
	}
	var id uuid.UUID
	var state notify.InboundState
	_, err = pgx.ForEachRow(rows, []any{&id, &state}, func() error {
		for i := range changes {
			if changes[i].ID == id {
				changes[i].State = state
			}
		}
		return nil
	})
	return err
}

// reservationAnswered is the condition under which the operator of a reservation has talked with the caller, or does:
// an operator who had accepted and whose reservation then failed has not.
const reservationAnswered = `(r.ended_at IS NOT NULL OR r.answered_at IS NOT NULL AND r.released_at IS NULL)`
