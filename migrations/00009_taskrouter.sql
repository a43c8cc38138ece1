-- +goose Up

-- What was asked to be done at TaskRouter: one workflow does one after the other, the oldest first.
CREATE TABLE taskrouter_runs (
    id           uuid        PRIMARY KEY,
    action       text        NOT NULL CHECK (action IN ('plan', 'apply', 'destroy')),
    file_name    text        NOT NULL,
    file         text        NOT NULL, -- as it was given; a destroy needs none
    requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at  timestamptz,
    changes      jsonb       NOT NULL DEFAULT '[]', -- that a plan found, or that were made
    notes        text[]      NOT NULL DEFAULT '{}',
    problem      text,                              -- why it came to an end early
    held_by      uuid,                              -- the try that carries it out
    held_until   timestamptz                        -- and writes nothing to Twilio after that, until it holds on
);

CREATE INDEX taskrouter_runs_unfinished ON taskrouter_runs (requested_at, id) WHERE finished_at IS NULL;
CREATE INDEX taskrouter_runs_finished ON taskrouter_runs (finished_at);

-- What Todoku made at Twilio, and so may delete; and what numbers had before Todoku changed them. A row
-- is written before its object is made: one whose answer was lost is known by its name then.
CREATE TABLE taskrouter_objects (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind          text        NOT NULL,
    name          text        NOT NULL,
    workspace_sid text        NOT NULL, -- empty: in the account itself
    sid           text        UNIQUE,   -- none while the answer is not known
    before        jsonb,                -- of a number: the fields that were changed, as they were
    after         jsonb,                -- and as they were made
    made_at       timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- +goose Down
DROP TABLE taskrouter_objects;
DROP TABLE taskrouter_runs;
