package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/todoku/todoku/notify"
)

// ErrNameTaken means that another row of the kind has this name.
var ErrNameTaken = errors.New("the name is taken")

// Template is a named text at one version.
type Template struct {
	ID        int64
	Name      string
	Channel   notify.Channel
	Version   int32
	Body      string
	Params    []string // the placeholders' names, in the order of their first use
	CreatedAt time.Time
	UpdatedAt time.Time
}

const templateColumns = `t.id, t.name, t.channel::text, v.version, v.body, v.params, t.created_at, t.updated_at`

// CreateTemplate adds a template with its first version. The error is ErrNameTaken when the name is
// another template's.
func (s *Store) CreateTemplate(ctx context.Context, name string, channel notify.Channel, body string, params []string) (Template, error) {
	t, err := one(ctx, s, pgx.RowToStructByPos[Template], `
		WITH t AS (
			INSERT INTO templates (name, channel) VALUES ($1, $2) RETURNING *
		), v AS (
			INSERT INTO template_versions (template_id, version, body, params)
			SELECT id, current_version, $3, $4 FROM t
			RETURNING *
		)
		SELECT `+templateColumns+` FROM t JOIN v ON v.template_id = t.id`, name, channel, body, params)
	return t, templateError("create template", err)
}

// ReviseTemplate gives a template another name, or another body as its next version; an empty
// string leaves either as it is. A body that is the present one adds no version. The error is
// ErrNotFound or ErrNameTaken.
func (s *Store) ReviseTemplate(ctx context.Context, id int64, name, body string, params []string) (Template, error) {
	t, err := one(ctx, s, pgx.RowToStructByPos[Template], `
		WITH old AS (
			SELECT t.id, v.body
			FROM templates t
			JOIN template_versions v ON v.template_id = t.id AND v.version = t.current_version
			WHERE t.id = $1
			FOR UPDATE OF t
		), t AS (
			UPDATE templates t SET
				name = coalesce(nullif($2, ''), t.name),
				current_version = t.current_version + CASE WHEN $3 NOT IN ('', old.body) THEN 1 ELSE 0 END,
				updated_at = now()
			FROM old
			WHERE t.id = old.id
			RETURNING t.*
		), added AS (
			INSERT INTO template_versions (template_id, version, body, params)
			SELECT t.id, t.current_version, $3, $4
			FROM t, old
			WHERE $3 NOT IN ('', old.body)
			RETURNING *
		), v AS (
			SELECT * FROM added
			UNION ALL
			SELECT v.* FROM template_versions v, t
			WHERE v.template_id = t.id AND v.version = t.current_version AND NOT EXISTS (SELECT FROM added)
		)
		SELECT `+templateColumns+` FROM t JOIN v ON v.template_id = t.id`, id, name, body, params)
	return t, templateError("revise template", err)
}

// Template reads a template at its present version. The error is ErrNotFound when there is none.
func (s *Store) Template(ctx context.Context, id int64) (Template, error) {
	t, err := one(ctx, s, pgx.RowToStructByPos[Template], `
		SELECT `+templateColumns+`
		FROM templates t
		JOIN template_versions v ON v.template_id = t.id AND v.version = t.current_version
		WHERE t.id = $1`, id)
	return t, templateError("read template", err)
}

// TemplateVersions lists every version of a template, the first one first.
func (s *Store) TemplateVersions(ctx context.Context, id int64) ([]Template, error) {
	versions, err := many(ctx, s, pgx.RowToStructByPos[Template], `
		SELECT t.id, t.name, t.channel::text, v.version, v.body, v.params, v.created_at, v.created_at
		FROM templates t
		JOIN template_versions v ON v.template_id = t.id
		WHERE t.id = $1
		ORDER BY v.version`, id)
	return versions, templateError("list template versions", err)
}

// Templates lists templates at their present versions, the oldest first, after the id given; at
// most limit.
func (s *Store) Templates(ctx context.Context, after int64, limit int) ([]Template, error) {
	templates, err := many(ctx, s, pgx.RowToStructByPos[Template], `
		SELECT `+templateColumns+`
		FROM templates t
		JOIN template_versions v ON v.template_id = t.id AND v.version = t.current_version
		WHERE t.id > $1
		ORDER BY t.id
		LIMIT $2`, after, limit)
	return templates, templateError("list templates", err)
}

func templateError(doing string, err error) error {
	var answer *pgconn.PgError
	switch {
	case err == nil, errors.Is(err, ErrNotFound):
		return err
	case errors.As(err, &answer) && answer.Code == "23505":
		return ErrNameTaken
	}
	return fmt.Errorf("%s: %w", doing, err)
}
