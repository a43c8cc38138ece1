-- +goose Up

-- Lists of recipients, which schedules and batches send to.
CREATE TABLE lists (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name          text        NOT NULL UNIQUE CHECK (name <> ''),
    members_count integer     NOT NULL DEFAULT 0 CHECK (members_count >= 0), -- kept by every statement that adds or removes members
    created_at    timestamptz NOT NULL DEFAULT now(),
    updated_at    timestamptz NOT NULL DEFAULT now()
);

-- A member is a number with its parameters: relatives may share a phone, and each gets a message of
-- their own. The same number with the same parameters is on a list once. Members have the order in
-- which they were added, that of their ids.
CREATE TABLE list_members (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    list_id     bigint      NOT NULL REFERENCES lists ON DELETE CASCADE,
    member_key  bytea       NOT NULL, -- hash of to_hash and params: the same for the same member
    to_number   text        NOT NULL, -- E.164
    to_national text        NOT NULL, -- as people in the number's country write it
    region      text        NOT NULL, -- the number's country
    kind        text        NOT NULL, -- what answers at it, which decides whether an SMS can reach it
    to_hash     bytea       NOT NULL, -- keyed hash of to_number, as in notifications
    tail_hash   bytea       NOT NULL, -- keyed hash of the last 4 digits
    params      jsonb       NOT NULL CHECK (jsonb_typeof(params) = 'object'),
    timezone    text,                 -- of the IANA database; nothing: that of the schedule
    locale      text,                 -- BCP 47
    created_at  timestamptz NOT NULL DEFAULT now(),
    updated_at  timestamptz NOT NULL DEFAULT now(),
    UNIQUE (list_id, member_key)
);

CREATE INDEX list_members_in_order ON list_members (list_id, id);

-- Members are found by a whole number or by its last 4 digits. No index holds a number that can be
-- read.
CREATE INDEX list_members_number ON list_members (to_hash, list_id, id);
CREATE INDEX list_members_tail ON list_members (tail_hash, list_id, id);

-- A template that something was sent with is not deleted but archived: it can be read for ever and
-- nothing new is sent with it. Its name is free again.
ALTER TABLE templates
    ADD COLUMN archived_at timestamptz,
    DROP CONSTRAINT templates_name_key;
CREATE UNIQUE INDEX templates_name_key ON templates (name) WHERE archived_at IS NULL;

-- What the values of some placeholders must be: name -> kind. Those that it does not name are text.
ALTER TABLE template_versions ADD COLUMN kinds jsonb NOT NULL DEFAULT '{}';

-- Whether anything was sent with a template. Notifications of batches have theirs from the batch.
CREATE INDEX notifications_of_template ON notifications (template_id, template_version) WHERE template_id IS NOT NULL;
CREATE INDEX batches_of_template ON batches (template_id, template_version) WHERE template_id IS NOT NULL;

-- +goose Down
DROP INDEX batches_of_template;
DROP INDEX notifications_of_template;
ALTER TABLE template_versions DROP COLUMN kinds;
UPDATE templates SET name = name || ' (archived, ' || id || ')' WHERE archived_at IS NOT NULL;
DROP INDEX templates_name_key;
ALTER TABLE templates
    DROP COLUMN archived_at,
    ADD CONSTRAINT templates_name_key UNIQUE (name);
DROP TABLE list_members;
DROP TABLE lists;
