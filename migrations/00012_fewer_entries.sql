-- +goose Up

-- Every delivered row of a batch is written four times, and each time into every index that has it.

-- The ids of notifications have the order of acceptance, so those of a batch stand close together:
-- between its first and its last one there is nothing but what was accepted at the same time. A batch
-- knows these two, and its rows are read along the primary key.
ALTER TABLE batches ADD COLUMN first_id uuid, ADD COLUMN last_id uuid;
UPDATE batches b SET
    first_id = (SELECT n.id FROM notifications n WHERE n.batch_id = b.id ORDER BY n.id LIMIT 1),
    last_id = (SELECT n.id FROM notifications n WHERE n.batch_id = b.id ORDER BY n.id DESC LIMIT 1);
ALTER TABLE batches ALTER COLUMN first_id SET NOT NULL, ALTER COLUMN last_id SET NOT NULL;
DROP INDEX notifications_of_batch;

-- Rows that nobody owns are looked for by other indexes. And a statement that does not name an owner
-- cannot be planned along this one, which it was when nothing was outstanding at the time of a vacuum.
DROP INDEX notifications_outstanding;
CREATE INDEX notifications_outstanding ON notifications (workflow_id)
    WHERE workflow_id IS NOT NULL AND status IN ('ACCEPTED', 'SENDING', 'PENDING');

-- Whom a notification is for is written once, here: by its random hashes an index of the ledger had a page
-- of its own for nearly every entry. Every statement that adds notifications adds these.
CREATE TABLE notification_recipients (
    to_hash         bytea NOT NULL, -- as in notifications
    notification_id uuid  NOT NULL
);
INSERT INTO notification_recipients (to_hash, notification_id)
SELECT to_hash, id FROM notifications ORDER BY to_hash, id;
ALTER TABLE notification_recipients ADD PRIMARY KEY (to_hash, notification_id);
DROP INDEX notifications_recipient;

-- +goose Down
CREATE INDEX notifications_recipient ON notifications (to_hash, id);
DROP TABLE notification_recipients;
DROP INDEX notifications_outstanding;
CREATE INDEX notifications_outstanding ON notifications (workflow_id) WHERE status IN ('ACCEPTED', 'SENDING', 'PENDING');
CREATE INDEX notifications_of_batch ON notifications (batch_id, id) WHERE batch_id IS NOT NULL;
ALTER TABLE batches DROP COLUMN first_id, DROP COLUMN last_id;
