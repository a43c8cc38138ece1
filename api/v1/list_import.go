package v1

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// MembersReport says what an import did to a list.
type MembersReport struct {
	ListID            int64              `json:"list_id"`
	MembersCount      int32              `json:"members_count" doc:"Now."`
	Added             int64              `json:"added"`
	Changed           int64              `json:"changed" doc:"Members with another time zone or locale and, in the mode replace, with other parameters than before."`
	Unchanged         int64              `json:"unchanged"`
	Removed           int64              `json:"removed" doc:"In the mode replace: members that the request does not have."`
	NotRemoved        int64              `json:"not_removed" doc:"In the mode replace: members that the request does not have and that stay, since rows were rejected; remove_with_rejected removes them."`
	Duplicates        int64              `json:"duplicates" doc:"Rows with the number and the parameters of an earlier one."`
	RejectedCount     int                `json:"rejected_count" doc:"Rows that nothing can be sent to."`
	Rejected          []store.Rejected   `json:"rejected" nullable:"false" doc:"The first 100 of them."`
	AffectedSchedules []AffectedSchedule `json:"affected_schedules,omitempty" nullable:"false" doc:"Schedules to this list whose template needs a value that somebody on it lacks."`
	RejectedByCode    map[string]int     `json:"rejected_by_code" nullable:"false" doc:"How many rows were rejected for each code."`
	IgnoredColumns    []string           `json:"ignored_columns,omitempty" nullable:"false" doc:"Columns of the file that no placeholder can have the name of."`
}

const membersField = "members"

// newList is a list to be, but for its members.
type newList struct {
	Name string `json:"name" maxLength:"100" example:"Saturday's patients"`
}

// createList answers POST /lists. It is no operation of huma's, which would hold the body in memory.
func (a *API) createList(c *gin.Context) error {
	ctx, stop := context.WithCancel(c.Request.Context())
	defer stop()
	isCSV, body, err := a.upload(c)
	if err != nil {
		return err
	}
	defer a.uploaded(body)
	if isCSV {
		return problem.New(problem.UnsupportedMediaType, "a list is made of JSON: send Content-Type: application/json here, and the file to the list's members")
	}
	if err := noParameters(c); err != nil {
		return err
	}
	fields, hasMembers, err := jsonMembers(body, membersField)
	if err != nil {
		return a.uploadFailed(ctx, err)
	}
	var req newList
	wrong := readMembers(fields, &req)
	checkName(&wrong, req.Name)
	if err := wrong.Problem(); err != nil {
		return err
	}
	rows := &memberRows{}
	if hasMembers {
		if rows, err = a.startMembers(ctx, body, false); err != nil {
			return a.uploadFailed(ctx, err)
		}
	}
	done, err := a.Store.CreateListOf(ctx, strings.TrimSpace(req.Name), rows.next)
	if err != nil {
		return a.listProblem(ctx, err)
	}
	created := showList(done.List)
	if hasMembers {
		created.RejectedCount, created.Rejected = &rows.rejected, rows.first
		created.RejectedByCode = rows.byCode
	}
	c.Header("ETag", tagOf(done.List.Revision))
	return writeJSON(c, http.StatusCreated, listsPath+"/"+strconv.FormatInt(created.ID, 10), created)
}

// importMembers answers POST /lists/{id}/members.
func (a *API) importMembers(c *gin.Context) error {
	ctx, stop := context.WithCancel(c.Request.Context())
	defer stop()
	id, err := parsePathID(c)
	if err != nil {
		return err
	}
	replace, remove, err := importMode(c)
	if err != nil {
		return err
	}
	if _, err := a.Store.RecipientList(ctx, id); err != nil { // before a long upload
		return a.listProblem(ctx, err)
	}
	isCSV, body, err := a.upload(c)
	if err != nil {
		return err
	}
	defer a.uploaded(body)
	if !isCSV {
		if err := onlyMembers(body); err != nil {
			return a.uploadFailed(ctx, err)
		}
	}
	rows, err := a.startMembers(ctx, body, isCSV)
	if err != nil {
		return a.uploadFailed(ctx, err)
	}
	rows.needed = true
	done, err := a.Store.ImportMembers(ctx, store.MembersImport{ListID: id, Replace: replace, Members: rows.next,
		Keep: func() bool { return rows.rejected > 0 && !remove }})
	if err != nil {
		return a.listProblem(ctx, err)
	}
	return writeJSON(c, http.StatusOK, "", MembersReport{
		ListID: id, MembersCount: done.List.Members, Added: done.Added, Changed: done.Changed, Unchanged: done.Unchanged,
		Removed: done.Removed, NotRemoved: done.Kept, Duplicates: done.Duplicates,
		RejectedCount: rows.rejected, Rejected: append([]store.Rejected{}, rows.first...), RejectedByCode: rows.byCode, IgnoredColumns: rows.ignored,
		AffectedSchedules: a.affected(ctx, store.ScheduleUse{ListID: id}),
	})
}

