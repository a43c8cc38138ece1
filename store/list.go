package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/todoku/todoku/notify"
)

// Filter chooses notifications. Its zero value chooses all; what is set must all fit.
type Filter struct {
	Statuses    []notify.Status // one of these; HELD: accepted while its sender is stopped or its batch paused, which ACCEPTED leaves out
	Channel     notify.Channel
	CreatedFrom time.Time // inclusive
	CreatedTo   time.Time // exclusive
	ToHash      []byte    // of the number; see notify.PhoneNumber.Hash
	Reference   *string
	BatchID     *uuid.UUID
	ScheduleID  *int64 // of its batch
}

// Place is the place of a notification or a batch in a list, which is ordered by both: the ids of
// notifications are in that order by themselves.
type Place struct {
	CreatedAt time.Time
	ID        uuid.UUID
}

// Place is where the notification stands in the list.
func (n Notification) Place() Place { return Place{n.CreatedAt, n.ID} }

const (
	// window is how many rows a page looks at at once, where no index has all of the filter.
	window = 4000

	// pageTime is how long a page goes on to look for rows.
	pageTime = 10 * time.Millisecond
)

// Notifications lists what the filter chooses, newest first, after the place given (nil: from the start); at most
// limit. next is where the next page begins, and nil after the last one. Where no index has all of the filter, a page
// ends after some time, short or empty, and next tells how far it has looked.
func (s *Store) Notifications(ctx context.Context, filter Filter, after *Place, limit int) (page []Notification, next *Place, err error) {
	page, next, err = s.page(ctx, filter, after, limit)
	if err != nil {
		return nil, nil, fmt.Errorf("list notifications: %w", err)
	}
	return page, next, nil
}

func (s *Store) page(ctx context.Context, filter Filter, after *Place, limit int) (page []Notification, next *Place, err error) {
	indexed, exact := filter.indexed()
	began := time.Now()
	for {
		var end *Place // of the window
		last := exact  // the window has all the rest
		if !exact {
			if end, last, err = s.windowEnd(ctx, indexed, after, window); err != nil {
				return nil, nil, err
			}
		}
		sql, args := filter.query(after, end, limit+1-len(page)) // one more tells whether there is a next page
		rows, err := many(ctx, s, pgx.RowToStructByPos[Notification], sql, args...)
		if err != nil {
			return nil, nil, err
		}
		if page = append(page, rows...); len(page) > limit {
			last := page[limit-1].Place()
			return page[:limit], &last, nil
		}
		if last {
			return page, nil, nil
		}
		if after = end; time.Since(began) >= pageTime {
			return page, after, nil
		}
	}
}

// windowEnd is the place of the row so many rows after the given place. Where there are fewer, the window is the last
// one, and ends before every row.
func (s *Store) windowEnd(ctx context.Context, filter Filter, after *Place, rows int) (end *Place, last bool, err error) {
	sql, args := filter.place(after, rows)
	found, err := one(ctx, s, pgx.RowToStructByPos[Place], sql, args...)
	if last = errors.Is(err, ErrNotFound); last {
		err = nil
	}
	return &found, last, err
}

// indexed is the part of the filter for which there is an index in the order of ids, and whether that is all of it.
func (f Filter) indexed() (part Filter, all bool) {
	part = f
	part.Channel = ""
	if f.ToHash != nil || f.Reference != nil || slices.Contains(f.Statuses, notify.Success) {
		part.Statuses = nil
	}
	// The batches of a schedule have a part of the ledger each, and a page reads some of each.
	return part, f.ScheduleID != nil || part.Channel == f.Channel && len(part.Statuses) == len(f.Statuses)
}

// toNumber joins to a number's hash r its notifications n, one by one, so that what it is not sent is not
// looked at, whatever else is asked for.
const toNumber = "notification_recipients r CROSS JOIN LATERAL (SELECT n.* FROM notifications n WHERE n.id = r.notification_id OFFSET 0) n"

// query asks for a page that ends with the row end, if it is given.
func (f Filter) query(after, end *Place, limit int) (sql string, args []any) {
	pages, args := f.pages("n.*", after, end, limit)
	return `
		SELECT ` + notificationColumns + `
		FROM (` + pages + `) ` + seenFrom + `
		ORDER BY n.id DESC
		LIMIT ` + fmt.Sprintf("$%d", len(args)), args
}

