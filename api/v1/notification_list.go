package v1

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// NotificationPage is a part of the list of notifications.
type NotificationPage struct {
	Items      []Notification `json:"items" nullable:"false"`
	NextCursor *string        `json:"next_cursor" doc:"Give it as cursor to read on; null on the last page. A page may be short, or empty, and not be the last one: with filters that no index has, it ends after some time."`
}

type listInput struct {
	Cursor         string   `query:"cursor" doc:"next_cursor of the page before."`
	Limit          int      `query:"limit" minimum:"1" maximum:"200" default:"50"`
	Status         []string `query:"status,explode" nullable:"false" example:"FAILED,UNKNOWN" doc:"One of these: repeated, or separated by commas. ACCEPTED leaves out what is HELD."`
	Channel        string   `query:"channel" example:"SMS" doc:"SMS or CALL."`
	CreatedFrom    string   `query:"created_from" example:"2026-04-01T00:00:00+09:00" doc:"Accepted then or later: RFC 3339 with an offset."`
	CreatedTo      string   `query:"created_to" example:"2026-04-02T00:00:00+09:00" doc:"Accepted before then."`
	Phone          string   `query:"phone" example:"090-1234-5678" doc:"The recipient's whole number, in any form that can be sent to; a + is written %2B in a query."`
	Reference      string   `query:"reference" doc:"Your own name for it, exactly."`
	BatchID        string   `query:"batch_id" format:"uuid" doc:"Those of one batch."`
	ScheduleID     string   `query:"schedule_id" example:"7" doc:"Those of the runs of one schedule."`
	AcceptLanguage string   `header:"Accept-Language" doc:"Chooses the language of error_message: ja, or else en." example:"ja"`
}

type pageOutput struct {
	ContentLanguage string `header:"Content-Language" doc:"The language of error_message: ja or en."`
	Vary            string `header:"Vary"`
	Body            NotificationPage
}

func (a *API) listNotifications(ctx context.Context, in *listInput) (*pageOutput, error) {
	filter, after, err := a.readFilter(in)
	if err != nil {
		return nil, err
	}
	found, next, err := a.Store.Notifications(ctx, filter, after, in.Limit)
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	var page NotificationPage
	if next != nil {
		page.NextCursor = known(cursorAfter(*next))
	}
	language := notify.MatchLanguage(in.AcceptLanguage)
	page.Items = mapped(found, func(n store.Notification) Notification { return a.shown(ctx, n, language) })
	return &pageOutput{string(language), "Accept-Language", page}, nil
}

// readFilter names every parameter that it cannot read, and repeats no value: it may be a number.
func (a *API) readFilter(in *listInput) (filter store.Filter, after *store.Place, err error) {
	var wrong []string
	refuse := func(name, why string) { wrong = append(wrong, name+": "+why) }

	if in.Cursor != "" {
		if after, err = parseCursor(in.Cursor); err != nil {
			refuse("cursor", "it is not one that this address gave: start without it")
		}
	}
	for _, name := range strings.Split(strings.Join(in.Status, ","), ",") {
		status := notify.Status(strings.TrimSpace(name))
		switch {
		case status == "":
		case slices.Contains(notify.Statuses, status):
			filter.Statuses = append(filter.Statuses, status)
		default:
			refuse("status", fmt.Sprintf("there is no such status: use %s", joined(notify.Statuses)))
		}
	}
	if in.Channel != "" {
		if filter.Channel, err = notify.ParseChannel(in.Channel); err != nil {
			refuse("channel", "there is no such channel: use SMS or CALL")
		}
	}
	readTime := func(name, typed string) (at time.Time) {
		if typed != "" {
			if at, err = time.Parse(time.RFC3339, typed); err != nil {
				refuse(name, "it is no time in RFC 3339 with an offset: write it as in 2026-04-01T10:00:00+09:00, with + as %2B")
			}
		}
		return at
	}
	filter.CreatedFrom, filter.CreatedTo = readTime("created_from", in.CreatedFrom), readTime("created_to", in.CreatedTo)
	if in.Phone != "" {
		number, err := notify.ParsePhoneNumber(in.Phone, a.Settings.DefaultRegion)
		if err != nil {
			refuse("phone", err.Error())
		}
		filter.ToHash = number.Hash([]byte(a.Settings.PhoneHashKey))
	}
	if in.BatchID != "" {
		id, err := uuid.Parse(in.BatchID)
		if err != nil {
			refuse("batch_id", "it is not the id of a batch: it is the UUID that the answer to the POST gave")
		}
		filter.BatchID = &id
	}
	if in.ScheduleID != "" {
		id, err := strconv.ParseInt(in.ScheduleID, 10, 64)
		if err != nil {
			refuse("schedule_id", "it is not the id of a schedule: see GET /api/v1/schedules")
		}
		filter.ScheduleID = &id
	}
	switch {
	case in.Reference == "":
	case !utf8.ValidString(in.Reference), strings.ContainsRune(in.Reference, 0):
		refuse("reference", "it is not text in UTF-8 without NUL characters")
	default:
		filter.Reference = &in.Reference
	}
	if len(wrong) > 0 {
		return filter, after, problem.New(problem.ParameterInvalid, strings.Join(wrong, "; "))
	}
	return filter, after, nil
}

func joined[T ~string](words []T) string {
	texts := mapped(words, func(w T) string { return string(w) })
	last := len(texts) - 1
	return strings.Join(texts[:last], ", ") + " or " + texts[last]
}

// A cursor is the place of the last notification of a page, or of the last one that it looked at. Its form is nobody's business but ours.
func cursorAfter(place store.Place) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", place.CreatedAt.UnixMicro(), place.ID))
}

// latestCursor is the end of the year 9999 in microseconds: what lies beyond it is no place that we gave.
const latestCursor = 253402300799_999999

func parseCursor(cursor string) (*store.Place, error) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return nil, err
	}
	micros, id, _ := strings.Cut(string(text), " ")
	at, err := strconv.ParseInt(micros, 10, 64)
	if err != nil {
		return nil, err
	}
	if at < 0 || at > latestCursor {
		return nil, errors.New("no notification was made then")
	}
	place := store.Place{CreatedAt: time.UnixMicro(at)}
	place.ID, err = uuid.Parse(id)
	return &place, err
}
