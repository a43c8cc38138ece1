-- +goose Up

-- What tells this database from others where both are known, as in a namespace of Temporal's. It moves
-- with the data: a dump that is restored elsewhere is the same ledger.
CREATE TABLE ledger_identity (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    id      uuid    NOT NULL DEFAULT gen_random_uuid()
);
INSERT INTO ledger_identity DEFAULT VALUES;

-- +goose Down
DROP TABLE ledger_identity;
