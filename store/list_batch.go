package store

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// ListRecipients are the members of a list as the recipients of a batch.
type ListRecipients struct {
	ListID       int64
	Params       []string           // the template's: members give values for these, and those that lack one, or have a blank one, are rejected; nil: there is no template
	Allowed      []string           // regions that may be sent to; see notify.PhoneNumber.Accepts
	AllowedKinds []notify.PhoneKind // kinds that may be sent to though they charge the caller
}

// WriteListBatch writes a batch to everybody on a list, and its notifications, within a transaction:
// its commit is the acceptance. Members that nothing can be sent to are the batch's rejected rows; row
// n is the n-th member. Of n neither Recipients nor Rejected nor Once is used.
//
// The error is ErrNotFound when there is no such list, and ErrNoRecipients when none of its members
// can be sent to: then nothing was written, and the transaction can go on.
func WriteListBatch(ctx context.Context, tx pgx.Tx, n NewBatch, to ListRecipients) error {
	// While a list is sent to, its members stay as they are.
	if tag, err := tx.Exec(ctx, `SELECT FROM lists WHERE id = $1 FOR SHARE`, to.ListID); err != nil {
		return fmt.Errorf("lock list: %w", err)
	} else if tag.RowsAffected() == 0 {
		return ErrNotFound
	}
	refused, err := refusedNumbers(ctx, tx, n.Channel, to)
	if err != nil {
		return fmt.Errorf("read the list's numbers: %w", err)
	}
	unfit, err := unfitValues(ctx, tx, n, to)
	if err != nil {
		return fmt.Errorf("read the list's parameters: %w", err)
	}
	written, err := copyList(ctx, tx, n, to, refused, unfit)
	switch {
	case err != nil:
		return fmt.Errorf("copy list: %w", err)
	case written.sent == 0:
		return ErrNoRecipients
	}
	return insertBatch(ctx, tx, n, written)
}

// refusedNumbers are the kinds of numbers on the list that cannot be sent to.
func refusedNumbers(ctx context.Context, tx pgx.Tx, channel notify.Channel, to ListRecipients) ([]notify.InvalidNumberError, error) {
	rows, err := tx.Query(ctx, `SELECT DISTINCT region, kind FROM list_members WHERE list_id = $1`, to.ListID)
	if err != nil {
		return nil, err
	}
	var refused []notify.InvalidNumberError
	var number notify.PhoneNumber
	_, err = pgx.ForEachRow(rows, []any{&number.Region, &number.Kind}, func() error {
		var invalid *notify.InvalidNumberError
		if errors.As(number.Accepts(channel, to.Allowed, to.AllowedKinds...), &invalid) {
			refused = append(refused, *invalid)
		}
		return nil
	})
	return refused, err
}

// unfitValue is a value that is not of its placeholder's kind.
type unfitValue struct {
	notify.ParamKindError
	value string
}

// unfitValues are the values on the list that are not of the kinds that the template's version asks for.
func unfitValues(ctx context.Context, tx pgx.Tx, n NewBatch, to ListRecipients) (unfit []unfitValue, err error) {
	if n.TemplateID == nil {
		return nil, nil
	}
	var kinds map[string]notify.ParamKind
	err = tx.QueryRow(ctx, `SELECT kinds FROM template_versions WHERE template_id = $1 AND version = $2`, n.TemplateID, n.TemplateVersion).Scan(&kinds)
	if err != nil || len(kinds) == 0 {
		return nil, err
	}
	rows, err := tx.Query(ctx, `
		SELECT DISTINCT p.key, p.value
		FROM list_members m, jsonb_each_text(m.params) AS p
		WHERE m.list_id = $1 AND p.key = ANY ($2)`, to.ListID, slices.Collect(maps.Keys(kinds)))
	if err != nil {
		return nil, err
	}
	var of unfitValue
	_, err = pgx.ForEachRow(rows, []any{&of.Name, &of.value}, func() error {
		if of.Kind = kinds[of.Name]; !of.Kind.Fits(of.value) {
			unfit = append(unfit, of)
		}
		return nil
	})
	return unfit, err
}

