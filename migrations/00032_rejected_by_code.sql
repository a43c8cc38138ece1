-- +goose Up

-- How many rows of the request were rejected for each code. The first of them are in the column rejected.
ALTER TABLE batches
    ADD COLUMN rejected_by_code jsonb NOT NULL DEFAULT '{}';

-- +goose Down
ALTER TABLE batches
    DROP COLUMN rejected_by_code;
