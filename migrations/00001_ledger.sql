-- +goose Up
CREATE TYPE channel AS ENUM ('SMS', 'CALL', 'LINE_TEXT', 'LINE_CARD');

-- HELD is not here: it is what an ACCEPTED row reads as while its sender is stopped.
CREATE TYPE notification_status AS ENUM (
    'ACCEPTED', 'SENDING', 'PENDING', 'SUCCESS', 'FAILED', 'UNKNOWN', 'SKIPPED', 'CANCELED'
);

-- A sender is the number or Messaging Service that notifications of one channel are sent from.
-- Pacing belongs to it: next_slot is the earliest moment of its next create.
CREATE TABLE senders (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    channel     channel     NOT NULL,
    address     text        NOT NULL,
    next_slot   timestamptz NOT NULL DEFAULT 'epoch',
    slowed_at   timestamptz, -- when the carrier last asked it to wait
    slow_code   text,        -- by which error code or HTTP status
    stopped_at  timestamptz,
    stop_code   text,
    stop_reason text,
    created_at  timestamptz NOT NULL DEFAULT now(),
    UNIQUE (channel, address),
    CHECK ((stopped_at IS NULL) = (stop_code IS NULL))
);

CREATE TABLE templates (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name            text        NOT NULL UNIQUE CHECK (name <> ''),
    channel         channel     NOT NULL,
    current_version integer     NOT NULL DEFAULT 1,
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now()
);

-- A notification pins a version, so what was sent can always be rendered again: versions never change.
CREATE TABLE template_versions (
    template_id bigint      NOT NULL REFERENCES templates,
    version     integer     NOT NULL CHECK (version > 0),
    body        text        NOT NULL CHECK (body <> ''),
    params      text[]      NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (template_id, version)
);

-- +goose StatementBegin
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% rows never change: add a new one', TG_TABLE_NAME;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER template_versions_are_immutable BEFORE UPDATE ON template_versions
    FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- The ledger: one row for each notification.
CREATE TABLE notifications (
    id                uuid                PRIMARY KEY,
    channel           channel             NOT NULL,
    status            notification_status NOT NULL DEFAULT 'ACCEPTED',
    reference         text,

    to_number         text                NOT NULL, -- E.164
    to_national       text                NOT NULL, -- as people in the number's country write it
    to_hash           bytea               NOT NULL, -- keyed hash of to_number, for searching
    message           text,                         -- the body, when no template was used
    template_id       bigint,
    template_version  integer,
    params            jsonb,
    sender_id         bigint              NOT NULL REFERENCES senders,
    require_human     boolean             NOT NULL DEFAULT false, -- calls: SUCCESS only when a person answered

    workflow_id       text,                         -- the workflow that owns the row: set once, by the first claim or by the relay
    claim_token       uuid,                         -- held while SENDING
    claimed_at        timestamptz,                  -- of the latest claim
    claim_deadline    timestamptz,                  -- nothing is written to the wire after it
    first_claimed_at  timestamptz,                  -- SEND_DEADLINE counts from here
    attempts          integer             NOT NULL DEFAULT 0,
    retry_at          timestamptz,                  -- not before, after a try that failed
    absent_since      timestamptz,                  -- SENDING: when a complete list of the carrier first lacked it
    check_at          timestamptz,                  -- PENDING: when the carrier is asked next, after a first time

    twilio_sid        text,
    twilio_status     text,                         -- the carrier's own word
    carrier_rank      smallint            NOT NULL DEFAULT 0, -- its place in the channel's order of words
    twilio_error_code text,
    failure_code      text,                         -- ours: SEND_DEADLINE, NO_RECEIPT, NOT_ANSWERED, …
    error_message     text,                         -- for people, in Japanese and English
    segments          integer,
    duration_seconds  integer,
    answered_by       text,

    created_at        timestamptz         NOT NULL DEFAULT now(),
    send_at           timestamptz         NOT NULL DEFAULT now(),
    relay_at          timestamptz         NOT NULL DEFAULT now(), -- from when the relay looks after a row without a workflow
    started_at        timestamptz,                  -- when Temporal acknowledged the row's workflow
    sent_at           timestamptz,                  -- when the carrier accepted it
    settled_at        timestamptz,                  -- when the status became final
    updated_at        timestamptz         NOT NULL DEFAULT now(),

    FOREIGN KEY (template_id, template_version) REFERENCES template_versions,
    CHECK ((message IS NULL) <> (template_id IS NULL)),
    CHECK ((status = 'SENDING') = (claim_token IS NOT NULL))
);

-- A receipt or a listed resource that knows only its SID finds its row.
CREATE UNIQUE INDEX notifications_twilio_sid ON notifications (twilio_sid) WHERE twilio_sid IS NOT NULL;

-- What a workflow has left to do: it reads the rows that it owns and that are not final.
CREATE INDEX notifications_outstanding ON notifications (workflow_id) WHERE status IN ('ACCEPTED', 'SENDING', 'PENDING');

-- The relay starts workflows for unfinished rows that have none.
CREATE INDEX notifications_unstarted ON notifications (relay_at)
    WHERE started_at IS NULL AND status IN ('ACCEPTED', 'SENDING', 'PENDING');

-- The relay wakes the owners of rows that could be claimed and were not.
CREATE INDEX notifications_accepted ON notifications (sender_id, greatest(send_at, retry_at)) WHERE status = 'ACCEPTED';

-- The relay looks for claims that have run out.
CREATE INDEX notifications_sending ON notifications (claim_deadline) WHERE status = 'SENDING';

-- Numbers the relay's shards: each is the workflow relay/<n>.
CREATE SEQUENCE relay_shards;

-- The timeline, append-only. A callback for an id that the ledger does not have is kept here too,
-- so there is no foreign key.
CREATE TABLE notification_events (
    notification_id uuid        NOT NULL,
    id              bigint      GENERATED ALWAYS AS IDENTITY,
    at              timestamptz NOT NULL DEFAULT clock_timestamp(),
    kind            text        NOT NULL,
    status          notification_status, -- of the row after the event
    source          text,                -- who said it: create, webhook, poll
    twilio_status   text,
    twilio_sid      text,
    error_code      text,
    detail          text,
    PRIMARY KEY (notification_id, id)
);

CREATE TABLE api_keys (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name         text        NOT NULL CHECK (name <> ''),
    key_hash     bytea       NOT NULL UNIQUE,
    key_start    text        NOT NULL, -- the first characters, to recognise a key by
    scopes       text[]      NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz,
    revoked_at   timestamptz
);

-- +goose Down
DROP TABLE api_keys;
DROP TABLE notification_events;
DROP SEQUENCE relay_shards;
DROP TABLE notifications;
DROP TABLE template_versions;
DROP FUNCTION refuse_change;
DROP TABLE templates;
DROP TABLE senders;
DROP TYPE notification_status;
DROP TYPE channel;