// lacks joins to a member m what it lacks of the parameters in the array names: those that are missing, and
// those whose value matches the pattern of blank ones. Both have the array's order.
func lacks(names, pattern string) string {
	return `
			CROSS JOIN LATERAL (
				SELECT
					coalesce(array_agg(name ORDER BY place) FILTER (WHERE NOT m.params ? name), '{}') AS missing,
					coalesce(array_agg(name ORDER BY place) FILTER (WHERE (m.params ->> name) ~ ` + pattern + `), '{}') AS blank
				FROM unnest(` + names + `::text[]) WITH ORDINALITY AS p (name, place)
			) AS lacks`
}

// blankPattern is what values match that are blank as notify.IsBlank has it.
var blankPattern = "^[" + notify.BlankCharacters + "]*$"

// copyList writes the notifications. Their ids name the moment at which the transaction began, as ids do,
// and then the row, so that they have the members' order.
func copyList(ctx context.Context, tx pgx.Tx, n NewBatch, to ListRecipients, refused []notify.InvalidNumberError, unfit []unfitValue) (w batchWritten, err error) {
	var now time.Time
	if err := tx.QueryRow(ctx, `SELECT now()`).Scan(&now); err != nil {
		return w, err
	}
	w.ids = idsAt(now)
	rows, err := tx.Query(ctx, `
		WITH unfit AS MATERIALIZED (
			SELECT m.id, min(u.place) AS place
			FROM list_members m, jsonb_each_text(m.params) AS p, unnest($15::text[], $16::text[]) WITH ORDINALITY AS u (name, value, place)
			WHERE m.list_id = $1 AND u.name = p.key AND u.value = p.value
			GROUP BY m.id
		), member AS MATERIALIZED (
			SELECT m.*, row_number() OVER (ORDER BY m.id) AS row, r.code, missing, blank, u.place AS unfit,
				CASE WHEN $7::text[] IS NOT NULL THEN (
					SELECT coalesce(jsonb_object_agg(name, m.params -> name), '{}') FROM unnest($7::text[]) AS name
				) END AS given
			FROM list_members m`+lacks("$7", "$18")+`
			LEFT JOIN unnest($8::text[], $9::text[], $10::text[]) AS r (region, kind, code) ON r.region = m.region AND r.kind = m.kind
			LEFT JOIN unfit u ON u.id = m.id
			WHERE m.list_id = $1
		), fit AS (
			SELECT *, row_number() OVER (PARTITION BY to_hash, given ORDER BY row) > 1 AS twin
			FROM member
			WHERE code IS NULL AND missing = '{}' AND blank = '{}' AND unfit IS NULL
		), placed AS (
			SELECT *, CASE WHEN NOT twin THEN row_number() OVER (PARTITION BY twin ORDER BY row) - 1 END AS place
			FROM fit
		), written AS (
			INSERT INTO notifications (id, channel, status, to_number, to_national, to_hash, params, sender_id, require_human,
				batch_id, batch_row, place, workflow_id, failure_code, error_message, settled_at, started_at)
			SELECT
				($17::text || '8' || lpad(to_hex(row), 6, '0') || right(gen_random_uuid()::text, 9))::uuid,
				$3::channel, CASE WHEN twin THEN 'SKIPPED' ELSE 'ACCEPTED' END::notification_status, to_number, to_national, to_hash, given, $4, $5,
				$2::uuid, row, place, $11::text || '/' || place / $6::int,
				CASE WHEN twin THEN $12::text END, CASE WHEN twin THEN $13::text END, CASE WHEN twin THEN now() END, now()
			FROM placed
			ORDER BY row
			RETURNING status
		), refused AS (
			SELECT row, code, region, kind, missing, blank, unfit
			FROM member
			WHERE code IS NOT NULL OR missing <> '{}' OR blank <> '{}' OR unfit IS NOT NULL
		)
		SELECT
			(SELECT count(*) FROM written WHERE status = 'ACCEPTED'), (SELECT count(*) FROM written WHERE status = 'SKIPPED'),
			(SELECT count(*) FROM refused),
			(
				SELECT coalesce(jsonb_object_agg(code, n), '{}')
				FROM (
					SELECT coalesce(code, CASE WHEN missing <> '{}' OR blank <> '{}' THEN $19 ELSE $20 END) AS code, count(*) AS n
					FROM refused
					GROUP BY 1
				) AS codes
			),
			f.row, f.code, f.region, f.kind, f.missing, f.blank, f.unfit
		FROM (VALUES (1)) AS always
		LEFT JOIN (SELECT * FROM refused ORDER BY row LIMIT $14) AS f ON true
		ORDER BY f.row`,
		to.ListID, n.ID, n.Channel, n.SenderID, n.RequireHuman, n.ShardSize, to.Params,
		column(refused, func(e notify.InvalidNumberError) string { return e.Region }),
		column(refused, func(e notify.InvalidNumberError) string { return string(e.Kind) }),
		column(refused, func(e notify.InvalidNumberError) string { return e.Code }),
		notify.BatchWorkflowID(n.ID), notify.CodeDuplicate, notify.LedgerMessage(notify.CodeDuplicate, n.Channel, ""), MaxRejected,
		column(unfit, func(u unfitValue) string { return u.Name }), column(unfit, func(u unfitValue) string { return u.value }),
		hex.EncodeToString(w.ids.first[:8]), blankPattern, CodeParamMissing, notify.CodeParamKind)
	if err != nil {
		return w, err
	}
	var row, place *int
	var code, region, kind *string
	var missing, blank []string
	_, err = pgx.ForEachRow(rows, []any{&w.sent, &w.twins, &w.rejected, &w.rejectedByCode, &row, &code, &region, &kind, &missing, &blank, &place}, func() error {
		switch {
		case row == nil: // none is rejected
		case code != nil:
			invalid := notify.InvalidNumberError{Code: *code, Region: *region, Kind: notify.PhoneKind(*kind)}
			w.firstRejected = append(w.firstRejected, Rejected{*row, *code, invalid.Error()})
		case len(missing)+len(blank) > 0:
			misfit := notify.ParamsError{Missing: missing, Blank: blank}
			w.firstRejected = append(w.firstRejected, Rejected{*row, CodeParamMissing, misfit.Error()})
		default:
			w.firstRejected = append(w.firstRejected, Rejected{*row, notify.CodeParamKind, unfit[*place-1].Error()})
		}
		return nil
	})
	return w, err
}

