package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// MembersImport is many recipients that come to a list.
type MembersImport struct {
	ListID int64
	// Replace makes the list what is imported: who is not in it leaves the list, and where the same
	// number came with other parameters, its member gets those. Otherwise all members stay; a member
	// that is imported again gets the time zone and the locale that are given this time.
	Replace bool
	// Keep is asked after the last member. With true, a replace removes nobody, as rows that were rejected may
	// be those of members. nil: false.
	Keep func() bool
	// Members gives those to import, in order. It returns false after the last one, and an error when
	// the request turns out to be wrong: then nothing is changed.
	Members func() (NewMember, bool, error)
}

// Imported says what an import has done.
type Imported struct {
	List       RecipientList // as it is now
	Added      int64
	Changed    int64
	Unchanged  int64
	Removed    int64
	Kept       int64 // would have been removed but for Keep
	Duplicates int64 // came more than once: the first one counts
}

// ImportMembers imports members in one transaction, through a temporary table, so that it takes no
// more memory for many than for few. The error is ErrNotFound, ErrListFull, or what Members returned;
// then nothing was changed.
func (s *Store) ImportMembers(ctx context.Context, in MembersImport) (done Imported, err error) {
	err = pgx.BeginFunc(ctx, s.pool.Pool, func(tx pgx.Tx) error {
		done, err = importMembers(ctx, tx, in)
		return err
	})
	return done, importError(err)
}

// CreateListOf adds a list with its members. The error is ErrNameTaken, or what Members returned;
// then there is no list.
func (s *Store) CreateListOf(ctx context.Context, name string, members func() (NewMember, bool, error)) (done Imported, err error) {
	err = pgx.BeginFunc(ctx, s.pool.Pool, func(tx pgx.Tx) error {
		in := MembersImport{Members: members}
		if err := tx.QueryRow(ctx, `INSERT INTO lists (name) VALUES ($1) RETURNING id`, name).Scan(&in.ListID); err != nil {
			return listError("create list", err)
		}
		done, err = importMembers(ctx, tx, in)
		return err
	})
	return done, importError(err)
}

func importError(err error) error {
	if err == nil || errors.Is(err, ErrNotFound) || errors.Is(err, ErrNameTaken) {
		return err
	}
	return fmt.Errorf("import members: %w", err)
}

func importMembers(ctx context.Context, tx pgx.Tx, in MembersImport) (done Imported, err error) {
	if err := copyMembers(ctx, tx, in.Members); err != nil {
		return done, err
	}
	// Imports to one list come one after the other.
	if tag, err := tx.Exec(ctx, `SELECT FROM lists WHERE id = $1 FOR UPDATE`, in.ListID); err != nil {
		return done, err
	} else if tag.RowsAffected() == 0 {
		return done, ErrNotFound
	}
	l := &done.List
	keep := in.Replace && in.Keep != nil && in.Keep()
	err = tx.QueryRow(ctx, mergeMembersSQL, in.ListID, in.Replace, keep).Scan(
		&l.ID, &l.Name, &l.Members, &l.CreatedAt, &l.UpdatedAt, &l.Revision, &done.Added, &done.Changed, &done.Unchanged, &done.Removed, &done.Kept, &done.Duplicates)
	if err == nil && l.Members > MaxListMembers {
		err = ErrListFull
	}
	return done, err
}

var incomingColumns = []string{"row", "member_key", "to_number", "to_national", "region", "kind", "to_hash", "tail_hash", "params", "timezone", "locale"}

// copyMembers makes the temporary table incoming, which lasts as long as the transaction.
func copyMembers(ctx context.Context, tx pgx.Tx, members func() (NewMember, bool, error)) error {
	_, err := tx.Exec(ctx, `
		CREATE TEMP TABLE incoming (
			row int, member_key bytea, to_number text, to_national text, region text, kind text,
			to_hash bytea, tail_hash bytea, params jsonb, timezone text, locale text
		) ON COMMIT DROP`)
	if err != nil {
		return err
	}
	var wrong error // of the request
	_, err = tx.CopyFrom(ctx, pgx.Identifier{"incoming"}, incomingColumns, pgx.CopyFromFunc(func() ([]any, error) {
		n, ok, err := members()
		if err != nil || !ok {
			wrong = err
			return nil, err
		}
		return []any{n.Row, n.Key, n.To.E164, n.To.National, n.To.Region, string(n.To.Kind), n.ToHash, n.TailHash, n.params(), n.Timezone, n.Locale}, nil
	}))
	if wrong != nil {
		return wrong
	}
	if err != nil {
		return err
	}
	// A temporary table has no statistics of its own accord, and no index.
	_, err = tx.Exec(ctx, `SET LOCAL enable_seqscan = on; ANALYZE incoming`)
	return err
}