// place asks for the place of the row so many rows after another place.
func (f Filter) place(after *Place, rows int) (sql string, args []any) {
	pages, args := f.pages("n.created_at, n.id", after, nil, rows)
	return `SELECT n.created_at, n.id FROM (` + pages + `) n ORDER BY n.id DESC LIMIT 1 OFFSET ` + fmt.Sprintf("$%d - 1", len(args)), args
}

// pages is what a list is made of; its limit is the last argument. Of several statuses it takes a page each and merges them, so that each is read
// along an index of its own; of several batches too, each of which has its own part of the ledger. Statuses
// are constants in the text: the planner uses a partial index only where it can see that the index has all
// it needs.
func (f Filter) pages(columns string, after, end *Place, limit int) (sql string, args []any) {
	arg := func(value any) string {
		args = append(args, value)
		return fmt.Sprintf("$%d", len(args))
	}
	from, id := "notifications n", "n.id"
	if f.ToHash != nil {
		from, id = toNumber, "r.notification_id"
	}
	var conditions []string
	where := func(condition string) { conditions = append(conditions, condition) }
	if f.Channel != "" {
		where("n.channel = " + arg(f.Channel))
	}
	if !f.CreatedFrom.IsZero() {
		where(id + " >= " + arg(firstIDAt(f.CreatedFrom)))
	}
	if !f.CreatedTo.IsZero() {
		where(id + " < " + arg(firstIDAt(f.CreatedTo)))
	}
	if f.ToHash != nil {
		where("r.to_hash = " + arg(f.ToHash))
	}
	if f.Reference != nil {
		where("n.reference = " + arg(*f.Reference))
	}
	var batches []string
	if f.BatchID != nil {
		batches = append(batches, "b.id = "+arg(*f.BatchID))
	}
	if f.ScheduleID != nil {
		batches = append(batches, "b.schedule_id = "+arg(*f.ScheduleID))
	}
	if batches != nil {
		where(ofBatch)
	}
	if after != nil {
		where(id + " < " + arg(after.ID))
	}
	if end != nil {
		from := uuid.Max
		if after != nil {
			from = after.ID
		}
		where(id + " BETWEEN " + arg(end.ID) + " AND " + arg(from))
	}
	most := arg(limit)

	pages := make([]string, 0, len(f.Statuses))
	for _, status := range f.conditions() {
		all := append(slices.Clone(conditions), status...)
		text := "SELECT " + columns + " FROM " + from
		if len(all) > 0 {
			text += " WHERE " + strings.Join(all, " AND ")
		}
		text += " ORDER BY " + id + " DESC LIMIT " + most
		if batches != nil {
			text = "SELECT " + columns + " FROM batches b CROSS JOIN LATERAL (" + text + ") n" +
				" WHERE " + strings.Join(batches, " AND ") + " ORDER BY n.id DESC LIMIT " + most
		}
		pages = append(pages, "("+text+")")
	}
	return strings.Join(pages, " UNION ALL "), args
}

// conditions are those of each status that is asked for; those of one page when any will do. What is
// accepted has one index for singles and one for batches.
func (f Filter) conditions() [][]string {
	const (
		accepted = "n.status = 'ACCEPTED'"
		single   = "n.batch_id IS NULL"
		inBatch  = "n.batch_id IS NOT NULL"
		stopped  = "n.sender_id IN (SELECT id FROM senders WHERE stopped_at IS NOT NULL OR queue_full_at IS NOT NULL)"
		held     = "(n.sender_id IN (SELECT id FROM senders WHERE stopped_at IS NOT NULL OR batches_queue_full_at IS NOT NULL)" +
			" OR n.batch_id IN (SELECT id FROM batches WHERE paused_at IS NOT NULL))"
	)
	singles := f.BatchID == nil && f.ScheduleID == nil
	var all [][]string
	for _, status := range notify.Statuses { // in this order, and each once
		if !slices.Contains(f.Statuses, status) {
			continue
		}
		switch status {
		case notify.Held:
			all = append(all, []string{accepted, inBatch, held})
			if singles {
				all = append(all, []string{accepted, single, stopped})
			}
		case notify.Accepted:
			all = append(all, []string{accepted, inBatch, "NOT " + held})
			if singles {
				all = append(all, []string{accepted, single, "NOT " + stopped})
			}
		default:
			all = append(all, []string{"n.status = '" + string(status) + "'"})
		}
	}
	if len(all) == 0 {
		return [][]string{nil}
	}
	return all
}
