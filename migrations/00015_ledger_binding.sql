-- +goose Up

-- The account that the ledger belongs to. A process whose settings name another one does not start. The
-- account's SID and PHONE_HASH_KEY are secrets: only fingerprints of them are kept.
ALTER TABLE ledger_identity
    ADD COLUMN carrier_kind          text CHECK (carrier_kind IN ('twilio', 'simulator')),
    ADD COLUMN carrier_region        text,
    ADD COLUMN account_fingerprint   bytea,
    ADD COLUMN bound_at              timestamptz,
    ADD COLUMN phone_key_fingerprint bytea,
    -- Where the ledger was last held against the carrier's list: a server, its timeline and its start.
    ADD COLUMN compared_on           text,
    -- Set while the ledger is known to lack sends: those since this moment are to be reconciled.
    ADD COLUMN behind_since          timestamptz,
    ADD CONSTRAINT ledger_identity_bound CHECK (
        num_nonnulls(carrier_kind, carrier_region, account_fingerprint, bound_at) IN (0, 4));

-- +goose Down
ALTER TABLE ledger_identity
    DROP COLUMN carrier_kind,
    DROP COLUMN carrier_region,
    DROP COLUMN account_fingerprint,
    DROP COLUMN bound_at,
    DROP COLUMN phone_key_fingerprint,
    DROP COLUMN compared_on,
    DROP COLUMN behind_since;
