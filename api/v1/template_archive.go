package v1

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/store"
)

func (a *API) registerTemplateArchive(to huma.API) {
	op := operation("delete-template", http.MethodDelete, "/templates/{id}", "Templates", ScopeManage,
		"Delete or archive a template", "A template that nothing was sent with is deleted (204). Another one is archived (200): what was sent with it can be read, and nothing new is sent with it. "+
			"One that an active schedule sends with stays as it is (409): the answer names those schedules.", http.StatusNotFound, http.StatusConflict)
	op.Responses = map[string]*huma.Response{"204": {Description: "Deleted."}}
	huma.Register(to, op, a.deleteTemplate)
}

// deletedTemplate has a body where the template is archived.
type deletedTemplate struct {
	Status int
	Body   *Template
}

func (a *API) deleteTemplate(ctx context.Context, in *templateInput) (*deletedTemplate, error) {
	archived, err := a.Store.DeleteTemplate(ctx, in.ID)
	switch {
	case err != nil:
		return nil, a.archiveProblem(ctx, in.ID, err)
	case archived == nil:
		return &deletedTemplate{Status: http.StatusNoContent}, nil
	}
	shown := showTemplate(*archived)
	return &deletedTemplate{http.StatusOK, &shown}, nil
}

// archiveProblem names the schedules whose runs would end.
func (a *API) archiveProblem(ctx context.Context, id int64, err error) error {
	if !errors.Is(err, store.ErrInUse) {
		return a.templateProblem(ctx, err)
	}
	users, err := a.Store.TemplateUsers(ctx, id)
	if err != nil {
		return a.fail(ctx, err)
	}
	return problem.Newf(problem.TemplateInUse, "the template is used by %s: give them another template, or switch them off first", namesOf(users))
}
