-- +goose Up

-- A carrier's word that moves no row to another status must not change an index: the update then stays within its page
-- (HOT). So the indexes of the carrier's queue no longer name carrier_rank. A row carries the mark itself: set by the
-- claim under a pace and by that of a call, taken off by the word with which the row leaves the queue.
ALTER TABLE notifications ADD COLUMN queued boolean NOT NULL DEFAULT false;
UPDATE notifications SET queued = true
WHERE status IN ('SENDING', 'PENDING') AND (paced OR channel = 'CALL')
    AND carrier_rank < CASE channel WHEN 'CALL' THEN 2 ELSE 5 END;

DROP INDEX notifications_at_carrier;
CREATE INDEX notifications_at_carrier ON notifications (sender_id)
    WHERE queued AND status IN ('SENDING', 'PENDING');
DROP INDEX notifications_calls_queued;
CREATE INDEX notifications_calls_queued ON notifications (batch_id)
    WHERE queued AND channel = 'CALL' AND status = 'PENDING' AND cancel_requested_at IS NULL;

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION queued_at_carrier(sender bigint, up_to integer) RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN (
        SELECT count(*)
        FROM (
            SELECT FROM notifications WHERE sender_id = sender AND queued AND status IN ('SENDING', 'PENDING') LIMIT up_to
        ) AS queued
    );
END
$$;
-- +goose StatementEnd

ALTER TABLE notifications DROP COLUMN paced;

-- +goose Down
ALTER TABLE notifications ADD COLUMN paced boolean NOT NULL DEFAULT false;
UPDATE notifications SET paced = true WHERE queued;

DROP INDEX notifications_at_carrier;
CREATE INDEX notifications_at_carrier ON notifications (sender_id)
    WHERE paced AND (status = 'SENDING' OR status = 'PENDING' AND carrier_rank < CASE channel WHEN 'CALL' THEN 2 ELSE 5 END);
DROP INDEX notifications_calls_queued;
CREATE INDEX notifications_calls_queued ON notifications (batch_id)
    WHERE channel = 'CALL' AND status = 'PENDING' AND carrier_rank < 2 AND cancel_requested_at IS NULL;

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION queued_at_carrier(sender bigint, up_to integer) RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN (
        SELECT count(*)
        FROM (
            SELECT FROM notifications
            WHERE sender_id = sender
                AND paced AND (status = 'SENDING' OR status = 'PENDING' AND carrier_rank < CASE channel WHEN 'CALL' THEN 2 ELSE 5 END)
            LIMIT up_to
        ) AS queued
    );
END
$$;
-- +goose StatementEnd

ALTER TABLE notifications DROP COLUMN queued;
