package v1

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"github.com/todoku/todoku/api/problem"
)

// RegisterStreams adds what reads or writes more than fits into memory, which huma would hold whole.
func (a *API) RegisterStreams(to gin.IRoutes, described huma.API) {
	a.uploads = make(chan struct{}, uploadsAtOnce)
	to.POST(batchesPath, a.guarded(ScopeSend, a.acceptBatch))
	to.GET(batchesPath+"/:id/progress", a.guarded(ScopeRead, a.batchProgress))
	to.GET(batchesPath+"/:id/results.csv", a.guarded(ScopeRead, a.batchResults))
	to.POST(listsPath, a.guarded(ScopeManage, a.createList))
	to.POST(listsPath+"/:id/members", a.guarded(ScopeManage, a.importMembers))
	to.GET(listsPath+"/:id/members.csv", a.guarded(ScopeRead, a.exportMembers))
	describeAcceptBatch(described)
	describeListStreams(described)
	describeBatchStreams(described)
}

// streamLimit bounds one upload, download or stream of events.
const streamLimit = time.Hour

// guarded lets a request pass whose key has the scope, and answers with the problem that handle
// returns.
func (a *API) guarded(scope string, handle func(*gin.Context) error) gin.HandlerFunc {
	return func(c *gin.Context) {
		found, err := a.gate.admit(c.Request.Context(), c.GetHeader("Authorization"), c.ClientIP(), []string{scope})
		if err == nil {
			c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), callerKey{}, found))
			timeouts := http.NewResponseController(c.Writer)
			_ = timeouts.SetReadDeadline(time.Now().Add(streamLimit)) // what cannot be set stays as it is
			_ = timeouts.SetWriteDeadline(time.Now().Add(streamLimit))
			err = handle(c)
		}
		if err == nil {
			return
		}
		var p *problem.Problem
		if !errors.As(err, &p) {
			p = a.fail(c.Request.Context(), err).(*problem.Problem)
		}
		problem.Write(c.Writer, p)
	}
}

// addProblems describes an operation's problems as huma does those that it registers.
func addProblems(to huma.API, op *huma.Operation) {
	schema := to.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[problem.Problem](), true, "")
	for _, status := range op.Errors {
		op.Responses[strconv.Itoa(status)] = &huma.Response{
			Description: http.StatusText(status),
			Content:     map[string]*huma.MediaType{problem.ContentType: {Schema: schema}},
		}
	}
}
