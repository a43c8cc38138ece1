package api

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"github.com/todoku/todoku/api/problem"
	v1 "github.com/todoku/todoku/api/v1"
)

// describe begins the API's description; each resource adds its operations.
func describe() *huma.OpenAPI {
	components := &huma.Components{Schemas: huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)}
	v1.Describe(components)
	return &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title:       "Todoku API",
			Version:     "1",
			Description: introduction + "\n\n## Codes of problems\n\n" + codeTable(),
			License:     &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		Tags: []*huma.Tag{
			{Name: "Notifications", Description: "One SMS or one call to one recipient."},
			{Name: "Batches", Description: "One text or template for up to a million recipients."},
			{Name: "Templates", Description: "Texts with placeholders, in versions that never change."},
			{Name: "Lists", Description: "Recipients with their parameters, which schedules send to."},
			{Name: "Schedules", Description: "A template to a list, again and again, at times of a time zone."},
			{Name: "Senders", Description: "The numbers and Messaging Services that notifications are sent from."},
			{Name: "Inbound calls", Description: "Calls that came in: who waits, who was answered, and what is done about the others."},
		},
		Components: components,
	}
}

const introduction = "Todoku (届く, \"to arrive\") sends SMS and automated calls through Twilio and knows what became of each one.\n\n" +
	"Errors are `application/problem+json` (RFC 9457) with a stable `code` and, for a body, `errors` with a JSON pointer to each field that is wrong. " +
	"They never repeat a value. " +
	"What is no HTTP, or has more than 16 KiB of headers, is refused in plain text (400 or 431), and its connection is closed."

// codeTable is problem.Codes in Markdown.
func codeTable() string {
	var table strings.Builder
	table.WriteString("| code | status | what happened | what to do |\n| --- | --- | --- | --- |\n")
	for _, e := range problem.Codes {
		fmt.Fprintf(&table, "| `%s` | %d | %s | %s |\n", e.Code, e.Status, e.Title, e.Advice)
	}
	return table.String()
}

// registerDocs serves the description, and a page made of it that needs nothing from elsewhere.
func registerDocs(to gin.IRoutes, description *huma.OpenAPI) error {
	openAnswers(description)
	asJSON, err := json.Marshal(description)
	if err != nil {
		return fmt.Errorf("write openapi.json: %w", err)
	}
	asYAML, err := description.YAML()
	if err != nil {
		return fmt.Errorf("write openapi.yaml: %w", err)
	}
	var page bytes.Buffer
	if err := docsTemplate.Execute(&page, newDocs(description)); err != nil {
		return fmt.Errorf("write the page of the API: %w", err)
	}
	serve := func(path, contentType string, content []byte) {
		to.GET(path, func(c *gin.Context) {
			c.Header("Cache-Control", "no-cache")
			c.Header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
			c.Data(http.StatusOK, contentType, content)
		})
	}
	serve("/openapi.json", "application/openapi+json", asJSON)
	serve("/openapi.yaml", "application/openapi+yaml", asYAML)
	serve("/docs", "text/html; charset=utf-8", page.Bytes())
	to.GET("/", func(c *gin.Context) { c.Redirect(http.StatusFound, "/docs") })
	return nil
}

//go:embed docs.html
var docsHTML string

var docsTemplate = template.Must(template.New("docs").Parse(docsHTML))

// docs is what the page shows.
type docs struct {
	Title    string
	Sections []docsSection
	Codes    []problem.Entry
}

type docsSection struct {
	Name, Description string
	Operations        []docsOperation
}

type docsOperation struct {
	ID, Method, Path, Summary, Description, Scope string
	Parameters                                    []docsField
	Request                                       []docsField
	Answers, Problems                             []docsResponse
}

type docsResponse struct {
	Status, Description string
	Fields              []docsField
}

type docsField struct {
	Name, Type, Description string
	Required                bool
}

