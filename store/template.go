package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

var (
	// ErrNameTaken means that another row of the kind has this name.
	ErrNameTaken = errors.New("the name is taken")
	// ErrArchived means that a template is archived, so that it is not changed and nothing new is sent with it.
	ErrArchived = errors.New("the template is archived")
)

// Template is a named text at one version.
type Template struct {
	ID      int64
	Name    string
	Channel notify.Channel
	Version int32
	TemplateText
	CreatedAt  time.Time
	UpdatedAt  time.Time
	ArchivedAt *time.Time // nothing new is sent with it
	Revision   int32      // counts changes by people, from 1
}

// TemplateText is what a version of a template never changes.
type TemplateText struct {
	Body   string
	Params []string                    // the placeholders' names, in the order of their first use
	Kinds  map[string]notify.ParamKind // of those that are not just text
}

// kinds is an object also where there are none.
func (t TemplateText) kinds() map[string]notify.ParamKind {
	if t.Kinds == nil {
		return map[string]notify.ParamKind{}
	}
	return t.Kinds
}

const templateColumns = `t.id, t.name, t.channel::text, v.version, v.body, v.params, v.kinds, t.created_at, t.updated_at, t.archived_at, t.revision`

// CreateTemplate adds a template with its first version. The error is ErrNameTaken when the name is
// that of another template that is not archived.
func (s *Store) CreateTemplate(ctx context.Context, name string, channel notify.Channel, text TemplateText) (Template, error) {
	t, err := one(ctx, s, scanTemplate, `
		WITH t AS (
			INSERT INTO templates (name, channel) VALUES ($1, $2) RETURNING *
		), v AS (
			INSERT INTO template_versions (template_id, version, body, params, kinds)
			SELECT id, current_version, $3, $4, $5 FROM t
			RETURNING *
		)
		SELECT `+templateColumns+` FROM t JOIN v ON v.template_id = t.id`, name, channel, text.Body, text.Params, text.kinds())
	return t, templateError("create template", err)
}

// TemplateRevision is what people change of a template; what is empty stays as it is.
type TemplateRevision struct {
	Name     string
	Text     *TemplateText // the next version; one that is the present one adds none
	Archived *bool         // false: it is brought back
}

// AnyRevision changes a row whatever its revision is.
const AnyRevision int32 = 0

// ReviseTemplate makes the whole change or, where it returns an error, nothing of it. The error is
// ErrNotFound; ErrStale where it was changed since the revision; ErrNameTaken; ErrArchived where the template is
// archived and is not brought back, so that its name and text stay; or ErrInUse where it is to be archived and TemplateUsers names any.
func (s *Store) ReviseTemplate(ctx context.Context, id int64, revision int32, next TemplateRevision) (t Template, err error) {
	err = s.pool.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		// In a statement of its own: the next one sees what was written while this one waited.
		if _, err := oneOf(ctx, tx, pgx.RowTo[int64], `SELECT id FROM templates WHERE id = $1 FOR NO KEY UPDATE`, id); err != nil {
			return err
		}
		if t, err = oneOf(ctx, tx, scanTemplate, templateSQL, id); err != nil {
			return err
		}
		if revision != AnyRevision && t.Revision != revision {
			return ErrStale
		}
		archived := t.ArchivedAt != nil
		if next.Name != "" || next.Text != nil {
			if archived && (next.Archived == nil || *next.Archived) {
				return ErrArchived
			}
			if t, err = reviseTemplate(ctx, tx, id, next.Name, next.Text); err != nil {
				return err
			}
		}
		if next.Archived != nil && *next.Archived != archived {
			t, err = archiveTemplate(ctx, tx, id, *next.Archived)
		}
		return err
	})
	return t, templateError("revise template", err)
}

// reviseTemplate needs the lock of the template.
func reviseTemplate(ctx context.Context, tx pgx.Tx, id int64, name string, text *TemplateText) (t Template, err error) {
	var body *string
	var next TemplateText
	if text != nil {
		next, body = *text, &text.Body
	}
	rows, err := tx.Query(ctx, `
		WITH old AS (
			SELECT t.id, $3::text IS NOT NULL AND (v.body, v.kinds) IS DISTINCT FROM ($3, $5::jsonb) AS differs
			FROM templates t
			JOIN template_versions v ON v.template_id = t.id AND v.version = t.current_version
			WHERE t.id = $1
		), t AS (
			UPDATE templates t SET
				name = coalesce(nullif($2, ''), t.name),
				current_version = t.current_version + CASE WHEN old.differs THEN 1 ELSE 0 END,
				updated_at = now(), revision = t.revision + 1
			FROM old
			WHERE t.id = old.id
			RETURNING t.*
		), added AS (
			INSERT INTO template_versions (template_id, version, body, params, kinds)
			SELECT t.id, t.current_version, $3, $4, $5
			FROM t, old
			WHERE old.differs
			RETURNING *
		), v AS (
			SELECT * FROM added
			UNION ALL
			SELECT v.* FROM template_versions v, t
			WHERE v.template_id = t.id AND v.version = t.current_version AND NOT EXISTS (SELECT FROM added)
		)
		SELECT `+templateColumns+` FROM t JOIN v ON v.template_id = t.id`, id, name, body, next.Params, next.kinds())
	if err != nil {
		return t, err
	}
	return pgx.CollectExactlyOneRow(rows, scanTemplate)
}

