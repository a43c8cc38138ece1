package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Identity is what tells this ledger from others, as a UUID's text. It stays for as long as the
// database does, and moves with its data.
func (s *Store) Identity(ctx context.Context) (string, error) {
	id, err := one(ctx, s, pgx.RowTo[string], `SELECT id::text FROM ledger_identity WHERE is_only`)
	if err != nil {
		return "", fmt.Errorf("read the ledger's identity: %w", err)
	}
	return id, nil
}