// mergeMembersSQL makes members of the list $1 of the table incoming; $2: in the place of those that
// it has. A member with other parameters than before keeps its place: the first of a number becomes
// the first, the second the second. $3: nobody is removed, so a number's members keep their places only
// where as many came as there were: otherwise it is not known which of them was rejected.
const mergeMembersSQL = `
	WITH fresh AS MATERIALIZED (
		SELECT DISTINCT ON (member_key) * FROM incoming ORDER BY member_key, row
	), known AS MATERIALIZED (
		SELECT m.id, m.to_hash, f.row, coalesce(f.timezone, CASE WHEN NOT $2 THEN m.timezone END) AS timezone,
			coalesce(f.locale, CASE WHEN NOT $2 THEN m.locale END) AS locale,
			row_number() OVER (PARTITION BY f.row IS NULL, m.to_hash ORDER BY m.id) AS place,
			count(*) OVER (PARTITION BY f.row IS NULL, m.to_hash) AS places
		FROM list_members m
		LEFT JOIN fresh f ON f.member_key = m.member_key
		WHERE m.list_id = $1 AND (f.row IS NOT NULL OR $2)
	), novel AS MATERIALIZED (
		SELECT f.*, row_number() OVER (PARTITION BY f.to_hash ORDER BY f.row) AS place, count(*) OVER (PARTITION BY f.to_hash) AS places
		FROM fresh f
		WHERE NOT EXISTS (SELECT FROM known k WHERE k.row = f.row)
	), adjusted AS (
		UPDATE list_members m SET timezone = k.timezone, locale = k.locale, updated_at = now()
		FROM known k
		WHERE m.id = k.id AND k.row IS NOT NULL AND (m.timezone, m.locale) IS DISTINCT FROM (k.timezone, k.locale)
		RETURNING m.id
	), moved AS (
		UPDATE list_members m SET
			member_key = n.member_key, params = n.params, timezone = n.timezone, locale = n.locale, updated_at = now()
		FROM known k
		JOIN novel n ON n.to_hash = k.to_hash AND n.place = k.place
		WHERE m.id = k.id AND k.row IS NULL AND (NOT $3 OR n.places >= k.places)
		RETURNING n.row, m.id
	), added AS (
		INSERT INTO list_members (list_id, member_key, to_number, to_national, region, kind, to_hash, tail_hash, params, timezone, locale)
		SELECT $1, member_key, to_number, to_national, region, kind, to_hash, tail_hash, params, timezone, locale
		FROM novel
		WHERE row NOT IN (SELECT row FROM moved)
		ORDER BY row
		RETURNING id
	), removed AS (
		DELETE FROM list_members m
		USING known k
		WHERE m.id = k.id AND k.row IS NULL AND k.id NOT IN (SELECT id FROM moved) AND NOT $3
		RETURNING m.id
	), done AS (
		SELECT
			(SELECT count(*) FROM added) AS added,
			(SELECT count(*) FROM adjusted) + (SELECT count(*) FROM moved) AS changed,
			(SELECT count(*) FROM known WHERE row IS NOT NULL) - (SELECT count(*) FROM adjusted) AS unchanged,
			(SELECT count(*) FROM removed) AS removed,
			(SELECT count(*) FROM known WHERE row IS NULL AND id NOT IN (SELECT id FROM moved) AND $3) AS kept,
			(SELECT count(*) FROM incoming) - (SELECT count(*) FROM fresh) AS duplicates
	)
	UPDATE lists l SET members_count = l.members_count + done.added - done.removed, updated_at = now()
	FROM done
	WHERE l.id = $1
	RETURNING ` + listColumns + `, done.added, done.changed, done.unchanged, done.removed, done.kept, done.duplicates`
