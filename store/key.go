package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Key is an API key as the ledger knows it: the key itself is never stored, only its hash.
type Key struct {
	ID         int64
	Name       string
	Start      string // its first characters, to recognise it by
	Scopes     []string
	CreatedAt  time.Time
	LastUsedAt *time.Time
	RevokedAt  *time.Time
	ExpiresAt  *time.Time
	Expired    bool // by the database's clock
}

const keyColumns = `id, name, key_start, scopes, created_at, last_used_at, revoked_at, expires_at,
	coalesce(expires_at <= now(), false)`

// AddKey stores the hash of a new key. It expires at the given time; nil: never.
func (s *Store) AddKey(ctx context.Context, name string, hash []byte, start string, scopes []string, expires *time.Time) (Key, error) {
	key, err := one(ctx, s, pgx.RowToStructByPos[Key], `
		INSERT INTO api_keys (name, key_hash, key_start, scopes, expires_at) VALUES ($1, $2, $3, $4, $5)
		RETURNING `+keyColumns, name, hash, start, scopes, expires)
	return key, keyError("add key", err)
}

// Keys lists every key, revoked ones too, the oldest first.
func (s *Store) Keys(ctx context.Context) ([]Key, error) {
	keys, err := many(ctx, s, pgx.RowToStructByPos[Key], `SELECT `+keyColumns+` FROM api_keys ORDER BY id`)
	return keys, keyError("list keys", err)
}

// KeyByHash finds a key, revoked or expired as it may be, and notes at most once a minute that a valid one was used. The
// error is ErrNotFound when there is none.
func (s *Store) KeyByHash(ctx context.Context, hash []byte) (Key, error) {
	key, err := one(ctx, s, pgx.RowToStructByPos[Key], `
		WITH used AS (
			UPDATE api_keys SET last_used_at = now()
			WHERE key_hash = $1 AND revoked_at IS NULL AND coalesce(expires_at > now(), true)
				AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')
		)
		SELECT `+keyColumns+` FROM api_keys WHERE key_hash = $1`, hash)
	return key, keyError("find key", err)
}

// RevokeKey ends a key's use. Revoking it again changes nothing. The error is ErrNotFound when
// there is no such key.
func (s *Store) RevokeKey(ctx context.Context, id int64) (Key, error) {
	key, err := one(ctx, s, pgx.RowToStructByPos[Key], `
		UPDATE api_keys SET revoked_at = coalesce(revoked_at, now())
		WHERE id = $1
		RETURNING `+keyColumns, id)
	return key, keyError("revoke key", err)
}

func keyError(doing string, err error) error {
	if err == nil || errors.Is(err, ErrNotFound) {
		return err
	}
	return fmt.Errorf("%s: %w", doing, err)
}
