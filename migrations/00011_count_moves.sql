-- +goose Up

-- As before, but a statement that moves only singles, as most do, ends at once: with it they take 4 %
-- longer than without any counting, and took 5 to 10 %.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION count_batch_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM after WHERE batch_id IS NOT NULL) THEN
        RETURN NULL;
    END IF;
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

-- +goose Down
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION count_batch_moves() RETURNS trigger LANGUAGE plpgsql AS $$
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
