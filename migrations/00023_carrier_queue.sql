-- +goose Up

-- What waits at the carrier cannot be stopped there (an SMS) or only one by one (a call), so a paced sender keeps
-- that queue short. A claim under a pace marks its row; rows of senders without pacing are in no index for this.
ALTER TABLE notifications ADD COLUMN paced boolean NOT NULL DEFAULT false;

-- Rows that are at the carrier, or on the way there, and have not left its queue: the ranks are those below
-- 'sent' and, of a call, below 'initiated'.
CREATE INDEX notifications_at_carrier ON notifications (sender_id)
    WHERE paced AND (status = 'SENDING' OR status = 'PENDING' AND carrier_rank < CASE channel WHEN 'CALL' THEN 2 ELSE 5 END);

ALTER TABLE senders
    ADD COLUMN last_callback_at      timestamptz, -- when a status callback last came, to about a second
    ADD COLUMN queue_full_at         timestamptz, -- since when singles wait because the carrier's queue is full
    ADD COLUMN batches_queue_full_at timestamptz, -- the same for batches, which leave a part of the queue to singles
    ADD COLUMN queue_listed_at       timestamptz, -- when the carrier was last asked what is still queued
    ADD COLUMN queue_unlimited_at    timestamptz; -- since when the limit is off, because callbacks do not come

-- How many rows of a sender are in the carrier's queue, up to a limit. It is volatile, so it sees what was committed
-- while the statement that calls it waited for the sender's row.
-- +goose StatementBegin
CREATE FUNCTION queued_at_carrier(sender bigint, up_to integer) RETURNS integer LANGUAGE plpgsql VOLATILE AS $$
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

-- +goose Down
DROP FUNCTION queued_at_carrier;
ALTER TABLE senders
    DROP COLUMN last_callback_at,
    DROP COLUMN queue_full_at,
    DROP COLUMN batches_queue_full_at,
    DROP COLUMN queue_listed_at,
    DROP COLUMN queue_unlimited_at;
DROP INDEX notifications_at_carrier;
ALTER TABLE notifications DROP COLUMN paced;
