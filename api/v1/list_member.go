package v1

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// Member is one recipient of a list.
type Member struct {
	ID         int64             `json:"id"`
	To         string            `json:"to" example:"*********5678" doc:"E.164; masked unless the key has the scope pii."`
	ToNational string            `json:"to_national" example:"*********5678" doc:"As people in the number's country write it; masked as to is."`
	Params     map[string]string `json:"params"`
	Timezone   *string           `json:"timezone" example:"Asia/Tokyo" doc:"Where the recipient is; null: nobody said."`
	Locale     *string           `json:"locale" example:"ja" doc:"What the recipient reads (BCP 47); null: nobody said."`
	CreatedAt  time.Time         `json:"created_at"`
	UpdatedAt  time.Time         `json:"updated_at"`

	AffectedSchedules []AffectedSchedule `json:"affected_schedules,omitempty" nullable:"false" doc:"In the answer to PATCH: schedules that leave the member out, who lacks a value that their template needs."`
}

// MemberPage is a part of the members of a list.
type MemberPage struct {
	Items      []Member `json:"items" nullable:"false"`
	NextCursor *string  `json:"next_cursor" doc:"Give it as cursor to read on; null on the last page."`
}

// memberRequest is a member to be.
type memberRequest struct {
	To       string            `json:"to" example:"090-1234-5678" doc:"A phone number as people write it."`
	Params   map[string]string `json:"params,omitempty" doc:"Values for the placeholders of templates. None is named to, timezone or locale, as columns of the file are. A blank one is kept, and counts as missing where a template is filled."`
	Timezone string            `json:"timezone,omitempty" example:"Asia/Tokyo" doc:"Where the recipient is: a zone of the IANA database."`
	Locale   string            `json:"locale,omitempty" example:"ja" doc:"What the recipient reads: a BCP 47 tag."`
}

func (r memberRequest) recipient() notify.Recipient {
	return notify.Recipient{To: r.To, Params: r.Params, Timezone: r.Timezone, Locale: r.Locale}
}

// memberChange leaves out what stays as it is.
type memberChange struct {
	To       *string           `json:"to,omitempty" example:"090-1234-5678"`
	Params   map[string]string `json:"params,omitempty" doc:"All of them: those that are left out are gone."`
	Timezone *string           `json:"timezone,omitempty" doc:"Empty: nobody said."`
	Locale   *string           `json:"locale,omitempty" doc:"Empty: nobody said."`
}

type memberInput struct {
	ID     int64 `path:"id" doc:"Of the list."`
	Member int64 `path:"member" doc:"Of the member."`
}

type memberOutput struct{ Body Member }

func (a *API) registerMembers(to huma.API) {
	huma.Register(to, operation("list-members", http.MethodGet, "/lists/{id}/members", "Lists", ScopeRead,
		"List a list's members", "In the order in which they were added.", http.StatusNotFound), a.listMembers)
	huma.Register(to, operation("get-member", http.MethodGet, "/lists/{id}/members/{member}", "Lists", ScopeRead,
		"Read a member", "", http.StatusNotFound), a.member)
	huma.Register(to, withBody(operation("change-member", http.MethodPatch, "/lists/{id}/members/{member}", "Lists", ScopeManage,
		"Change a member", "", http.StatusNotFound, http.StatusConflict)), a.changeMember)
	remove := operation("delete-member", http.MethodDelete, "/lists/{id}/members/{member}", "Lists", ScopeManage,
		"Take a member off a list", "", http.StatusNotFound)
	remove.DefaultStatus = http.StatusNoContent
	huma.Register(to, remove, a.deleteMember)
}

