package v1

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// TemplateDiff says how two versions of a template differ.
type TemplateDiff struct {
	TemplateID    int64           `json:"template_id"`
	From          int32           `json:"from" doc:"A version."`
	To            int32           `json:"to" doc:"A version."`
	Changes       []notify.Change `json:"changes" nullable:"false" doc:"The parts of both texts in order: what is not added makes up the first one, what is not removed the second one."`
	ParamsAdded   []string        `json:"params_added" nullable:"false" doc:"Placeholders that a send with the first one has no values for."`
	ParamsRemoved []string        `json:"params_removed" nullable:"false"`
	KindsChanged  []KindChange    `json:"kinds_changed" nullable:"false" doc:"Of placeholders that both have."`
}

// KindChange is a placeholder whose values must be of another kind.
type KindChange struct {
	Name string           `json:"name"`
	From notify.ParamKind `json:"from" enum:"text,number,date,time"`
	To   notify.ParamKind `json:"to" enum:"text,number,date,time"`
}

func (a *API) registerTemplateDiff(to huma.API) {
	huma.Register(to, operation("diff-template", http.MethodGet, "/templates/{id}/diff", "Templates", ScopeRead,
		"Compare two versions of a template", "Of their texts, words and placeholders are compared and, in Japanese, characters.", http.StatusNotFound), a.diffTemplate)
}

func (a *API) diffTemplate(ctx context.Context, in *struct {
	ID   int64 `path:"id"`
	From int32 `query:"from" minimum:"1" doc:"A version; by default the one before to."`
	To   int32 `query:"to" minimum:"1" doc:"A version; by default the present one."`
}) (*struct{ Body TemplateDiff }, error) {
	to, err := a.templateAt(ctx, in.ID, in.To)
	if err != nil {
		return nil, err
	}
	from, err := a.templateAt(ctx, in.ID, cmp.Or(in.From, max(1, to.Version-1)))
	if err != nil {
		return nil, err
	}
	return &struct{ Body TemplateDiff }{diffOf(from, to)}, nil
}

// templateAt reads a template at a version; 0: the present one. Its error is an answer.
func (a *API) templateAt(ctx context.Context, id int64, version int32) (store.Template, error) {
	t, err := a.Store.Template(ctx, id)
	if err != nil {
		return t, a.templateProblem(ctx, err)
	}
	if version == 0 || version == t.Version {
		return t, nil
	}
	t, err = a.Store.TemplateAt(ctx, id, version)
	if errors.Is(err, store.ErrNotFound) {
		return t, problem.New(problem.VersionNotFound, "the template has no such version: see its versions")
	}
	if err != nil {
		return t, a.fail(ctx, err)
	}
	return t, nil
}

func diffOf(from, to store.Template) TemplateDiff {
	diff := TemplateDiff{TemplateID: to.ID, From: from.Version, To: to.Version, Changes: append([]notify.Change{}, notify.Diff(from.Body, to.Body)...),
		ParamsAdded: without(to.Params, from.Params), ParamsRemoved: without(from.Params, to.Params), KindsChanged: []KindChange{}}
	for _, name := range to.Params {
		before, after := cmp.Or(from.Kinds[name], notify.ParamText), cmp.Or(to.Kinds[name], notify.ParamText)
		if before != after && slices.Contains(from.Params, name) {
			diff.KindsChanged = append(diff.KindsChanged, KindChange{name, before, after})
		}
	}
	return diff
}

// without are the names that are not among the others.
func without(names, others []string) []string {
	return slices.DeleteFunc(append([]string{}, names...), func(name string) bool { return slices.Contains(others, name) })
}
