package store

import (
	"context"
	"fmt"
	"iter"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// BatchResult is what became of one row of a batch.
type BatchResult struct {
	Notification
	Row int32 // in the request: the first one is 1
}

// resultPage is how many rows are read at once.
const resultPage = 2000

// BatchResults gives a batch's notifications in the order of the request, a page in memory at a time.
// A row is as it was when its page was read.
func (s *Store) BatchResults(ctx context.Context, id uuid.UUID) iter.Seq2[BatchResult, error] {
	return func(yield func(BatchResult, error) bool) {
		var after uuid.UUID
		for {
			page, err := many(ctx, s, pgx.RowToStructByPos[BatchResult], `
				SELECT `+notificationColumns+`, n.batch_row
				FROM (
					SELECT n.*
					FROM batches b
					CROSS JOIN LATERAL (
						SELECT n.* FROM notifications n WHERE `+ofBatch+` AND n.id > $2 ORDER BY n.id LIMIT $3
					) AS n
					WHERE b.id = $1
				) `+seenFrom+`
				ORDER BY n.id`, id, after, resultPage)
			if err != nil {
				yield(BatchResult{}, fmt.Errorf("read results: %w", err))
				return
			}
			for _, row := range page {
				if !yield(row, nil) {
					return
				}
				after = row.ID
			}
			if len(page) < resultPage {
				return
			}
		}
	}
}
