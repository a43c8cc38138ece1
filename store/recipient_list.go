package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrInUse means that something needs the row, so that it was neither deleted nor archived.
var ErrInUse = errors.New("it is in use")

// RecipientList is a named list of recipients.
type RecipientList struct {
	ID        int64
	Name      string
	Members   int32
	CreatedAt time.Time
	UpdatedAt time.Time // of the name or the members
	Revision  int32     // counts changes of the name, from 1
}

const listColumns = `l.id, l.name, l.members_count, l.created_at, l.updated_at, l.revision`

// RenameList gives a list another name. The error is ErrNotFound, ErrStale where it was changed since the
// revision, or ErrNameTaken.
func (s *Store) RenameList(ctx context.Context, id int64, revision int32, name string) (RecipientList, error) {
	l, err := one(ctx, s, pgx.RowToStructByPos[RecipientList], `
		UPDATE lists l SET name = $3, updated_at = now(), revision = l.revision + 1
		WHERE l.id = $1 AND l.revision = $2
		RETURNING `+listColumns, id, revision, name)
	if errors.Is(err, ErrNotFound) {
		if _, err = s.RecipientList(ctx, id); err == nil {
			err = ErrStale
		}
	}
	return l, listError("rename list", err)
}

// RecipientList reads a list. The error is ErrNotFound when there is none.
func (s *Store) RecipientList(ctx context.Context, id int64) (RecipientList, error) {
	l, err := one(ctx, s, pgx.RowToStructByPos[RecipientList], `
		SELECT `+listColumns+` FROM lists l WHERE l.id = $1`, id)
	return l, listError("read list", err)
}

// RecipientLists gives lists, the oldest first, after the id given; at most limit. With a filter,
// those that have such a member.
func (s *Store) RecipientLists(ctx context.Context, filter MemberFilter, after int64, limit int) ([]RecipientList, error) {
	lists, err := many(ctx, s, pgx.RowToStructByPos[RecipientList], `
		SELECT `+listColumns+`
		FROM lists l
		WHERE l.id > $1
			AND ($2::bytea IS NULL OR EXISTS (SELECT FROM list_members m WHERE m.list_id = l.id AND m.to_hash = $2))
			AND ($3::bytea IS NULL OR EXISTS (SELECT FROM list_members m WHERE m.list_id = l.id AND m.tail_hash = $3))
		ORDER BY l.id
		LIMIT $4`, after, filter.ToHash, filter.TailHash, limit)
	return lists, listError("list lists", err)
}

// DeleteList deletes a list with its members. The error is ErrNotFound, or ErrInUse while ListUsers
// names any.
func (s *Store) DeleteList(ctx context.Context, id int64) error {
	ctx = unhurried(ctx)
	tag, err := s.pool.Exec(ctx, `DELETE FROM lists WHERE id = $1`, id)
	if err == nil && tag.RowsAffected() == 0 {
		err = ErrNotFound
	}
	return listError("delete list", err)
}

func listError(doing string, err error) error {
	return explain(doing, err, map[string]error{uniqueViolation: ErrNameTaken, foreignKeyViolation: ErrInUse})
}
