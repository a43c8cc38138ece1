-- +goose Up

-- When it was decided what is done about the caller: one follow-up for a person and day, so many for an hour.
ALTER TABLE inbound_calls ADD COLUMN follow_up_at timestamptz;
CREATE INDEX inbound_calls_followed_up ON inbound_calls (follow_up_at) WHERE follow_up IN ('sms', 'call', 'task');

-- When the last operator ended; null while one still speaks with the caller, or is being called.
ALTER TABLE inbound_calls ADD COLUMN talked_until timestamptz;

-- One row for each operator who was chosen for a call. Times merge by minimum, so that the order of events and their
-- repeats leave no trace. Events without a reservation's SID share one row, with an empty one.
CREATE TABLE inbound_reservations (
    call_id       uuid        NOT NULL,
    reservation   text        NOT NULL,
    operator      text,
    operator_name text,
    began_at      timestamptz NOT NULL, -- the earliest of all
    answered_at   timestamptz,
    released_at   timestamptz,
    ended_at      timestamptz,
    PRIMARY KEY (call_id, reservation)
);

CREATE INDEX inbound_reservations_answered ON inbound_reservations (answered_at) WHERE answered_at IS NOT NULL;

INSERT INTO inbound_reservations (call_id, reservation, operator, operator_name, began_at, answered_at, ended_at)
SELECT id, '', answered_by, answered_by_name, answered_at, answered_at, exit_at
FROM inbound_calls
WHERE answered_at IS NOT NULL AND answered_by IS NOT NULL;

-- The intent to make a task of calling back is written before the task: one whose answer was lost is looked for by its token.
CREATE TABLE inbound_callback_tasks (
    call_id      uuid        PRIMARY KEY,
    token        uuid        NOT NULL,
    posted_at    timestamptz,          -- when it was given to TaskRouter; null: it was not, or was refused
    held_until   timestamptz NOT NULL, -- nobody else posts or looks before
    absent_since timestamptz           -- a complete list lacked it then
);

-- +goose Down
DROP TABLE inbound_callback_tasks;
DROP TABLE inbound_reservations;
ALTER TABLE inbound_calls DROP COLUMN talked_until;
DROP INDEX inbound_calls_followed_up;
ALTER TABLE inbound_calls DROP COLUMN follow_up_at;
