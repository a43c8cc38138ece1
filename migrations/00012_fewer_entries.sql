-- +goose Up

-- Every delivered row of a batch is written four times, and each time into every index that has it.

-- The ids of notifications have the order of acceptance, so those of a batch stand close together:
-- between its first and its last one there is nothing but what was accepted at the same time. A batch
-- knows these two, and its rows are read along the primary key. One that a process of the version before
-- accepts does not tell them.
ALTER TABLE batches
    ADD COLUMN first_id uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    ADD COLUMN last_id  uuid NOT NULL DEFAULT 'ffffffff-ffff-ffff-ffff-ffffffffffff';
UPDATE batches b SET
    first_id = coalesce((SELECT n.id FROM notifications n WHERE n.batch_id = b.id ORDER BY n.id LIMIT 1), first_id),
    last_id = coalesce((SELECT n.id FROM notifications n WHERE n.batch_id = b.id ORDER BY n.id DESC LIMIT 1), last_id);
DROP INDEX notifications_of_batch;

-- Rows that nobody owns are looked for by other indexes. And a statement that does not name an owner
-- cannot be planned along this one, which it was when nothing was outstanding at the time of a vacuum.
DROP INDEX notifications_outstanding;
CREATE INDEX notifications_outstanding ON notifications (workflow_id)
    WHERE workflow_id IS NOT NULL AND status IN ('ACCEPTED', 'SENDING', 'PENDING');

-- Whom a notification is for is written once, here: by its random hashes an index of the ledger had a page
-- of its own for nearly every entry. Every statement that adds notifications adds these, whoever writes it.
CREATE TABLE notification_recipients (
    to_hash         bytea NOT NULL, -- as in notifications
    notification_id uuid  NOT NULL
);
INSERT INTO notification_recipients (to_hash, notification_id)
SELECT to_hash, id FROM notifications ORDER BY to_hash, id;
ALTER TABLE notification_recipients ADD PRIMARY KEY (to_hash, notification_id);
DROP INDEX notifications_recipient;

-- In the order of the hashes: those that are near each other are written into the same pages.
-- +goose StatementBegin
CREATE FUNCTION add_notification_recipients() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO notification_recipients (to_hash, notification_id)
    SELECT to_hash, id FROM added ORDER BY to_hash, id;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER notifications_add_recipients AFTER INSERT ON notifications
    REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION add_notification_recipients();

-- +goose Down
CREATE INDEX notifications_recipient ON notifications (to_hash, id);
DROP TRIGGER notifications_add_recipients ON notifications;
DROP FUNCTION add_notification_recipients;
DROP TABLE notification_recipients;
DROP INDEX notifications_outstanding;
CREATE INDEX notifications_outstanding ON notifications (workflow_id) WHERE status IN ('ACCEPTED', 'SENDING', 'PENDING');
CREATE INDEX notifications_of_batch ON notifications (batch_id, id) WHERE batch_id IS NOT NULL;
ALTER TABLE batches DROP COLUMN first_id, DROP COLUMN last_id;
