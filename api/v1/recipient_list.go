package v1

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// List is a named list of recipients.
type List struct {
	ID           int64     `json:"id"`
	Name         string    `json:"name" example:"Saturday's patients"`
	MembersCount int32     `json:"members_count"`
	CreatedAt    time.Time `json:"created_at"`
	UpdatedAt    time.Time `json:"updated_at" doc:"Of the name or the members."`

	RejectedCount  *int             `json:"rejected_count,omitempty" doc:"In the answer to POST: members of the request that nothing can be sent to."`
	Rejected       []store.Rejected `json:"rejected,omitempty" nullable:"false" doc:"In the answer to POST: the first 100 of them."`
	RejectedByCode map[string]int   `json:"rejected_by_code,omitempty" nullable:"false" doc:"In the answer to POST: how many members were rejected for each code."`
}

// ListPage is a part of the lists.
type ListPage struct {
	Items      []List  `json:"items" nullable:"false"`
	NextCursor *string `json:"next_cursor" doc:"Give it as cursor to read on; null on the last page."`
}

type listChange struct {
	Name string `json:"name" maxLength:"100"`
}

type listIDInput struct {
	ID int64 `path:"id"`
}

type listOutput struct {
	ETag string `header:"ETag" doc:"Give it as If-Match to PATCH. It tells the name, and not the members."`
	Body List
}

const listsPath = "/api/v1/lists"

func (a *API) registerLists(to huma.API) {
	huma.Register(to, operation("list-lists", http.MethodGet, "/lists", "Lists", ScopeRead,
		"List the lists", "The oldest first."), a.listLists)
	huma.Register(to, operation("get-list", http.MethodGet, "/lists/{id}", "Lists", ScopeRead,
		"Read a list", "Its members are at /lists/{id}/members.", http.StatusNotFound), a.list)
	huma.Register(to, withBody(operation("change-list", http.MethodPatch, "/lists/{id}", "Lists", ScopeManage,
		"Rename a list", "Of two people who change it at the same time the second one gets 412.",
		http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed, http.StatusPreconditionRequired)), a.changeList)
	remove := operation("delete-list", http.MethodDelete, "/lists/{id}", "Lists", ScopeManage,
		"Delete a list", "With its members. A list that a schedule sends to is not deleted: the answer names those schedules.", http.StatusNotFound, http.StatusConflict)
	remove.DefaultStatus = http.StatusNoContent
	huma.Register(to, remove, a.deleteList)
	a.registerMembers(to)
}

func (a *API) listLists(ctx context.Context, in *struct {
	Cursor string `query:"cursor" doc:"next_cursor of the page before."`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
	Phone  string `query:"phone" example:"5678" doc:"Those with such a member: the last 4 digits of a number, or the whole number; a + is written %2B in a query."`
}) (*struct{ Body ListPage }, error) {
	after, err := parseIDCursor("list", in.Cursor)
	if err != nil {
		return nil, err
	}
	filter, err := a.memberFilter(in.Phone)
	if err != nil {
		return nil, err
	}
	lists, err := a.Store.RecipientLists(ctx, filter, after, in.Limit+1) // one more tells whether there is a next page
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	var page ListPage
	lists, page.NextCursor = cutPage(lists, in.Limit, func(last store.RecipientList) string { return idCursor("list", last.ID) })
	page.Items = mapped(lists, showList)
	return &struct{ Body ListPage }{page}, nil
}

func (a *API) list(ctx context.Context, in *listIDInput) (*listOutput, error) {
	l, err := a.Store.RecipientList(ctx, in.ID)
	if err != nil {
		return nil, a.listProblem(ctx, err)
	}
	return &listOutput{tagOf(l.Revision), showList(l)}, nil
}

func (a *API) changeList(ctx context.Context, in *struct {
	ID int64 `path:"id"`
	Precondition
	Body body[listChange]
}) (*listOutput, error) {
	old, err := a.Store.RecipientList(ctx, in.ID)
	if err != nil {
		return nil, a.listProblem(ctx, err)
	}
	if err := in.matches(tagOf(old.Revision)); err != nil {
		return nil, err
	}
	req, wrong := in.Body.Value, in.Body.Wrong
	checkName(&wrong, req.Name)
	if err := wrong.Problem(); err != nil {
		return nil, err
	}
	l, err := a.Store.RenameList(ctx, in.ID, old.Revision, strings.TrimSpace(req.Name))
	if err != nil {
		return nil, a.listProblem(ctx, err)
	}
	return &listOutput{tagOf(l.Revision), showList(l)}, nil
}

func (a *API) deleteList(ctx context.Context, in *listIDInput) (*struct{}, error) {
	err := a.Store.DeleteList(ctx, in.ID)
	if errors.Is(err, store.ErrInUse) {
		users, err := a.Store.ListUsers(ctx, in.ID)
		if err != nil {
			return nil, a.fail(ctx, err)
		}
		return nil, problem.Newf(problem.ListInUse, "the list is used by %s: give them another list, or delete them first", namesOf(users))
	}
	if err != nil {
		return nil, a.listProblem(ctx, err)
	}
	return nil, nil
}

// namesOf names the first few schedules.
func namesOf(users []store.User) string {
	const few = 5
	if len(users) == 0 {
		return "something" // that was gone by the time it was asked for its name
	}
	names := mapped(users[:min(few, len(users))], func(u store.User) string {
		return fmt.Sprintf("%d (%s)", u.ID, notify.Excerpt(u.Name))
	})
	if more := len(users) - few; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return "the schedules " + strings.Join(names, ", ")
}

func (a *API) listProblem(ctx context.Context, err error) error {
	var refusal *problem.Problem
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.Is(err, store.ErrNotFound):
		return problem.New(problem.ListNotFound, "there is no list with the id in the path: see GET /api/v1/lists").WithStatus(http.StatusNotFound)
	case errors.Is(err, store.ErrStale):
		return stale()
	case errors.Is(err, store.ErrNameTaken):
		return problem.New(problem.NameTaken, "another list has this name: choose another one")
	case errors.Is(err, store.ErrListFull):
		return problem.Newf(problem.TooManyRecipients, "the list would have more than %d members: begin another one", MaxRecipients)
	}
	return a.fail(ctx, err)
}

func showList(l store.RecipientList) List {
	return List{ID: l.ID, Name: l.Name, MembersCount: l.Members, CreatedAt: l.CreatedAt, UpdatedAt: l.UpdatedAt}
}

// A cursor of this kind is the id of the last thing of a page. Its form is nobody's business but ours.
func idCursor(of string, after int64) string {
	return base64.RawURLEncoding.EncodeToString([]byte(of + ":" + strconv.FormatInt(after, 10)))
}

func parseIDCursor(of, cursor string) (after int64, err error) {
	if cursor == "" {
		return 0, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		id, _ := strings.CutPrefix(string(text), of+":")
		after, err = strconv.ParseInt(id, 10, 64)
	}
	if err != nil {
		return 0, problem.New(problem.ParameterInvalid, "cursor: it is not one that this address gave: start without it")
	}
	return after, nil
}
