-- +goose Up

-- Calls of a batch that wait in the carrier's queue, with a pace or without: canceling the batch cancels them there.
CREATE INDEX notifications_calls_queued ON notifications (batch_id)
    WHERE channel = 'CALL' AND status = 'PENDING' AND carrier_rank < 2 AND cancel_requested_at IS NULL;

-- +goose Down
DROP INDEX notifications_calls_queued;
