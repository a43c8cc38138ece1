-- +goose Up

-- A notification's id begins with the time of its created_at, so the order of ids is that of acceptance:
-- pages of the list are read along the primary key, or along the indexes below, without created_at.
-- Every delivered row is written four times, and each time into every index that has it.
DROP INDEX notifications_newest;
DROP INDEX notifications_failed;
CREATE INDEX notifications_failed ON notifications (status, id)
    WHERE status IN ('FAILED', 'UNKNOWN', 'SKIPPED', 'CANCELED');
DROP INDEX notifications_recipient;
CREATE INDEX notifications_recipient ON notifications (to_hash, id);
DROP INDEX notifications_reference;
CREATE INDEX notifications_reference ON notifications (reference, id) WHERE reference IS NOT NULL;
DROP INDEX notifications_of_batch;
CREATE INDEX notifications_of_batch ON notifications (batch_id, id) WHERE batch_id IS NOT NULL;

-- Pages are filled by half when rows are added: the next versions of a row find room beside it, where
-- an earlier one is cleared away without a vacuum, and a receipt that changes no indexed column (sent
-- after queued) writes no index at all.
ALTER TABLE notifications SET (fillfactor = 50);

-- +goose Down
ALTER TABLE notifications RESET (fillfactor);
DROP INDEX notifications_of_batch;
CREATE INDEX notifications_of_batch ON notifications (batch_id, created_at, id) WHERE batch_id IS NOT NULL;
DROP INDEX notifications_reference;
CREATE INDEX notifications_reference ON notifications (reference, created_at, id) WHERE reference IS NOT NULL;
DROP INDEX notifications_recipient;
CREATE INDEX notifications_recipient ON notifications (to_hash, created_at, id);
DROP INDEX notifications_failed;
CREATE INDEX notifications_failed ON notifications (status, created_at, id)
    WHERE status IN ('FAILED', 'UNKNOWN', 'SKIPPED', 'CANCELED');
CREATE INDEX notifications_newest ON notifications (created_at, id);
