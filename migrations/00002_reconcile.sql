-- +goose Up

-- A row that nobody accepted here: the carrier showed a send of ours that no row had. It has no
-- workflow, and a receipt that names the row it belongs to takes its SID over.
ALTER TABLE notifications ADD COLUMN found_at timestamptz;

-- Status checks read what the carrier has not told the outcome of.
CREATE INDEX notifications_pending ON notifications (channel, sent_at) WHERE status = 'PENDING';

-- Listings of the carrier. The one that runs has no end yet: there is at most one for each channel,
-- and whoever runs it says now and then that he lives. One that has ended says what it covered, so
-- that checks which fell due before it began need no listing of their own.
CREATE TABLE listings (
    id           uuid        PRIMARY KEY,
    channel      channel     NOT NULL,
    began_at     timestamptz NOT NULL,
    alive_at     timestamptz NOT NULL,
    covers_from  timestamptz, -- of sent_at
    covers_until timestamptz,
    ended_at     timestamptz,
    CHECK ((ended_at IS NULL) = (covers_from IS NULL) AND (ended_at IS NULL) = (covers_until IS NULL))
);

CREATE UNIQUE INDEX listings_running ON listings (channel) WHERE ended_at IS NULL;

-- +goose Down
DROP TABLE listings;
DROP INDEX notifications_pending;
DELETE FROM notifications WHERE found_at IS NOT NULL;
ALTER TABLE notifications DROP COLUMN found_at;
