-- +goose Up

-- A call that came in while Todoku could not be reached. The value stays when this is taken back: Postgres cannot drop one.
ALTER TYPE inbound_state ADD VALUE IF NOT EXISTS 'MISSED';

-- Up to when the carrier's list of calls to our number was read. One row, while there is a number.
CREATE TABLE inbound_listing (
    single       boolean     PRIMARY KEY DEFAULT true CHECK (single),
    number       text        NOT NULL,
    since        timestamptz NOT NULL DEFAULT clock_timestamp(), -- calls that came in before were somebody else's
    listed_until timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- +goose Down
DROP TABLE inbound_listing;
