-- +goose Up

-- Schedules send to everybody on a list, again and again. This table is the truth; Temporal has one
-- Schedule for each row, schedule/<id>, which a sync makes equal.
CREATE TABLE schedules (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name            text        NOT NULL CHECK (name <> ''),
    channel         channel     NOT NULL,
    execution_time  time(0),
    days_of_week    text[]      NOT NULL, -- MON to SUN; none: every day
    days_of_month   integer[]   NOT NULL, -- none: every day
    cron            text,                 -- in the place of the three above
    timezone        text        NOT NULL, -- of the IANA database
    starts_on       date,
    ends_on         date,                 -- the last day
    template_id     bigint      REFERENCES templates, -- its current version is sent
    list_id         bigint      REFERENCES lists,
    is_active       boolean     NOT NULL,
    pause_note      text,                 -- why it is not active
    catchup_window  interval    NOT NULL, -- a run that is later is skipped
    note            text,

    revision        integer     NOT NULL DEFAULT 1, -- counts changes by people: the ETag
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now(),
    deleted_at      timestamptz,          -- its runs are kept, and the sync must know
    watched_until   timestamptz NOT NULL DEFAULT now(), -- runs that were due before are known to have run, or to be missed

    synced_revision integer     NOT NULL DEFAULT 0, -- what Temporal has
    synced_at       timestamptz,
    sync_error      text,                 -- why Temporal does not have the newest revision
    sync_retry_at   timestamptz,          -- not before, after an error

    CHECK ((execution_time IS NULL) <> (cron IS NULL)),
    CHECK (starts_on <= ends_on),
    CHECK ((deleted_at IS NOT NULL) = (template_id IS NULL) AND (deleted_at IS NOT NULL) = (list_id IS NULL))
);

CREATE UNIQUE INDEX schedules_name ON schedules (name) WHERE deleted_at IS NULL;
CREATE INDEX schedules_unsynced ON schedules (id) WHERE synced_revision < revision;
CREATE INDEX schedules_watched ON schedules (watched_until) WHERE is_active AND deleted_at IS NULL;
CREATE INDEX schedules_of_list ON schedules (list_id) WHERE deleted_at IS NULL;
CREATE INDEX schedules_of_template ON schedules (template_id) WHERE deleted_at IS NULL;

-- The times that a schedule ran, or should have: one for what the clocks of its zone showed, however
-- often Temporal fires. Runs by hand have no such time.
CREATE TABLE schedule_runs (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    schedule_id  bigint      NOT NULL REFERENCES schedules,
    local_time   timestamp(0),
    scheduled_at timestamptz NOT NULL,
    batch_id     uuid,
    skip_reason  text,
    created_at   timestamptz NOT NULL DEFAULT now(),
    UNIQUE (schedule_id, local_time),
    CHECK ((batch_id IS NULL) <> (skip_reason IS NULL))
);

CREATE INDEX schedule_runs_newest ON schedule_runs (schedule_id, scheduled_at, id);

ALTER TABLE batches ADD COLUMN schedule_id bigint REFERENCES schedules;
CREATE INDEX batches_of_schedule ON batches (schedule_id) WHERE schedule_id IS NOT NULL;

-- +goose Down
DROP INDEX batches_of_schedule;
ALTER TABLE batches DROP COLUMN schedule_id;
DROP TABLE schedule_runs;
DROP TABLE schedules;
