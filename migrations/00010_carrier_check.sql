-- +goose Up

-- The latest check of a batch against what the carrier itself lists.
CREATE TABLE carrier_checks (
    batch_id       uuid        PRIMARY KEY REFERENCES batches,
    id             uuid        NOT NULL UNIQUE, -- a new one for each check
    requested_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at     timestamptz,                 -- when Temporal acknowledged its workflow
    alive_at       timestamptz NOT NULL DEFAULT clock_timestamp(), -- the latest sign of life
    ended_at       timestamptz,
    failure        text,                        -- why it ended without a result
    compared       integer     NOT NULL DEFAULT 0, -- notifications of the batch that the carrier has accepted, by the ledger
    listed         integer     NOT NULL DEFAULT 0, -- sends that the carrier showed
    unverified     integer     NOT NULL DEFAULT 0, -- notifications that its list lacks and that were not asked for one by one
    second_sids    integer     NOT NULL DEFAULT 0,
    extra          integer     NOT NULL DEFAULT 0,
    missing        integer     NOT NULL DEFAULT 0,
    status_differs integer     NOT NULL DEFAULT 0
);

CREATE INDEX carrier_checks_unstarted ON carrier_checks (requested_at) WHERE started_at IS NULL AND ended_at IS NULL;

-- The first differences that the check has found.
CREATE TABLE carrier_differences (
    batch_id           uuid    NOT NULL REFERENCES carrier_checks,
    place              integer NOT NULL,
    kind               text    NOT NULL,
    notification_id    uuid    NOT NULL,
    twilio_sid         text    NOT NULL,
    carrier_status     text,        -- the carrier's word; null where it has no such send
    carrier_created_at timestamptz,
    PRIMARY KEY (batch_id, place)
);

-- Few notifications have a second SID, and those are looked for.
CREATE INDEX notification_events_second_sid ON notification_events (notification_id) WHERE kind = 'second_sid';

-- +goose Down
DROP INDEX notification_events_second_sid;
DROP TABLE carrier_differences;
DROP TABLE carrier_checks;
