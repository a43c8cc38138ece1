-- +goose Up

-- How calls that come in are received: what `todoku taskrouter apply` made of its file. One row.
CREATE TABLE inbound_policy (
    single     boolean     PRIMARY KEY DEFAULT true CHECK (single),
    policy     jsonb       NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);

CREATE TYPE inbound_state AS ENUM (
    'RECEIVED', 'WAITING', 'RESERVED', 'ANSWERED',
    'FINISHED', 'CALLBACK_REQUESTED', 'TIMED_OUT', 'TURNED_AWAY', 'ABANDONED'
);

-- One row for each call that came in. Its id follows from its SID. What events tell of it is merged by
-- minimum and maximum, so that their order and their repeats leave no trace; the state follows from
-- what was merged, by the one rule below.
CREATE TABLE inbound_calls (
    id                 uuid          PRIMARY KEY,
    call_sid           text          NOT NULL,
    task_sid           text,
    from_number        text, -- as Twilio has it: E.164, or what the caller showed
    from_hash          bytea, -- keyed hash of a number in E.164, for searching
    to_number          text,
    created_at         timestamptz   NOT NULL DEFAULT clock_timestamp(),

    received_at        timestamptz, -- the earliest of each kind
    waiting_at         timestamptz,
    reserved_at        timestamptz,
    answered_at        timestamptz,
    answered_by        text, -- the operator of that event: SID and name
    answered_by_name   text,

    phase              inbound_state NOT NULL DEFAULT 'RECEIVED', -- the highest by these four
    phase_tier         smallint      NOT NULL DEFAULT 0,
    phase_at           timestamptz   NOT NULL DEFAULT '-infinity',
    phase_reservation  text          NOT NULL DEFAULT '',
    phase_order        smallint      NOT NULL DEFAULT 0,
    phase_operator     text,
    phase_operator_name text,

    exit               inbound_state, -- the highest by these two; of two equal ones the earlier
    exit_rank          smallint      NOT NULL DEFAULT 0,
    exit_at            timestamptz,
    exit_reason        text,

    state              inbound_state NOT NULL GENERATED ALWAYS AS (
        CASE WHEN exit IS NOT NULL AND answered_at IS NOT NULL THEN 'FINISHED'::inbound_state
            WHEN exit IS NOT NULL THEN exit
            WHEN answered_at IS NOT NULL THEN 'ANSWERED'::inbound_state
            ELSE phase END
    ) STORED,
    version            integer       NOT NULL DEFAULT 1, -- counts what changed the state or the operator
    updated_at         timestamptz   NOT NULL DEFAULT clock_timestamp(),

    workflow_id        text,
    told_version       integer       NOT NULL DEFAULT 0, -- what the workflow knows
    relay_at           timestamptz   NOT NULL DEFAULT clock_timestamp(), -- from when the relay looks after it
    started_at         timestamptz,  -- when Temporal acknowledged the workflow
    look_by            timestamptz,  -- the workflow looks at the call until then, or is gone
    closed_at          timestamptz,  -- nothing is left to be done about the call

    follow_up          text CHECK (follow_up IN ('none', 'sms', 'call', 'task')), -- decided once
    follow_up_reason   text,         -- why none, where one was wanted
    notification_id    uuid UNIQUE,  -- of an SMS or a call
    follow_up_task_sid text,         -- of a task
    followed_up_at     timestamptz
);

CREATE INDEX inbound_calls_newest ON inbound_calls (created_at, id);
CREATE INDEX inbound_calls_open ON inbound_calls (waiting_at) WHERE state IN ('RECEIVED', 'WAITING', 'RESERVED', 'ANSWERED');
CREATE INDEX inbound_calls_state ON inbound_calls (state, created_at, id);
CREATE INDEX inbound_calls_caller ON inbound_calls (from_hash, created_at, id) WHERE from_hash IS NOT NULL;
CREATE INDEX inbound_calls_received ON inbound_calls (received_at);

-- The relay starts workflows for calls that have none, and tells the others what changed.
CREATE INDEX inbound_calls_untold ON inbound_calls (relay_at) WHERE closed_at IS NULL AND told_version < version;
CREATE INDEX inbound_calls_neglected ON inbound_calls (look_by) WHERE closed_at IS NULL;

-- How long callers waited who were answered lately.
CREATE INDEX inbound_calls_answered ON inbound_calls (answered_at) WHERE answered_at IS NOT NULL;

-- The timeline, append-only. What is told of a task that belongs to no call is kept here too, so there
-- is no foreign key. An event that is delivered again has the same key and is not added again.
CREATE TABLE inbound_call_events (
    call_id       uuid        NOT NULL,
    id            bigint      GENERATED ALWAYS AS IDENTITY,
    key           text        NOT NULL,
    at            timestamptz NOT NULL, -- when it happened
    recorded_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    kind          text        NOT NULL, -- in Twilio's words
    word          text        NOT NULL, -- in ours
    source        text        NOT NULL,
    operator      text,
    operator_name text,
    reservation   text,
    reason        text,
    PRIMARY KEY (call_id, id)
);

CREATE UNIQUE INDEX inbound_call_events_once ON inbound_call_events (call_id, key);

-- +goose Down
DROP TABLE inbound_call_events;
DROP TABLE inbound_calls;
DROP TYPE inbound_state;
DROP TABLE inbound_policy;
