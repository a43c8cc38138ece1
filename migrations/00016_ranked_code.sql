-- +goose Up
-- The error code of the row's highest carrier word that has one, with that word's rank: rank * 10^10 + code. The
-- greatest of them is the same for every order of receipts. twilio_error_code is its code while the row is FAILED.
ALTER TABLE notifications ADD COLUMN ranked_code bigint;

-- +goose Down
ALTER TABLE notifications DROP COLUMN ranked_code;
