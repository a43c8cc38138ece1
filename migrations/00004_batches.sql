-- +goose Up

-- A bulk request: one text or template version for up to a million notifications. Pausing, canceling
-- and the pace are in this row, which every claim of one of its notifications reads and locks: a
-- commit here is an exact edge.
CREATE TABLE batches (
    id               uuid        PRIMARY KEY,
    name             text,
    channel          channel     NOT NULL,
    message          text,                 -- the body, when no template was used
    template_id      bigint,
    template_version integer,
    sender_id        bigint      NOT NULL REFERENCES senders,

    total            integer     NOT NULL CHECK (total > 0),
    rejected_count   integer     NOT NULL,
    rejected         jsonb       NOT NULL, -- the first of those rows of the request that nothing can be sent to
    ignored_columns  text[]      NOT NULL, -- of the file, which the template does not have

    shard_size       integer     NOT NULL CHECK (shard_size > 0),
    shards           integer     NOT NULL, -- n of them: the workflows batch/<id>/0 to batch/<id>/<n-1>
    shards_started   integer     NOT NULL DEFAULT 0, -- the first so many were started
    shard_started_at timestamptz,          -- the last one of them

    send_interval    interval,             -- its own pace, where that is slower than its sender's
    next_slot        timestamptz NOT NULL DEFAULT 'epoch', -- by its own pace
    send_at          timestamptz NOT NULL, -- nothing is claimed before
    paused_at        timestamptz,
    pause_reason     text,
    canceled_at      timestamptz,
    finished_at      timestamptz,          -- every notification is final

    workflow_id      text        NOT NULL, -- that carries the batch
    started_at       timestamptz,          -- when Temporal acknowledged it
    carry_by         timestamptz NOT NULL, -- it looks at the batch until then, or is gone
    created_at       timestamptz NOT NULL DEFAULT now(),

    FOREIGN KEY (template_id, template_version) REFERENCES template_versions,
    CHECK ((message IS NULL) <> (template_id IS NULL))
);

CREATE INDEX batches_newest ON batches (created_at, id);
CREATE INDEX batches_unfinished ON batches (send_at) WHERE finished_at IS NULL;

-- A notification of a batch has its text, template and time to send at from its batch, and its
-- workflow from the place in it.
ALTER TABLE notifications
    ADD COLUMN batch_id uuid, -- no foreign key: looking it up for each of a million rows would take as long as to write them
    ADD COLUMN batch_row integer, -- its row in the request: the first one is 1
    ADD COLUMN place integer,     -- its place among those that are sent, from 0; none where it is SKIPPED
    ADD CONSTRAINT notifications_of_batch CHECK ((batch_id IS NULL) = (batch_row IS NULL) AND (place IS NULL OR batch_id IS NOT NULL)),
    DROP CONSTRAINT notifications_check,
    ADD CONSTRAINT notifications_text CHECK (
        CASE WHEN batch_id IS NULL THEN (message IS NULL) <> (template_id IS NULL) ELSE message IS NULL AND template_id IS NULL END
    );

-- Its notifications in their order: for pages and results.
CREATE INDEX notifications_of_batch ON notifications (batch_id, created_at, id) WHERE batch_id IS NOT NULL;

-- What of a batch is still to be sent, in its order.
CREATE INDEX notifications_of_batch_accepted ON notifications (batch_id, place) WHERE status = 'ACCEPTED' AND batch_id IS NOT NULL;

-- The relay looks for rows of batches by the index above: a million that wait for their turn are
-- not its business.
DROP INDEX notifications_accepted;
CREATE INDEX notifications_accepted ON notifications (sender_id, greatest(send_at, retry_at))
    WHERE status = 'ACCEPTED' AND batch_id IS NULL;

-- How many notifications of a batch have each status is what was counted once (batch_counts) and
-- every change since (batch_moves), which are folded into it now and then. So no two writers wait
-- for each other, and nothing is counted by reading a million rows.
CREATE TABLE batch_counts (
    batch_id uuid                NOT NULL REFERENCES batches,
    status   notification_status NOT NULL,
    count    integer             NOT NULL,
    PRIMARY KEY (batch_id, status)
);

CREATE TABLE batch_moves (
    batch_id uuid                NOT NULL,
    status   notification_status NOT NULL,
    delta    integer             NOT NULL
);

CREATE INDEX batch_moves_of_batch ON batch_moves (batch_id);

-- Every statement that moves notifications is counted, whoever writes it.
-- +goose StatementBegin
CREATE FUNCTION count_batch_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO batch_moves (batch_id, status, delta)
    SELECT batch_id, status, sum(delta)
    FROM (
        SELECT batch_id, status, 1 AS delta FROM after WHERE batch_id IS NOT NULL
        UNION ALL
        SELECT batch_id, status, -1 FROM before WHERE batch_id IS NOT NULL
    ) AS moves
    GROUP BY batch_id, status
    HAVING sum(delta) <> 0;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER notifications_count_batch_moves AFTER UPDATE ON notifications
    REFERENCING OLD TABLE AS before NEW TABLE AS after
    FOR EACH STATEMENT EXECUTE FUNCTION count_batch_moves();

-- How many notifications of a running batch were sent by then: the rate of the last seconds.
CREATE TABLE batch_samples (
    batch_id uuid        NOT NULL REFERENCES batches,
    at       timestamptz NOT NULL,
    sent     integer     NOT NULL,
    PRIMARY KEY (batch_id, at)
);

-- +goose Down
DROP TRIGGER notifications_count_batch_moves ON notifications;
DROP FUNCTION count_batch_moves;
DROP TABLE batch_samples;
DROP TABLE batch_moves;
DROP TABLE batch_counts;
DROP INDEX notifications_accepted;
DROP INDEX notifications_of_batch_accepted;
DROP INDEX notifications_of_batch;
DELETE FROM notifications WHERE batch_id IS NOT NULL;
ALTER TABLE notifications
    DROP CONSTRAINT notifications_text,
    DROP CONSTRAINT notifications_of_batch,
    DROP COLUMN batch_id,
    DROP COLUMN batch_row,
    DROP COLUMN place,
    ADD CONSTRAINT notifications_check CHECK ((message IS NULL) <> (template_id IS NULL));
DROP TABLE batches;
CREATE INDEX notifications_accepted ON notifications (sender_id, greatest(send_at, retry_at)) WHERE status = 'ACCEPTED';