func parsePathID(c *gin.Context) (int64, error) {
	id, err := strconv.ParseInt(c.Param("id"), 10, 64)
	if err != nil {
		return 0, problem.New(problem.NotFound, "the id in the path cannot be one: check it")
	}
	return id, nil
}

// importMode reports whether the list becomes what is imported, and whether members leave it even though
// rows are rejected.
func importMode(c *gin.Context) (replace, remove bool, err error) {
	query := c.Request.URL.Query()
	for name, values := range query {
		switch {
		case name != "mode" && name != "remove_with_rejected":
			return false, false, unknownParameter()
		case len(values) > 1:
			return false, false, repeatedParameter(name)
		}
	}
	switch query.Get("remove_with_rejected") {
	case "", "false":
	case "true":
		remove = true
	default:
		return false, false, problem.New(problem.ParameterInvalid, "remove_with_rejected: write true or false")
	}
	switch query.Get("mode") {
	case "", "add":
		return false, remove, nil
	case "replace":
		return true, remove, nil
	}
	return false, false, problem.New(problem.ParameterInvalid, "mode: there is no such mode: use add or replace")
}

// onlyMembers checks that the object has members and nothing else.
func onlyMembers(body *spool) error {
	fields, hasMembers, err := jsonMembers(body, membersField)
	if err != nil {
		return err
	}
	var wrong problem.Details
	if !hasMembers {
		wrong.Add(pointerTo("", membersField), problem.Required, "the field members is missing: add it")
	}
	for name := range fields {
		wrong.Add(pointerTo("", name), problem.UnknownField, unknownField(name, []string{membersField}))
	}
	return wrong.Problem()
}

// memberRows are the members of a request, in their order. The zero value has none.
type memberRows struct {
	*checkedRows[store.NewMember]
	ignored []string
	needed  bool // without any the request is wrong
	right   int
}

// startMembers begins to read the members of a request.
func (a *API) startMembers(ctx context.Context, body *spool, isCSV bool) (*memberRows, error) {
	rows := &memberRows{}
	var source recipientSource
	var err error
	if isCSV {
		var file *memberFile
		if file, err = newMemberFile(body, nil); err == nil {
			source, rows.ignored = file, mapped(file.unusable, notify.Excerpt)
		}
	} else {
		source, err = newMemberSource(body)
	}
	if err != nil {
		return nil, err
	}
	rows.checkedRows = checkRows(ctx, source, a.memberCheck().check)
	return rows, nil
}

// next gives the next member, and false after the last one.
func (m *memberRows) next() (member store.NewMember, ok bool, err error) {
	if m.checkedRows == nil {
		return member, false, nil
	}
	member, ok, err = m.checkedRows.next()
	if ok {
		m.right++
	}
	if !ok && err == nil && m.right == 0 && (m.needed || m.rejected > 0) {
		err = nobody(problem.ImportEmpty, "there are no members: give at least one", membersField, m.rejected, m.first)
	}
	return member, ok, err
}

// newMemberSource reads the members of a JSON object.
func newMemberSource(body *spool) (recipientSource, error) {
	s := &jsonSource[memberRequest]{description: "to, params, timezone and locale", recipient: memberRequest.recipient}
	return s, s.open(body, membersField)
}

// memberFile reads the members of a list, or the recipients of a batch, from a file. Its columns `timezone` and
// `locale` are no parameters.
type memberFile struct {
	csvSource
	timezone, locale string   // the columns' names as they are written; empty: there is none
	params           []string // all other columns
	unusable         []string // those of them that no placeholder can have the name of
}

// newMemberFile reads the names of the columns. Those that a template needs are parameters, whatever their names.
func newMemberFile(body *spool, needed []string) (*memberFile, error) {
	reader, err := notify.NewRecipientReader(body, body.charset)
	var wrong *notify.CSVError
	switch {
	case errors.As(err, &wrong):
		return nil, csvProblem(wrong)
	case err != nil:
		return nil, err
	}
	file := &memberFile{csvSource: csvSource{reader}}
	file.params, file.timezone, file.locale = splitColumns(reader.Columns(), needed)
	for _, column := range file.params {
		if _, usable := notify.ParamName(column); !usable {
			file.unusable = append(file.unusable, column)
		}
	}
	return file, nil
}

// ParamColumns are the columns of a file that hold parameters: all but `timezone` and `locale`, unless a template
// has placeholders of these names.
func ParamColumns(columns, placeholders []string) []string {
	params, _, _ := splitColumns(columns, placeholders)
	return params
}

