-- +goose Up

-- The earliest answer that was told of no operator's reservation. Those of reservations may be taken back: one that failed
-- after it was accepted was no answer.
ALTER TABLE inbound_calls ADD COLUMN answer_told_at timestamptz;

UPDATE inbound_calls c
SET answer_told_at = answered_at
WHERE answered_at IS NOT NULL
    AND NOT EXISTS (
        SELECT FROM inbound_reservations r
        WHERE r.call_id = c.id AND coalesce(r.answered_at, r.ended_at) <= c.answered_at
    );

-- +goose Down
ALTER TABLE inbound_calls DROP COLUMN answer_told_at;
