package v1

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// Template is a named text with placeholders, at one version.
type Template struct {
	ID      int64          `json:"id"`
	Name    string         `json:"name" example:"Reservation reminder"`
	Channel notify.Channel `json:"channel" enum:"SMS,CALL"`
	Version int32          `json:"version" doc:"Counts from 1. A version never changes; a notification keeps the one it was accepted with."`
	Body    string         `json:"body" example:"{{name}}様、ご予約は{{time}}です。"`
	Params  []string       `json:"params" nullable:"false" doc:"The names of the placeholders, in the order of their first use."`

	Kinds      map[string]notify.ParamKind `json:"kinds" doc:"What the value of each placeholder must be: text, number, date or time."`
	CreatedAt  time.Time                   `json:"created_at"`
	UpdatedAt  time.Time                   `json:"updated_at"`
	ArchivedAt *time.Time                  `json:"archived_at" doc:"Nothing new is sent with it."`

	AffectedSchedules []AffectedSchedule `json:"affected_schedules,omitempty" nullable:"false" doc:"In the answer to PATCH: schedules with this template to lists on which somebody lacks a value that it needs."`
}

// TemplatePage is a part of the list of templates.
type TemplatePage struct {
	Items      []Template `json:"items" nullable:"false"`
	NextCursor *string    `json:"next_cursor" doc:"Give it as cursor to read on; null on the last page."`
}

type newTemplate struct {
	Name    string `json:"name" maxLength:"100" example:"Reservation reminder"`
	Channel string `json:"channel" enum:"SMS,CALL" example:"SMS"`
	Body    string `json:"body" example:"{{name}}様、ご予約は{{time}}です。" doc:"Text with placeholders such as {{name}} or {{氏名}}; nothing else is special."`

	Kinds map[string]string `json:"kinds,omitempty" doc:"What the value of a placeholder must be, so that a wrong one is not sent: number, date, time, or else text, which is anything. The value itself is written as it is given."`
}

type templateChange struct {
	Name *string `json:"name,omitempty" maxLength:"100"`
	Body *string `json:"body,omitempty" doc:"The next version, unless it is the present text."`

	Kinds    map[string]string `json:"kinds,omitempty" doc:"All of them, also the next version. Without them placeholders keep theirs."`
	Archived *bool             `json:"archived,omitempty" doc:"true: nothing new is sent with it, and its name is free. false: it is brought back."`
}

type templateInput struct {
	ID int64 `path:"id"`
}

type templateOutput struct {
	ETag string `header:"ETag" doc:"Give it as If-Match to PATCH."`
	Body Template
}

type templateCreated struct {
	Location string `header:"Location"`
	ETag     string `header:"ETag" doc:"Give it as If-Match to PATCH."`
	Body     Template
}

func (a *API) registerTemplates(to huma.API) {
	create := operation("create-template", http.MethodPost, "/templates", "Templates", ScopeManage, "Create a template", "", http.StatusConflict)
	create.DefaultStatus = http.StatusCreated
	huma.Register(to, withBody(create), a.createTemplate)

	huma.Register(to, operation("list-templates", http.MethodGet, "/templates", "Templates", ScopeRead,
		"List the templates", "At their present versions, the oldest first; without those that are archived."), a.listTemplates)

	huma.Register(to, operation("get-template", http.MethodGet, "/templates/{id}", "Templates", ScopeRead,
		"Read a template", "At its present version.", http.StatusNotFound), a.template)

	huma.Register(to, withBody(operation("change-template", http.MethodPatch, "/templates/{id}", "Templates", ScopeManage,
		"Change a template", "A new body, or new kinds, become the next version. Notifications that were accepted before keep theirs. "+
			"Of two people who change it at the same time the second one gets 412.",
		http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed, http.StatusPreconditionRequired)), a.changeTemplate)

	huma.Register(to, operation("list-template-versions", http.MethodGet, "/templates/{id}/versions", "Templates", ScopeRead,
		"List a template's versions", "The first one first.", http.StatusNotFound), a.templateVersions)

	a.registerTemplateArchive(to)
	a.registerTemplateDiff(to)

	huma.Register(to, withBody(operation("render-template", http.MethodPost, "/templates/{id}/render", "Templates", ScopeRead,
		"Preview a template", "What a recipient would read or hear, and what it would cost. Nothing is sent. Parameters that are missing or blank are named, as by sending.", http.StatusNotFound)), a.renderTemplate)
}

func (a *API) createTemplate(ctx context.Context, in *struct{ Body body[newTemplate] }) (*templateCreated, error) {
	req, wrong := in.Body.Value, in.Body.Wrong
	checkName(&wrong, req.Name)
	channel := checkChannel(&wrong, req.Channel)
	text := store.TemplateText{Body: req.Body, Params: checkTemplateBody(&wrong, channel, req.Body)}
	text.Kinds = checkKinds(&wrong, text.Params, req.Kinds)
	if err := wrong.Problem(); err != nil {
		return nil, err
	}
	created, err := a.Store.CreateTemplate(ctx, strings.TrimSpace(req.Name), channel, text)
	if err != nil {
		return nil, a.templateProblem(ctx, err)
	}
	return &templateCreated{"/api/v1/templates/" + strconv.FormatInt(created.ID, 10), tagOf(created.Revision), showTemplate(created)}, nil
}