func (a *API) listMembers(ctx context.Context, in *struct {
	ID     int64  `path:"id"`
	Cursor string `query:"cursor" doc:"next_cursor of the page before."`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
	Phone  string `query:"phone" example:"5678" doc:"The last 4 digits of a number, or the whole number; a + is written %2B in a query."`
}) (*struct{ Body MemberPage }, error) {
	after, err := parseIDCursor("member", in.Cursor)
	if err != nil {
		return nil, err
	}
	filter, err := a.memberFilter(in.Phone)
	if err != nil {
		return nil, err
	}
	members, err := a.Store.ListMembers(ctx, in.ID, filter, after, in.Limit+1) // one more tells whether there is a next page
	if err == nil && len(members) == 0 {
		_, err = a.Store.RecipientList(ctx, in.ID)
	}
	if err != nil {
		return nil, a.listProblem(ctx, err)
	}
	var page MemberPage
	members, page.NextCursor = cutPage(members, in.Limit, func(last store.ListMember) string { return idCursor("member", last.ID) })
	page.Items = mapped(members, func(m store.ListMember) Member { return showMember(ctx, m) })
	return &struct{ Body MemberPage }{page}, nil
}

// memberFilter chooses members by what was typed of their number.
func (a *API) memberFilter(phone string) (filter store.MemberFilter, err error) {
	if phone == "" {
		return filter, nil
	}
	key := []byte(a.Settings.PhoneHashKey)
	if digits, ok := notify.LastDigits(phone); ok {
		return store.MemberFilter{TailHash: notify.TailHash(digits, key)}, nil
	}
	number, err := notify.ParsePhoneNumber(phone, a.Settings.DefaultRegion)
	if err != nil {
		return filter, problem.Newf(problem.ParameterInvalid, "phone: %s; or give its last %d digits alone", err, notify.TailDigits)
	}
	return store.MemberFilter{ToHash: number.Hash(key)}, nil
}

func (a *API) member(ctx context.Context, in *memberInput) (*memberOutput, error) {
	m, err := a.Store.ListMember(ctx, in.ID, in.Member)
	if err != nil {
		return nil, a.memberProblem(ctx, err)
	}
	return &memberOutput{showMember(ctx, m)}, nil
}

func (a *API) changeMember(ctx context.Context, in *struct {
	ID     int64 `path:"id" doc:"Of the list."`
	Member int64 `path:"member" doc:"Of the member."`
	Body   body[memberChange]
}) (*memberOutput, error) {
	m, err := a.Store.ListMember(ctx, in.ID, in.Member)
	if err != nil {
		return nil, a.memberProblem(ctx, err)
	}
	change, wrong := in.Body.Value, in.Body.Wrong
	next := notify.Recipient{To: m.To, Params: m.Params, Timezone: valueOf(m.Timezone), Locale: valueOf(m.Locale)}
	for _, field := range []struct{ to, from *string }{{&next.To, change.To}, {&next.Timezone, change.Timezone}, {&next.Locale, change.Locale}} {
		if field.from != nil {
			*field.to = *field.from
		}
	}
	if change.Params != nil {
		next.Params = change.Params
	}
	changed, faults := a.memberCheck().read(next)
	for _, f := range faults {
		if !wrong.At(f.Pointer) {
			wrong = append(wrong, f)
		}
	}
	if err := wrong.Problem(); err != nil {
		return nil, err
	}
	if m, err = a.Store.ReplaceMember(ctx, in.ID, in.Member, changed); err != nil {
		return nil, a.memberProblem(ctx, err)
	}
	shown := showMember(ctx, m)
	shown.AffectedSchedules = a.affectedByMember(ctx, in.ID, in.Member)
	return &memberOutput{shown}, nil
}

func (a *API) deleteMember(ctx context.Context, in *memberInput) (*struct{}, error) {
	if err := a.Store.DeleteMember(ctx, in.ID, in.Member); err != nil {
		return nil, a.memberProblem(ctx, err)
	}
	return nil, nil
}

func (a *API) memberProblem(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return problem.New(problem.MemberNotFound, "the list in the path has no member with this id: see GET /api/v1/lists/{id}/members")
	case errors.Is(err, store.ErrMemberExists):
		return problem.New(problem.MemberExists, "the list has another member with this number and these parameters: delete one of the two")
	}
	return a.fail(ctx, err)
}

// showMember is a member as the caller may see it.
func showMember(ctx context.Context, m store.ListMember) Member {
	shown := Member{ID: m.ID, To: m.To, ToNational: m.ToNational, Params: m.Params, Timezone: m.Timezone, Locale: m.Locale, CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt}
	if !seesNumbers(ctx) {
		shown.To, shown.ToNational = notify.Mask(m.To), notify.Mask(m.ToNational)
	}
	return shown
}
