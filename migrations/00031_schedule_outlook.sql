-- +goose Up

-- Which members lack a value that the template of the schedule needs, as it was found for one version of the template
-- and one state of the list. It is looked for again when either is another.
ALTER TABLE schedules
    ADD COLUMN misfits         jsonb NOT NULL DEFAULT '{"Count": 0}',
    ADD COLUMN misfits_seen_in text; -- template/version/list/its last change

-- +goose Down
ALTER TABLE schedules
    DROP COLUMN misfits,
    DROP COLUMN misfits_seen_in;
