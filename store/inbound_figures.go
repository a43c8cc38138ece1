package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// InboundFigures are what a call centre is measured by: what is happening now, and what became of the
// calls that came in within a time.
type InboundFigures struct {
	Received    int64         // hear the greeting
	Waiting     int64         // in the queue
	Reserved    int64         // an operator's phone rings
	Answered    int64         // speak with an operator
	LongestWait time.Duration // of those who wait

	Calls         int64 // that came in within the time, whatever became of them
	Offered       int64 // of them, let into the queue
	Handled       int64 // spoke or speak with an operator
	InTime        int64 // were answered within the service level's threshold
	Abandoned     int64
	TimedOut      int64
	Callbacks     int64 // asked to be called back
	TurnedAway    int64
	Missed        int64         // came in while we could not be reached
	FollowedUp    int64         // got an SMS, a call or a task
	AverageAnswer time.Duration // from the queue to an operator
	AverageTalk   time.Duration // of the calls that are over
}

// InboundFigures reads the figures of the calls that came in within the last while, of which those
// count as answered in time that waited for at most threshold.
func (s *Store) InboundFigures(ctx context.Context, within, threshold time.Duration) (InboundFigures, error) {
	figures, err := one(ctx, s, pgx.RowToStructByPos[InboundFigures], `
		WITH there AS (
			SELECT count(*) FILTER (WHERE state = 'RECEIVED') AS received, count(*) FILTER (WHERE state = 'WAITING') AS waiting,
				count(*) FILTER (WHERE state = 'RESERVED') AS reserved, count(*) FILTER (WHERE state = 'ANSWERED') AS answered,
				max(clock_timestamp() - waiting_at) FILTER (WHERE state IN ('WAITING', 'RESERVED')) AS longest
			FROM inbound_calls
			WHERE state IN ('RECEIVED', 'WAITING', 'RESERVED', 'ANSWERED')
		), came AS (
			SELECT count(*) AS calls,
				count(*) FILTER (WHERE waiting_at IS NOT NULL OR answered_at IS NOT NULL) AS offered,
				count(*) FILTER (WHERE answered_at IS NOT NULL) AS handled,
				count(*) FILTER (WHERE answered_at - coalesce(waiting_at, received_at, created_at) <= $2::interval) AS in_time,
				count(*) FILTER (WHERE state = 'ABANDONED') AS abandoned, count(*) FILTER (WHERE state = 'TIMED_OUT') AS timed_out,
				count(*) FILTER (WHERE state = 'CALLBACK_REQUESTED') AS callbacks, count(*) FILTER (WHERE state = 'TURNED_AWAY') AS turned_away,
				count(*) FILTER (WHERE state = 'MISSED') AS missed,
				count(*) FILTER (WHERE followed_up_at IS NOT NULL) AS followed_up,
				avg(greatest('0', answered_at - coalesce(waiting_at, received_at, created_at))) FILTER (WHERE answered_at IS NOT NULL) AS answer,
				avg(greatest('0', coalesce(talked_until, exit_at) - answered_at)) FILTER (WHERE state = 'FINISHED') AS talk
			FROM inbound_calls
			WHERE created_at > clock_timestamp() - $1::interval
		)
		SELECT received, waiting, reserved, answered, coalesce(greatest('0', longest), '0'),
			calls, offered, handled, in_time, abandoned, timed_out, callbacks, turned_away, missed, followed_up,
			coalesce(answer, '0'), coalesce(talk, '0')
		FROM there, came`, within, threshold)
	if err != nil {
		return figures, fmt.Errorf("read the figures of calls: %w", err)
	}
	return figures, nil
}

// InboundOperator is what one operator has done.
type InboundOperator struct {
	SID         string // the latest: whoever is set up anew is another worker to TaskRouter
	Name        *string
	Busy        bool // speaks with a caller, or the phone rings
	Answered    int64
	AverageTalk time.Duration
	LastAt      *time.Time // when the last call was answered
}

// InboundOperators lists the operators who answered a call within the last while, or whose phones
// ring, by name: a name is one operator.
func (s *Store) InboundOperators(ctx context.Context, within time.Duration) ([]InboundOperator, error) {
	operators, err := many(ctx, s, pgx.RowToStructByPos[InboundOperator], `
		SELECT (array_agg(operator ORDER BY answered_at DESC NULLS FIRST))[1], max(name), bool_or(busy), count(*) FILTER (WHERE answered_at IS NOT NULL),
			coalesce(avg(greatest('0', exit_at - answered_at)) FILTER (WHERE exit_at IS NOT NULL), '0'), max(answered_at)
		FROM (
			SELECT operator, max(name) OVER (PARTITION BY operator) AS name, busy, answered_at, exit_at
			FROM (
				SELECT r.operator, r.operator_name AS name, c.state = 'ANSWERED' AND r.ended_at IS NULL AND r.released_at IS NULL AS busy,
					coalesce(r.answered_at, r.ended_at) AS answered_at, coalesce(r.ended_at, c.exit_at) AS exit_at
				FROM inbound_reservations r
				JOIN inbound_calls c ON c.id = r.call_id
				WHERE `+reservationAnswered+`
					AND (r.answered_at > clock_timestamp() - $1::interval
						OR r.answered_at IS NULL AND r.ended_at > clock_timestamp() - $1::interval)
				UNION ALL
				SELECT phase_operator, phase_operator_name, true, NULL, NULL
				FROM inbound_calls
				WHERE state IN ('RECEIVED', 'WAITING', 'RESERVED', 'ANSWERED') AND state = 'RESERVED'
			) AS work
			WHERE operator IS NOT NULL
		) AS work
		GROUP BY coalesce(name, operator)
		ORDER BY 2, 1`, within)
	if err != nil {
		return nil, fmt.Errorf("read what operators have done: %w", err)
	}
	return operators, nil
}

// ServiceLevel is the share of calls that were answered in time, of those that were answered at all or
// left the queue unanswered; 1 when there were none.
func (f InboundFigures) ServiceLevel() float64 {
	if of := f.Handled + f.Abandoned + f.TimedOut + f.Callbacks; of > 0 {
		return float64(f.InTime) / float64(of)
	}
	return 1
}

// AbandonmentRate is the share of calls that were hung up in the queue, of those that entered it.
func (f InboundFigures) AbandonmentRate() float64 {
	if f.Offered > 0 {
		return float64(f.Abandoned) / float64(f.Offered)
	}
	return 0
}