// Template reads a template at its present version. The error is ErrNotFound when there is none.
func (s *Store) Template(ctx context.Context, id int64) (Template, error) {
	t, err := one(ctx, s, scanTemplate, templateSQL, id)
	return t, templateError("read template", err)
}

const templateSQL = `
	SELECT ` + templateColumns + `
	FROM templates t
	JOIN template_versions v ON v.template_id = t.id AND v.version = t.current_version
	WHERE t.id = $1`

// TemplateAt reads a template at one of its versions. The error is ErrNotFound when there is none.
func (s *Store) TemplateAt(ctx context.Context, id int64, version int32) (Template, error) {
	t, err := one(ctx, s, scanTemplate, `
		SELECT `+templateColumns+`
		FROM templates t
		JOIN template_versions v ON v.template_id = t.id
		WHERE t.id = $1 AND v.version = $2`, id, version)
	return t, templateError("read template version", err)
}

// TemplateVersions lists every version of a template, the first one first.
func (s *Store) TemplateVersions(ctx context.Context, id int64) ([]Template, error) {
	versions, err := many(ctx, s, scanTemplate, `
		SELECT t.id, t.name, t.channel::text, v.version, v.body, v.params, v.kinds, v.created_at, v.created_at, t.archived_at, t.revision
		FROM templates t
		JOIN template_versions v ON v.template_id = t.id
		WHERE t.id = $1
		ORDER BY v.version`, id)
	return versions, templateError("list template versions", err)
}

// Templates lists templates at their present versions, the oldest first, after the id given; at most
// limit. They are those that are archived, or those that are not.
func (s *Store) Templates(ctx context.Context, archived bool, after int64, limit int) ([]Template, error) {
	templates, err := many(ctx, s, scanTemplate, `
		SELECT `+templateColumns+`
		FROM templates t
		JOIN template_versions v ON v.template_id = t.id AND v.version = t.current_version
		WHERE t.id > $1 AND (t.archived_at IS NOT NULL) = $2
		ORDER BY t.id
		LIMIT $3`, after, archived, limit)
	return templates, templateError("list templates", err)
}

// keepTemplate keeps a template from being archived and from being revised until the transaction ends.
// The error is ErrArchived, or ErrReferenceGone when there is no such template.
func keepTemplate(ctx context.Context, tx pgx.Tx, id int64) error {
	archived, err := oneOf(ctx, tx, pgx.RowTo[bool], `SELECT archived_at IS NOT NULL FROM templates WHERE id = $1 FOR SHARE`, id)
	switch {
	case errors.Is(err, ErrNotFound):
		return ErrReferenceGone
	case err == nil && archived:
		return ErrArchived
	}
	return err
}

// DeleteTemplate deletes a template that nothing was sent with and nothing refers to. Another one it
// archives, and returns; the error is ErrNotFound when there is none, or ErrInUse.
func (s *Store) DeleteTemplate(ctx context.Context, id int64) (archived *Template, err error) {
	err = s.pool.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `DELETE FROM template_versions WHERE template_id = $1`, id); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `DELETE FROM templates WHERE id = $1`, id)
		if err == nil && tag.RowsAffected() == 0 {
			err = ErrNotFound
		}
		return err
	})
	if hasCode(err, foreignKeyViolation) {
		t, err := s.ReviseTemplate(ctx, id, AnyRevision, TemplateRevision{Archived: new(true)})
		return &t, err
	}
	return nil, templateError("delete template", err)
}

// archiveTemplate archives a template, or brings it back; it needs the lock of the template. The error is
// ErrInUse when a schedule would end with it.
func archiveTemplate(ctx context.Context, tx pgx.Tx, id int64, archived bool) (Template, error) {
	t, err := oneOf(ctx, tx, scanTemplate, `
		WITH t AS (
			UPDATE templates SET archived_at = CASE WHEN $2 THEN now() END, updated_at = now(), revision = revision + 1
			WHERE id = $1
			RETURNING *
		)
		SELECT `+templateColumns+`
		FROM t
		JOIN template_versions v ON v.template_id = t.id AND v.version = t.current_version`, id, archived)
	if err != nil || !archived {
		return t, err
	}
	// In a statement of its own, which sees what was written while the first one waited.
	used, err := oneOf(ctx, tx, pgx.RowTo[bool], `
		SELECT EXISTS (SELECT FROM schedules WHERE template_id = $1 AND deleted_at IS NULL AND is_active)`, id)
	if err == nil && used {
		err = ErrInUse
	}
	return t, err
}

func scanTemplate(row pgx.CollectableRow) (t Template, err error) {
	err = row.Scan(&t.ID, &t.Name, &t.Channel, &t.Version, &t.Body, &t.Params, &t.Kinds, &t.CreatedAt, &t.UpdatedAt, &t.ArchivedAt, &t.Revision)
	return t, err
}

func templateError(doing string, err error) error {
	return explain(doing, err, map[string]error{uniqueViolation: ErrNameTaken})
}
