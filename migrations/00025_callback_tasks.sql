-- +goose Up

-- A task of calling back is found by the call that it names, so it needs no token.
ALTER TABLE inbound_callback_tasks DROP COLUMN token;
ALTER TABLE inbound_callback_tasks
    ADD COLUMN workspace_sid text,        -- that it was posted in
    ADD COLUMN task_sid      text,        -- as soon as an answer or an event of TaskRouter's tells it
    ADD COLUMN withdrawn_at  timestamptz; -- when it was to be canceled, because somebody has spoken with the caller

-- What a version before may have posted is looked for before it is posted.
INSERT INTO inbound_callback_tasks (call_id, posted_at, held_until)
SELECT id, clock_timestamp(), clock_timestamp()
FROM inbound_calls
WHERE follow_up = 'task' AND follow_up_task_sid IS NULL
ON CONFLICT DO NOTHING;

-- +goose Down
DELETE FROM inbound_callback_tasks; -- the version before has no token for them, and lists before it creates
ALTER TABLE inbound_callback_tasks DROP COLUMN withdrawn_at, DROP COLUMN task_sid, DROP COLUMN workspace_sid;
ALTER TABLE inbound_callback_tasks ADD COLUMN token uuid NOT NULL;