// CodeParamMissing is the code of a rejected row that lacks a parameter of the template, or has a blank one.
const CodeParamMissing = "param_missing"

// Misfits are the members of a list that lack parameters of a template, or have blank ones.
type Misfits struct {
	Count   int
	Members []Misfit // the first of them
}

// Misfit is a member that lacks parameters, or has blank ones.
type Misfit struct {
	ID      int64
	Row     int // the n-th member of the list
	Missing []string
	Blank   []string
}

// Error names the first members by their rows, never by their numbers.
func (m Misfits) Error() string {
	var rows []string
	for _, one := range m.Members {
		misfit := notify.ParamsError{Missing: one.Missing, Blank: one.Blank}
		rows = append(rows, fmt.Sprintf("member %d (row %d): %s", one.ID, one.Row, misfit.Error()))
	}
	return fmt.Sprintf("%d members of the list do not fit the template: %s", m.Count, strings.Join(rows, "; "))
}

// ListMisfits looks for members that lack a value for one of the parameters, or have a blank one, and names the first few.
func (s *Store) ListMisfits(ctx context.Context, list int64, params []string, few int) (Misfits, error) {
	return listMisfits(ctx, s.pool, list, params, few)
}

func listMisfits(ctx context.Context, q querier, list int64, params []string, few int) (Misfits, error) {
	var m Misfits
	rows, err := q.Query(ctx, `
		SELECT count(*) OVER (), id, row, missing, blank
		FROM (
			SELECT m.id, row_number() OVER (ORDER BY m.id) AS row, missing, blank
			FROM list_members m`+lacks("$2", "$4")+`
			WHERE m.list_id = $1
		) AS member
		WHERE missing <> '{}' OR blank <> '{}'
		ORDER BY id
		LIMIT $3`, list, params, few, blankPattern)
	if err == nil {
		var of Misfit
		_, err = pgx.ForEachRow(rows, []any{&m.Count, &of.ID, &of.Row, &of.Missing, &of.Blank}, func() error {
			m.Members = append(m.Members, of)
			return nil
		})
	}
	if err != nil {
		return m, fmt.Errorf("look for members that do not fit: %w", err)
	}
	return m, nil
}