func newDocs(description *huma.OpenAPI) docs {
	page := docs{Title: description.Info.Title, Codes: problem.Codes}
	for _, tag := range description.Tags {
		section := docsSection{Name: tag.Name, Description: tag.Description}
		for _, path := range slices.Sorted(maps.Keys(description.Paths)) {
			for _, op := range operations(description.Paths[path]) {
				if slices.Contains(op.Tags, tag.Name) {
					section.Operations = append(section.Operations, newDocsOperation(description, op))
				}
			}
		}
		page.Sections = append(page.Sections, section)
	}
	return page
}

// operations lists those of a path in the order in which people look for them.
func operations(item *huma.PathItem) []*huma.Operation {
	all := []*huma.Operation{item.Post, item.Get, item.Put, item.Patch, item.Delete}
	return slices.DeleteFunc(all, func(op *huma.Operation) bool { return op == nil })
}

func newDocsOperation(description *huma.OpenAPI, op *huma.Operation) docsOperation {
	schemas := description.Components.Schemas
	shown := docsOperation{ID: op.OperationID, Method: op.Method, Path: op.Path, Summary: op.Summary, Description: op.Description}
	for _, need := range op.Security {
		for _, scopes := range need {
			shown.Scope = strings.Join(scopes, ", ")
		}
	}
	for _, p := range op.Parameters {
		shown.Parameters = append(shown.Parameters, docsField{
			Name: p.Name, Type: typeOf(schemas, p.Schema) + ", in the " + p.In, Description: p.Description, Required: p.Required,
		})
	}
	if op.RequestBody != nil {
		shown.Request = fields(schemas, op.RequestBody.Content["application/json"].Schema)
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		response := docsResponse{Status: status, Description: op.Responses[status].Description}
		if content := op.Responses[status].Content["application/json"]; content != nil {
			response.Fields = fields(schemas, content.Schema)
			shown.Answers = append(shown.Answers, response)
		} else {
			shown.Problems = append(shown.Problems, response)
		}
	}
	return shown
}

// fields lists an object's properties in the order in which they are written.
func fields(schemas huma.Registry, s *huma.Schema) []docsField {
	names := slices.Sorted(maps.Keys(s.Properties))
	if s.Ref != "" {
		names = jsonNames(schemas.TypeFromRef(s.Ref))
		s = schemas.SchemaFromRef(s.Ref)
	}
	var list []docsField
	for _, name := range names {
		property := s.Properties[name]
		list = append(list, docsField{
			Name: name, Type: typeOf(schemas, property), Description: property.Description, Required: slices.Contains(s.Required, name),
		})
	}
	return list
}

func jsonNames(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// openAnswers allows properties that are not in the description yet in all objects but those of
// requests, so that a strict client does not break when an answer learns to say more.
func openAnswers(description *huma.OpenAPI) {
	requests := make(map[string]bool)
	for _, item := range description.Paths {
		for _, op := range operations(item) {
			if op.RequestBody != nil {
				requests[op.RequestBody.Content["application/json"].Schema.Ref] = true
			}
		}
	}
	for name, schema := range description.Components.Schemas.Map() {
		if !requests["#/components/schemas/"+name] {
			schema.AdditionalProperties = nil
		}
	}
}

// typeOf names a type in words: "string or null", "array of Template", "SMS | CALL".
func typeOf(schemas huma.Registry, s *huma.Schema) string {
	name := s.Type
	switch {
	case s.Ref != "":
		name = schemas.TypeFromRef(s.Ref).Name()
	case len(s.Enum) > 0:
		values := make([]string, len(s.Enum))
		for i, value := range s.Enum {
			values[i] = fmt.Sprint(value)
		}
		name = strings.Join(values, " | ")
	case s.Type == huma.TypeArray:
		name = "array of " + typeOf(schemas, s.Items)
	case s.Type == huma.TypeObject && reflect.TypeOf(s.AdditionalProperties) == reflect.TypeFor[*huma.Schema]():
		name = "object of " + typeOf(schemas, s.AdditionalProperties.(*huma.Schema))
	case s.Format != "" && s.Type == huma.TypeString:
		name = s.Format
	}
	if s.Nullable {
		name += " or null"
	}
	return name
}