func (a *API) listTemplates(ctx context.Context, in *struct {
	Cursor   string `query:"cursor" doc:"next_cursor of the page before."`
	Limit    int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
	Archived bool   `query:"archived" doc:"true: those that are archived, and no others."`
}) (*struct{ Body TemplatePage }, error) {
	after, err := parseIDCursor("template", in.Cursor)
	if err != nil {
		return nil, err
	}
	templates, err := a.Store.Templates(ctx, in.Archived, after, in.Limit+1) // one more tells whether there is a next page
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	var page TemplatePage
	templates, page.NextCursor = cutPage(templates, in.Limit, func(last store.Template) string { return idCursor("template", last.ID) })
	page.Items = mapped(templates, showTemplate)
	return &struct{ Body TemplatePage }{page}, nil
}

func (a *API) template(ctx context.Context, in *templateInput) (*templateOutput, error) {
	t, err := a.Store.Template(ctx, in.ID)
	if err != nil {
		return nil, a.templateProblem(ctx, err)
	}
	return &templateOutput{tagOf(t.Revision), showTemplate(t)}, nil
}

func (a *API) changeTemplate(ctx context.Context, in *struct {
	ID int64 `path:"id"`
	Precondition
	Body body[templateChange]
}) (*templateOutput, error) {
	t, err := a.Store.Template(ctx, in.ID)
	if err != nil {
		return nil, a.templateProblem(ctx, err)
	}
	if err := in.matches(tagOf(t.Revision)); err != nil {
		return nil, err
	}
	req, wrong := in.Body.Value, in.Body.Wrong
	if req.Name != nil {
		checkName(&wrong, *req.Name)
	}
	next := store.TemplateRevision{Name: strings.TrimSpace(valueOf(req.Name)), Text: checkNextText(&wrong, t, req), Archived: req.Archived}
	if err := wrong.Problem(); err != nil {
		return nil, err
	}
	if t, err = a.Store.ReviseTemplate(ctx, in.ID, t.Revision, next); err != nil {
		return nil, a.archiveProblem(ctx, in.ID, err)
	}
	shown := showTemplate(t)
	shown.AffectedSchedules = a.affected(ctx, store.ScheduleUse{TemplateID: t.ID})
	return &templateOutput{tagOf(t.Revision), shown}, nil
}

// checkNextText makes the next version of a template, or nothing where none is asked for.
func checkNextText(wrong *problem.Details, t store.Template, req templateChange) *store.TemplateText {
	next := t.TemplateText
	if req.Body != nil {
		next.Body, next.Params = *req.Body, checkTemplateBody(wrong, t.Channel, *req.Body)
	}
	switch {
	case req.Kinds != nil:
		next.Kinds = checkKinds(wrong, next.Params, req.Kinds)
	case req.Body != nil:
		next.Kinds = maps.Clone(t.Kinds)
		maps.DeleteFunc(next.Kinds, func(name string, _ notify.ParamKind) bool { return !slices.Contains(next.Params, name) })
	default:
		return nil
	}
	return &next
}

func (a *API) templateVersions(ctx context.Context, in *templateInput) (*struct{ Body list[Template] }, error) {
	versions, err := a.Store.TemplateVersions(ctx, in.ID)
	switch {
	case err != nil:
		return nil, a.templateProblem(ctx, err)
	case len(versions) == 0:
		return nil, noTemplate()
	}
	return &struct{ Body list[Template] }{list[Template]{mapped(versions, showTemplate)}}, nil
}

func (a *API) templateProblem(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return noTemplate()
	case errors.Is(err, store.ErrNameTaken):
		return problem.New(problem.NameTaken, "another template has this name: choose another one")
	case errors.Is(err, store.ErrStale):
		return stale()
	case errors.Is(err, store.ErrArchived):
		return problem.New(problem.TemplateArchived, "the template is archived, so its name and its text stay as they are: bring it back first, with archived false").WithStatus(http.StatusConflict)
	}
	return a.fail(ctx, err)
}

// noTemplate is for an id in the path; in a body it is one of the details.
func noTemplate() error {
	return problem.New(problem.TemplateNotFound, "there is no template with the id in the path: see GET /api/v1/templates").WithStatus(http.StatusNotFound)
}

// checkTemplateBody returns the names of the placeholders.
func checkTemplateBody(wrong *problem.Details, channel notify.Channel, text string) []string {
	if wrong.At("/body") {
		return nil
	}
	template, err := notify.ParseTemplate(text)
	var malformed *notify.TemplateError
	if errors.As(err, &malformed) {
		wrong.Add("/body", problem.Code(malformed.Code), malformed.Error())
	}
	checkText(wrong, "/body", channel, text)
	return append([]string{}, template.Params()...) // the ledger wants an empty list, not none
}

// checkKinds reads the kinds of placeholders. Text is what they are without one.
func checkKinds(wrong *problem.Details, params []string, typed map[string]string) map[string]notify.ParamKind {
	kinds := make(map[string]notify.ParamKind)
	for _, given := range slices.Sorted(maps.Keys(typed)) {
		name, _ := notify.ParamName(given)
		switch kind := notify.ParamKind(typed[given]); {
		case !slices.Contains(params, name):
			wrong.Add(pointerTo("/kinds", given), problem.ParamUnknown, "the template has no such placeholder: remove it")
		case !slices.Contains(notify.ParamKinds, kind):
			wrong.Add(pointerTo("/kinds", given), problem.ParamKindUnknown, "there is no such kind: use "+joined(notify.ParamKinds))
		case kind != notify.ParamText:
			kinds[name] = kind
		}
	}
	return kinds
}

func showTemplate(t store.Template) Template {
	kinds := make(map[string]notify.ParamKind, len(t.Params))
	for _, name := range t.Params {
		kinds[name] = cmp.Or(t.Kinds[name], notify.ParamText)
	}
	return Template{
		ID: t.ID, Name: t.Name, Channel: t.Channel, Version: t.Version, Body: t.Body, Params: t.Params, Kinds: kinds,
		CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt, ArchivedAt: t.ArchivedAt,
	}
}
