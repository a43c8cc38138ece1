package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// lockKey holds the key until the transaction ends, and finds what was answered under it before.
func lockKey(ctx context.Context, tx pgx.Tx, once *Once) (*Answer, error) {
	var held bool
	if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1)`, once.lock()).Scan(&held); err != nil {
		return nil, err
	}
	if !held {
		return nil, ErrKeyInUse
	}
	asked, found := []keyed{{Once: once}}, make([]Acceptance, 1)
	rows, err := tx.Query(ctx, findAnswersSQL, owners(asked), keys(asked))
	if err != nil {
		return nil, err
	}
	if err := noteAnswers(rows, asked, found); err != nil {
		return nil, err
	}
	return found[0].Replay, found[0].Err
}

// keepAnswer writes what is answered under the key.
func keepAnswer(ctx context.Context, tx pgx.Tx, once *Once, answer Answer) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO idempotency_keys (owner, key, request_hash, answer_status, location, answer)
		VALUES ($1, $2, $3, $4, $5, $6)`,
		once.Owner, once.Key, once.Request[:], answer.Status, answer.Location, string(answer.Body))
	return err
}
