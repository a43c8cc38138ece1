-- +goose Up
-- A run is unique by what the clocks of its zone show: a schedule that moves to another zone after it ran
-- runs at the same local time there, the same day.
ALTER TABLE schedule_runs ADD COLUMN timezone text;
UPDATE schedule_runs r SET timezone = s.timezone FROM schedules s WHERE s.id = r.schedule_id;
CREATE UNIQUE INDEX schedule_runs_once ON schedule_runs (schedule_id, local_time, timezone);
ALTER TABLE schedule_runs DROP CONSTRAINT schedule_runs_schedule_id_local_time_key;

-- +goose Down
-- Of the runs at one local time in several zones the newest keeps it; the others stay, as runs without one.
UPDATE schedule_runs r SET local_time = NULL FROM schedule_runs newer
WHERE newer.schedule_id = r.schedule_id AND newer.local_time = r.local_time AND newer.id > r.id;
ALTER TABLE schedule_runs ADD UNIQUE (schedule_id, local_time);
DROP INDEX schedule_runs_once;
ALTER TABLE schedule_runs DROP COLUMN timezone;
