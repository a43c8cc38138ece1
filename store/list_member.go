package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// ListMember is one recipient of a list.
type ListMember struct {
	ID         int64
	To         string // E.164
	ToNational string
	Params     map[string]string
	Timezone   *string // of the IANA database; nil: that of the schedule
	Locale     *string // BCP 47
	CreatedAt  time.Time
	UpdatedAt  time.Time
}

// NewMember is a recipient to be. It must be valid: the store checks only what the schema checks.
type NewMember struct {
	Row      int    // in the request: the first one is 1
	Key      []byte // the same for the same number with the same parameters, and for no others
	To       notify.PhoneNumber
	ToHash   []byte
	TailHash []byte // see notify.PhoneNumber.TailHash
	Params   map[string]string
	Timezone *string
	Locale   *string
}

// MemberFilter chooses members. Its zero value chooses all; what is set must all fit.
type MemberFilter struct {
	ToHash   []byte // of the number; see notify.PhoneNumber.Hash
	TailHash []byte // of its last 4 digits; see notify.TailHash
}

var (
	// ErrMemberExists means that the list has the same number with the same parameters.
	ErrMemberExists = errors.New("the list has this member already")
	// ErrListFull means that a list would have more than MaxListMembers.
	ErrListFull = errors.New("the list would have too many members")
)

// MaxListMembers is how many members a list may have: as many as a batch has notifications.
const MaxListMembers = 1_000_000

const memberColumns = `m.id, m.to_number, m.to_national, m.params, m.timezone, m.locale, m.created_at, m.updated_at`

// ListMembers gives the members of a list that the filter chooses, in their order, after the id
// given; at most limit.
func (s *Store) ListMembers(ctx context.Context, list int64, filter MemberFilter, after int64, limit int) ([]ListMember, error) {
	sql, args := `SELECT `+memberColumns+` FROM list_members m WHERE m.list_id = $1 AND m.id > $2`, []any{list, after, limit}
	where := func(column string, hash []byte) {
		if hash != nil {
			args = append(args, hash)
			sql += fmt.Sprintf(` AND m.%s = $%d`, column, len(args))
		}
	}
	where("to_hash", filter.ToHash)
	where("tail_hash", filter.TailHash)
	members, err := many(ctx, s, pgx.RowToStructByPos[ListMember], sql+` ORDER BY m.id LIMIT $3`, args...)
	return members, memberError("list members", err)
}

// ListSnapshot gives all members of a list in their order, as they all were at one moment. One statement reads
// them, so memory stays flat; it takes a connection until the end.
func (s *Store) ListSnapshot(ctx context.Context, list int64) iter.Seq2[ListMember, error] {
	return func(yield func(ListMember, error) bool) {
		rows, err := s.pool.Query(ctx, `SELECT `+memberColumns+` FROM list_members m WHERE m.list_id = $1 ORDER BY m.id`, list)
		if err != nil {
			yield(ListMember{}, fmt.Errorf("read members: %w", err))
			return
		}
		defer rows.Close()
		for rows.Next() {
			m, err := pgx.RowToStructByPos[ListMember](rows)
			if err != nil {
				yield(ListMember{}, fmt.Errorf("read members: %w", err))
				return
			}
			if !yield(m, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(ListMember{}, fmt.Errorf("read members: %w", err))
		}
	}
}

// ListMember reads a member of a list. The error is ErrNotFound when there is none.
func (s *Store) ListMember(ctx context.Context, list, id int64) (ListMember, error) {
	m, err := one(ctx, s, pgx.RowToStructByPos[ListMember], `
		SELECT `+memberColumns+` FROM list_members m WHERE m.list_id = $1 AND m.id = $2`, list, id)
	return m, memberError("read member", err)
}

// ReplaceMember makes another of a member, in its place. The error is ErrNotFound or ErrMemberExists.
func (s *Store) ReplaceMember(ctx context.Context, list, id int64, n NewMember) (ListMember, error) {
	m, err := one(ctx, s, pgx.RowToStructByPos[ListMember], `
		WITH l AS MATERIALIZED ( -- before the member, as imports do
			UPDATE lists SET updated_at = now() WHERE id = $1 RETURNING id
		)
		UPDATE list_members m SET
			member_key = $3, to_number = $4, to_national = $5, region = $6, kind = $7, to_hash = $8, tail_hash = $9,
			params = $10, timezone = $11, locale = $12, updated_at = now()
		FROM l
		WHERE m.list_id = l.id AND m.id = $2
		RETURNING `+memberColumns,
		list, id, n.Key, n.To.E164, n.To.National, n.To.Region, n.To.Kind, n.ToHash, n.TailHash, n.params(), n.Timezone, n.Locale)
	return m, memberError("change member", err)
}

// DeleteMember takes a member off a list. The error is ErrNotFound when there is none.
func (s *Store) DeleteMember(ctx context.Context, list, id int64) error {
	_, err := one(ctx, s, pgx.RowTo[int64], `
		WITH list AS MATERIALIZED ( -- before the member, as imports do
			SELECT id FROM lists WHERE id = $1 FOR UPDATE
		), gone AS (
			DELETE FROM list_members m USING list WHERE m.list_id = list.id AND m.id = $2 RETURNING m.list_id
		)
		UPDATE lists l SET members_count = l.members_count - 1, updated_at = now()
		FROM gone
		WHERE l.id = gone.list_id
		RETURNING l.id`, list, id)
	return memberError("delete member", err)
}

// params is an object also where there are none.
func (n NewMember) params() map[string]string {
	if n.Params == nil {
		return map[string]string{}
	}
	return n.Params
}

func memberError(doing string, err error) error {
	return explain(doing, err, map[string]error{uniqueViolation: ErrMemberExists})
}
