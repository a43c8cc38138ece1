-- +goose Up
-- Templates and lists are changed by those who have read them, as schedules are: the ETag is the revision.
ALTER TABLE templates ADD COLUMN revision integer NOT NULL DEFAULT 1; -- counts changes by people
ALTER TABLE lists ADD COLUMN revision integer NOT NULL DEFAULT 1;     -- counts changes of the name

-- +goose Down
ALTER TABLE lists DROP COLUMN revision;
ALTER TABLE templates DROP COLUMN revision;
