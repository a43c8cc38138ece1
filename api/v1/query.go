package v1

import (
	"net/url"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"

	"github.com/todoku/todoku/api/problem"
)

// eachOnce refuses a query that gives a parameter more than once of which one value is read. What the
// operation does not know is refused by huma.
func eachOnce(ctx huma.Context, next func(huma.Context)) {
	if raw := humagin.Unwrap(ctx).Request.URL.RawQuery; raw != "" {
		query, _ := url.ParseQuery(raw) // it can be read: wholeQuery let it pass
		for _, p := range ctx.Operation().Parameters {
			if p.In == "query" && p.Schema.Type != huma.TypeArray && len(query[p.Name]) > 1 {
				refuse(ctx, repeatedParameter(p.Name))
				return
			}
		}
	}
	next(ctx)
}

// noParameters refuses a query at an address that has none: who believes in a filter would get all.
func noParameters(c *gin.Context) error {
	if len(c.Request.URL.Query()) > 0 {
		return unknownParameter()
	}
	return nil
}

func unknownParameter() error {
	return problem.New(problem.ParameterInvalid, "the query has a parameter that this address does not know: remove it")
}

func repeatedParameter(name string) error {
	return problem.Newf(problem.ParameterInvalid, "the query has the parameter %s more than once: keep one", name)
}