func splitColumns(columns, needed []string) (params []string, timezone, locale string) {
	for _, column := range columns {
		switch {
		case slices.Contains(needed, column):
			params = append(params, column)
		case timezone == "" && strings.EqualFold(column, "timezone"):
			timezone = column
		case locale == "" && strings.EqualFold(column, "locale"):
			locale = column
		default:
			params = append(params, column)
		}
	}
	return params, timezone, locale
}

// Read gives the next member.
func (f *memberFile) Read() (notify.Recipient, error) {
	r, err := f.csvSource.Read()
	if err != nil {
		return r, err
	}
	take := func(column string) string {
		value := strings.TrimSpace(r.Params[column])
		delete(r.Params, column)
		return value
	}
	r.Timezone, r.Locale = take(f.timezone), take(f.locale)
	for _, column := range f.unusable {
		delete(r.Params, column)
	}
	return r, nil
}

func writeJSON(c *gin.Context, status int, location string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	writeAnswer(c, store.Answer{Status: status, Location: location, Body: text})
	return nil
}

// describeListStreams adds the operations to the description.
func describeListStreams(to huma.API) {
	schemas := to.OpenAPI().Components.Schemas
	members := &huma.Schema{Type: huma.TypeArray, Items: schemas.Schema(reflect.TypeFor[memberRequest](), true, "")}
	answer := func(of reflect.Type, description string) *huma.Response {
		return &huma.Response{Description: description, Content: map[string]*huma.MediaType{"application/json": {Schema: schemas.Schema(of, true, "")}}}
	}
	uploadErrors := []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType}
	id := &huma.Param{Name: "id", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeInteger, Format: "int64"}}

	create := operation("create-list", http.MethodPost, "/lists", "Lists", ScopeManage, "Create a list",
		"With its members, or without any. Members that nothing can be sent to are listed in rejected, and the others are kept.", append(uploadErrors, http.StatusConflict)...)
	request := schemas.Schema(reflect.TypeFor[newList](), true, "newList")
	if of := schemas.SchemaFromRef(request.Ref); of != nil {
		of.Properties[membersField] = members
	}
	create.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: request}}}
	create.Responses = map[string]*huma.Response{"201": answer(reflect.TypeFor[List](), "Created.")}

	add := operation("import-members", http.MethodPost, "/lists/{id}/members", "Lists", ScopeManage, "Import members",
		"As JSON, or as a CSV file (Content-Type: text/csv): its first row names the columns, `to` and one for each parameter, and `timezone` and `locale` where there are such. "+encodingsOfFiles+
			"A member is a number with its parameters: the same number with other parameters is another member, since relatives share phones. "+
			"An empty cell is an empty value and is kept as such; a template that has the parameter is not sent to that member. Only an empty timezone or locale is none: it leaves what the member has in the mode add, and takes it away in the mode replace. "+
			"In the mode add all members stay; in the mode replace the list becomes what is imported, and a number that comes with other parameters keeps its member. "+
			"Rows that nothing can be sent to are counted in rejected_by_code, the first 100 are listed in rejected, and the others are kept. Where there are such, replace removes nobody, unless remove_with_rejected is true. All of it is done at once, or nothing.",
		append(uploadErrors, http.StatusNotFound)...)
	add.Parameters = []*huma.Param{id, {Name: "mode", In: "query", Description: "add, unless it is replace.", Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"add", "replace"}}},
		{Name: "remove_with_rejected", In: "query", Description: "true: in the mode replace, members leave the list even though rows were rejected, which may be theirs.", Schema: &huma.Schema{Type: huma.TypeBoolean}}}
	add.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"application/json": {Schema: &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{membersField: members}, Required: []string{membersField}, AdditionalProperties: false}},
		"text/csv":         {Schema: &huma.Schema{Type: huma.TypeString}},
	}}
	add.Responses = map[string]*huma.Response{"200": answer(reflect.TypeFor[MembersReport](), "Imported.")}

	export := operation("export-members", http.MethodGet, "/lists/{id}/members.csv", "Lists", ScopeRead, "Export the members",
		"A file as the import reads it: `to`, a column for each parameter, timezone and locale. Numbers are masked unless the key has the scope pii. Cells that a spreadsheet would take for a formula begin with an apostrophe, which the import takes away again.", http.StatusNotFound)
	export.Parameters = []*huma.Param{id}
	export.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{"text/csv": {Schema: &huma.Schema{Type: huma.TypeString}}}}}

	for _, op := range []*huma.Operation{&create, &add, &export} {
		addProblems(to, op)
		to.OpenAPI().AddOperation(op)
	}
}
