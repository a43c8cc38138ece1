package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ScheduleOutlook is what the next run of a schedule would find, by its template and its list as they are now.
type ScheduleOutlook struct {
	ScheduleID       int64
	Name             string
	Broken           bool // the template or the list is gone, or the template is of another channel
	TemplateArchived bool
	Members          int     // of the list
	Misfits          Misfits // members that the run would leave out, as far as looked for
}

// ScheduleUse chooses schedules by what they send or to whom; 0: whatever it is.
type ScheduleUse struct {
	TemplateID int64
	ListID     int64
}

// outlookFrom joins a schedule with its template at the present version and its list. seen names both as they are.
const outlookFrom = `
	FROM schedules s
	LEFT JOIN templates t ON t.id = s.template_id
	LEFT JOIN template_versions v ON v.template_id = t.id AND v.version = t.current_version
	LEFT JOIN lists l ON l.id = s.list_id
	CROSS JOIN LATERAL (
		SELECT concat_ws('/', t.id, v.version, l.id, extract(epoch FROM l.updated_at)) AS now
	) AS seen`

// ScheduleOutlooks gives the outlooks of schedules, by their ids.
func (s *Store) ScheduleOutlooks(ctx context.Context, schedules ...int64) (map[int64]ScheduleOutlook, error) {
	found, err := many(ctx, s, pgx.RowToStructByPos[ScheduleOutlook], `
		SELECT s.id, s.name, t.id IS NULL OR l.id IS NULL OR t.channel <> s.channel, t.archived_at IS NOT NULL,
			coalesce(l.members_count, 0)::bigint, s.misfits`+outlookFrom+`
		WHERE s.id = ANY ($1)`, schedules)
	if err != nil {
		return nil, fmt.Errorf("read what schedules would find: %w", err)
	}
	outlooks := make(map[int64]ScheduleOutlook, len(found))
	for _, o := range found {
		outlooks[o.ScheduleID] = o
	}
	return outlooks, nil
}

// namedMisfits is how many members the outlook of a schedule names.
const namedMisfits = 5

// LookForMisfits looks for members who lack a value that the template of their schedule needs, where the template or
// the list has changed since it last looked; in at most limit schedules. It returns the ids of schedules of that use in
// which there are any, changed or not.
func (s *Store) LookForMisfits(ctx context.Context, use ScheduleUse, limit int) ([]int64, error) {
	ctx = unhurried(ctx)
	type changed struct {
		Schedule, List int64
		Params         []string
		Seen           string
	}
	schedules, err := many(ctx, s, pgx.RowToStructByPos[changed], `
		SELECT s.id, l.id, v.params, seen.now`+outlookFrom+`
		WHERE s.deleted_at IS NULL AND l.id IS NOT NULL AND v.version IS NOT NULL
			AND s.misfits_seen_in IS DISTINCT FROM seen.now
			AND ($1 = 0 OR s.template_id = $1) AND ($2 = 0 OR s.list_id = $2)
		ORDER BY s.id
		LIMIT $3`, use.TemplateID, use.ListID, limit)
	if err != nil {
		return nil, fmt.Errorf("look for schedules whose template or list has changed: %w", err)
	}
	looked := make(map[string]Misfits) // several schedules may send the same to the same
	for _, one := range schedules {
		misfits, found := looked[one.Seen]
		if !found && len(one.Params) > 0 {
			if misfits, err = s.ListMisfits(ctx, one.List, one.Params, namedMisfits); err != nil {
				return nil, err
			}
			looked[one.Seen] = misfits
		}
		if _, err := s.pool.Exec(ctx, `UPDATE schedules SET misfits = $2, misfits_seen_in = $3 WHERE id = $1`, one.Schedule, misfits, one.Seen); err != nil {
			return nil, fmt.Errorf("note members that do not fit: %w", err)
		}
	}
	having, err := many(ctx, s, pgx.RowTo[int64], `
		SELECT id FROM schedules
		WHERE deleted_at IS NULL AND (misfits->>'Count')::bigint > 0
			AND ($1 = 0 OR template_id = $1) AND ($2 = 0 OR list_id = $2)
		ORDER BY id`, use.TemplateID, use.ListID)
	if err != nil {
		return nil, fmt.Errorf("list schedules with members that do not fit: %w", err)
	}
	return having, nil
}

// ScheduleWithoutMember is a schedule that leaves a member of its list out.
type ScheduleWithoutMember struct {
	User
	Missing, Blank []string // values that its template needs
}

// SchedulesWithoutMember lists the schedules to a list whose templates need values that this member lacks.
func (s *Store) SchedulesWithoutMember(ctx context.Context, list, member int64) ([]ScheduleWithoutMember, error) {
	found, err := many(ctx, s, func(row pgx.CollectableRow) (of ScheduleWithoutMember, err error) {
		return of, row.Scan(&of.ID, &of.Name, &of.Missing, &of.Blank)
	}, `
		SELECT s.id, s.name, missing, blank`+outlookFrom+`
		JOIN list_members m ON m.list_id = s.list_id AND m.id = $2`+lacks("v.params", "$3")+`
		WHERE s.list_id = $1 AND s.deleted_at IS NULL AND (missing <> '{}' OR blank <> '{}')
		ORDER BY s.id`, list, member, blankPattern)
	if err != nil {
		return nil, fmt.Errorf("look for schedules that leave a member out: %w", err)
	}
	return found, nil
}
