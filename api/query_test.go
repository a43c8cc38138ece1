package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/todoku/todoku/api/apitest"
)

// Of a parameter that is given twice nobody knows which was meant, and one that is not known does not do
// what it was written for.
func TestNoOperationReadsAQueryInPart(t *testing.T) {
	a := apitest.Start(t)
	description, err := openapi3.NewLoader().LoadFromData([]byte(a.Do("GET", "/openapi.json", "").Text))
	if err != nil {
		t.Fatal(err)
	}
	id := strings.NewReplacer("{id}", "1", "{version}", "1", "{member_id}", "1")
	uuid := strings.NewReplacer("{id}", "0190b0a0-0000-7000-8000-000000000000")
	for path, item := range description.Paths.Map() {
		for method, operation := range item.Operations() {
			queries := []string{"nobody_knows_this=1"}
			for _, p := range operation.Parameters {
				if p.Value.In == "query" && !p.Value.Schema.Value.Type.Is("array") {
					queries = append(queries, p.Value.Name+"=1&"+p.Value.Name+"=1")
				}
			}
			body := ""
			if operation.RequestBody != nil {
				body = "{}"
			}
			at := id
			if p := operation.Parameters.GetByInAndName("path", "id"); p != nil && p.Schema.Value.Format == "uuid" {
				at = uuid
			}
			for _, query := range queries {
				t.Run(method+" "+path+"?"+query, func(t *testing.T) {
					answer := a.Do(method, at.Replace(path)+"?"+query, body, "If-Match: *")
					if answer.Status != http.StatusUnprocessableEntity || answer.Code() != "parameter_invalid" {
						t.Errorf("answer = %d %s", answer.Status, answer.Text)
					}
					if operation.Responses.Status(answer.Status) == nil {
						t.Errorf("%d is not described", answer.Status)
					}
				})
			}
		}
	}
}
