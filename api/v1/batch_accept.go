package v1

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// batchRequest is a bulk request without its recipients: members of the JSON object, or parameters of
// the query where the body is a file.
type batchRequest struct {
	Channel         string  `json:"channel" enum:"SMS,CALL" example:"SMS"`
	Body            *string `json:"body,omitempty" doc:"What every recipient reads or hears. Either body or template_id."`
	TemplateID      *int64  `json:"template_id,omitempty" doc:"A template of the same channel; its current version is used."`
	ListID          *int64  `json:"list_id,omitempty" doc:"A list, whose members are the recipients; their parameters that the template does not have are left out."`
	Name            *string `json:"name,omitempty" maxLength:"100" doc:"Your own name for the batch."`
	SendAt          *string `json:"send_at,omitempty" format:"date-time" example:"2026-04-01T10:00:00+09:00" doc:"Nothing is sent before: RFC 3339 with an offset, up to 35 days ahead."`
	AllowDuplicates *bool   `json:"allow_duplicates,omitempty" doc:"true: the same number with the same parameters twice gets two. Otherwise the second one is SKIPPED."`
	DryRun          *bool   `json:"dry_run,omitempty" doc:"true: nothing is accepted; the answer says what would be."`
}

const recipientsField = "recipients"

// BatchPreview is what a batch would be.
type BatchPreview struct {
	DryRun            bool             `json:"dry_run"`
	Total             int              `json:"total" doc:"Notifications; rejected rows are left out."`
	Skipped           int              `json:"skipped" doc:"Of those, duplicates, which are not sent."`
	Segments          int              `json:"segments" doc:"SMS: what Twilio charges for, all in all."`
	EstimatedSeconds  *int64           `json:"estimated_seconds" doc:"How long sending takes at the present pace, behind what waits already; null where there is no pace."`
	RejectedCount     int              `json:"rejected_count"`
	Rejected          []store.Rejected `json:"rejected" nullable:"false" doc:"The first 100 of them."`
	IgnoredColumns    []string         `json:"ignored_columns,omitempty" nullable:"false"`
	WaitingBeforehand int64            `json:"waiting_beforehand" doc:"What waits to be sent by the same sender."`
}

// batchDraft is a request that was read and is right, as far as it can be without its recipients.
type batchDraft struct {
	store.NewNotification // what each of them has
	name                  *string
	template              *notify.Template
	kinds                 map[string]notify.ParamKind // of its placeholders
	ignored               []string
	columns               []string
	isCSV                 bool
	listID                *int64 // has the recipients, in the place of body
	allowTwins, dryRun    bool
	body                  *spool
}

// acceptBatch answers POST /batches. It is no operation of huma's, which would hold the body in memory.
func (a *API) acceptBatch(c *gin.Context) error {
	ctx := c.Request.Context()
	key := IdempotencyKey{Key: c.GetHeader(idempotencyHeader)}
	if err := checkKeys(c.Request.Header.Values(idempotencyHeader)); err != nil {
		return err
	}
	isCSV, body, err := a.upload(c)
	if err != nil {
		return err
	}
	defer a.uploaded(body)
	draft, err := a.readBatch(ctx, c.Request.URL.Query(), isCSV, body)
	once := key.onceUpload(ctx, c.Request.URL.Query(), body)
	if err != nil {
		return a.batchAnsweredBefore(c, once, err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var seen *twins
	if !draft.allowTwins {
		if seen, err = newTwins(); err != nil {
			return a.uploadFailed(ctx, err)
		}
		defer seen.Close()
	}
	rows, err := a.startRows(ctx, draft, seen)
	if err != nil {
		return a.batchAnsweredBefore(c, once, err)
	}
	if draft.dryRun {
		return a.previewBatch(c, draft, rows)
	}
	return a.writeBatch(c, draft, rows, once)
}

// readBatch reads all but the recipients, and says everything that is wrong with it.
func (a *API) readBatch(ctx context.Context, query url.Values, isCSV bool, body *spool) (*batchDraft, error) {
	members, err := queryMembers(query, isCSV)
	if err != nil {
		return nil, err
	}
	if !isCSV {
		inBody, hasRecipients, err := jsonMembers(body, recipientsField)
		if err != nil {
			return nil, err
		}
		switch _, hasList := inBody["list_id"]; {
		case hasList && hasRecipients:
			return nil, problem.Only("/list_id", problem.RecipientsOrList, "give either recipients or list_id, and not both")
		case !hasList && !hasRecipients:
			return nil, problem.Only("/recipients", problem.Required, "the field recipients is missing: add it, or list_id")
		}
		for name, value := range members { // dry_run
			inBody[name] = value
		}
		members = inBody
	}
	var req batchRequest
	wrong := readMembers(members, &req)
	draft := &batchDraft{isCSV: isCSV, body: body, listID: req.ListID, name: req.Name,
		allowTwins: req.AllowDuplicates != nil && *req.AllowDuplicates, dryRun: req.DryRun != nil && *req.DryRun}
	draft.Channel = checkChannel(&wrong, req.Channel)
	draft.SendAt = checkSendAt(&wrong, req.SendAt, time.Now())
	checkBatchName(&wrong, req.Name)
	if err := a.checkBatchContent(ctx, &wrong, req, draft); err != nil {
		return nil, err
	}
	if err := a.checkBatchList(ctx, &wrong, isCSV, req.ListID); err != nil {
		return nil, err
	}
	if err := a.checkSender(ctx, &wrong, &draft.NewNotification); err != nil {
		return nil, err
	}
	draft.RequireHuman = draft.Channel == notify.Call && a.Settings.CallRequireHuman
	return draft, wrong.Problem()
}

// queryMembers makes members of the query's parameters.
func queryMembers(query url.Values, isCSV bool) (map[string]jsontext.Value, error) {
	members := map[string]jsontext.Value{}
	t := reflect.TypeFor[batchRequest]()
	for name, values := range query {
		field, ok := t.FieldByNameFunc(func(of string) bool {
			f, _ := t.FieldByName(of)
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			return tag == name
		})
		switch {
		case !ok || !isCSV && name != "dry_run":
			return nil, problem.New(problem.ParameterInvalid, "the query has a parameter that this address does not know: remove it")
		case len(values) != 1:
			return nil, problem.Newf(problem.ParameterInvalid, "the query has the parameter %s more than once: keep one", name)
		case !utf8.ValidString(values[0]):
			return nil, notUTF8(name)
		}
		kind := field.Type.Kind()
		if kind == reflect.Pointer {
			kind = field.Type.Elem().Kind()
		}
		raw := jsontext.Value(values[0])
		if kind == reflect.String || !raw.IsValid() || raw.Kind() == 'n' { // null would count as not given
			raw, _ = jsontext.AppendQuote(nil, values[0]) // it is UTF-8
		}
		members[name] = raw
	}
	return members, nil
}

func notUTF8(parameter string) error {
	return problem.Newf(problem.ParameterNotUTF8, "the parameter %s is not UTF-8: encode it so, and write each byte as %%XX", parameter)
}

// jsonMembers reads the members of the object but for those of one field, which has many: it must be an
// array, and its syntax is checked.
func jsonMembers(body *spool, many string) (members map[string]jsontext.Value, hasMany bool, err error) {
	decoder := jsontext.NewDecoder(body)
	malformed := func(err error) error { return unreadable(err, decoder.InputOffset()) }
	switch kind := decoder.PeekKind(); kind {
	case '{':
	case 0:
		_, err := decoder.ReadToken()
		return nil, false, malformed(err)
	default:
		return nil, false, problem.Only("", problem.WrongType, "expected an object")
	}
	if _, err := decoder.ReadToken(); err != nil {
		return nil, false, malformed(err)
	}
	members = map[string]jsontext.Value{}
	for decoder.PeekKind() != '}' {
		token, err := decoder.ReadToken()
		if err != nil {
			return nil, false, malformed(err)
		}
		name := token.String()
		if name == many && decoder.PeekKind() == '[' {
			hasMany = true
			if err := decoder.SkipValue(); err != nil {
				return nil, false, malformed(err)
			}
			continue
		}
		value, err := decoder.ReadValue()
		if err != nil {
			return nil, false, malformed(err)
		}
		if name == many {
			return nil, false, problem.Only(pointerTo("", many), problem.WrongType, "expected an array")
		}
		members[name] = value.Clone()
	}
	if _, err := decoder.ReadToken(); err != nil {
		return nil, false, malformed(err)
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, false, problem.Newf(problem.TrailingData, "something follows the JSON value at byte %d: send one JSON object and nothing after it", decoder.InputOffset())
	}
	return members, hasMany, body.rewind()
}

func checkBatchName(wrong *problem.Details, name *string) {
	if name == nil || wrong.At("/name") {
		return
	}
	switch length := utf8.RuneCountInString(*name); {
	case length > longestTemplateName:
		wrong.Add("/name", problem.NameTooLong, fmt.Sprintf("the name has %d characters, and %d are allowed: shorten it", length, longestTemplateName))
	case strings.ContainsFunc(*name, unicode.IsControl):
		wrong.Add("/name", problem.NameControl, "the name has control characters: remove them")
	}
}

// checkBatchContent takes the body, or the template's current version.
func (a *API) checkBatchContent(ctx context.Context, wrong *problem.Details, req batchRequest, draft *batchDraft) error {
	hasBody, hasTemplate := req.Body != nil || wrong.At("/body"), req.TemplateID != nil || wrong.At("/template_id")
	switch {
	case hasBody && hasTemplate:
		wrong.Add("/body", problem.BodyOrTemplate, "both body and template_id are given: keep one of them")
	case !hasBody && !hasTemplate:
		wrong.Add("/body", problem.BodyOrTemplate, "there is nothing to send: give body or template_id")
	case req.Body != nil:
		draft.Message = req.Body
		checkText(wrong, "/body", draft.Channel, *req.Body)
	case req.TemplateID != nil && !wrong.At("/template_id"):
		return a.checkBatchTemplate(ctx, wrong, *req.TemplateID, draft)
	}
	return nil
}

func (a *API) checkBatchList(ctx context.Context, wrong *problem.Details, isCSV bool, id *int64) error {
	if id == nil || wrong.At("/list_id") {
		return nil
	}
	if isCSV {
		wrong.Add("/list_id", problem.RecipientsOrList, "the file has the recipients: leave list_id out, or send it as JSON")
		return nil
	}
	_, err := a.Store.RecipientList(ctx, *id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		wrong.Add("/list_id", problem.ListNotFound, "there is no list with this id: see GET /api/v1/lists")
	case err != nil:
		return a.fail(ctx, err)
	}
	return nil
}

func (a *API) checkBatchTemplate(ctx context.Context, wrong *problem.Details, id int64, draft *batchDraft) error {
	template, err := a.Store.Template(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		wrong.Add("/template_id", problem.TemplateNotFound, "there is no template with this id: see GET /api/v1/templates")
		return nil
	case err != nil:
		return a.fail(ctx, err)
	case draft.Channel != "" && template.Channel != draft.Channel:
		wrong.Add("/template_id", problem.TemplateChannelMismatch, fmt.Sprintf("the template is for the channel %s: use one for %s", template.Channel, draft.Channel))
	}
	checkNotArchived(wrong, template)
	draft.TemplateID, draft.TemplateVersion = &template.ID, &template.Version
	parsed, err := notify.ParseTemplate(template.Body)
	if err != nil {
		return a.fail(ctx, fmt.Errorf("read template %d: %w", template.ID, err))
	}
	draft.template, draft.kinds = &parsed, template.Kinds
	return nil
}

// startRows begins to read the recipients. A file must have a column for each parameter.
func (a *API) startRows(ctx context.Context, draft *batchDraft, seen *twins) (*batchRows, error) {
	source, err := a.recipientsOf(ctx, draft)
	if err != nil {
		return nil, a.uploadFailed(ctx, err)
	}
	check := &rowCheck{
		channel: draft.Channel, region: a.Settings.DefaultRegion, countries: a.Settings.AllowedCountries,
		hashKey: []byte(a.Settings.PhoneHashKey), template: draft.template, kinds: draft.kinds, columns: draft.columns, count: draft.dryRun && draft.Channel == notify.SMS,
	}
	if check.count && draft.Message != nil {
		check.segments = notify.Segments(*draft.Message).Segments
	}
	return readRows(ctx, source, check, seen), nil
}

func (a *API) recipientsOf(ctx context.Context, d *batchDraft) (recipientSource, error) {
	switch {
	case d.listID != nil:
		return a.newListSource(ctx, *d.listID, d.template), nil
	case d.isCSV:
		return d.readFile()
	}
	return newRecipientSource(d.body)
}

// readFile must find a column for each parameter.
func (d *batchDraft) readFile() (recipientSource, error) {
	reader, err := notify.NewRecipientReader(d.body)
	var wrong *notify.CSVError
	switch {
	case errors.As(err, &wrong):
		return nil, csvProblem(wrong)
	case err != nil:
		return nil, err
	}
	d.columns = []string{}
	if d.template != nil {
		d.columns = append(d.columns, d.template.Params()...)
	}
	var missing []string
	for _, name := range d.columns {
		if !slices.Contains(reader.Columns(), name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, problem.Newf(problem.TemplateColumnMissing, "the file has no column for what the template needs (%s): add it, with that name in the first row", strings.Join(missing, ", "))
	}
	for _, name := range reader.Columns() {
		if !slices.Contains(d.columns, name) {
			d.ignored = append(d.ignored, notify.Excerpt(name))
		}
	}
	return csvSource{reader}, nil
}

func (a *API) writeBatch(c *gin.Context, draft *batchDraft, rows *batchRows, once *store.Once) error {
	ctx := c.Request.Context()
	id, err := uuid.NewV7()
	if err != nil {
		return a.fail(ctx, fmt.Errorf("make an id: %w", err))
	}
	answer := func(b store.Batch) (store.Answer, error) {
		text, err := json.Marshal(a.showBatch(b))
		return store.Answer{Status: http.StatusAccepted, Location: batchesPath + "/" + b.ID.String(), Body: text}, err
	}
	accepted, replayed, err := a.Store.AcceptBatch(ctx, store.NewBatch{
		ID: id, Name: draft.name, Channel: draft.Channel, Message: draft.Message,
		TemplateID: draft.TemplateID, TemplateVersion: draft.TemplateVersion, SenderID: draft.SenderID,
		RequireHuman: draft.RequireHuman, ShardSize: a.Settings.BatchShard(draft.Channel), SendAt: draft.SendAt, IgnoredColumns: draft.ignored,
		Recipients: rows.next, Rejected: func() (int, []store.Rejected) { return rows.rejected, rows.first },
		Once: once, Answer: answer,
	})
	var refusal *problem.Problem
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.Is(err, store.ErrNoRecipients):
		return noRecipients(rows)
	case err != nil:
		return a.keyProblem(ctx, err)
	case replayed != nil:
		replayUpload(c, *replayed)
		return nil
	}
	batchesTotal.WithLabelValues(string(draft.Channel)).Inc()
	acceptedTotal.WithLabelValues(string(draft.Channel)).Add(float64(accepted.Total))
	a.startBatch(accepted)
	first, err := answer(accepted)
	if err != nil {
		return a.fail(ctx, err)
	}
	writeAnswer(c, first)
	return nil
}

// noRecipients says what is wrong with the rows, as far as there are any.
func noRecipients(rows *batchRows) error {
	return nobody(problem.BatchEmpty, "the batch has no recipients: give at least one", recipientsField, rows.rejected, rows.first)
}

// nobody says why no row of a request is right. Without rows it says so.
func nobody(code problem.Code, none, field string, rejected int, first []store.Rejected) error {
	if rejected == 0 {
		return problem.New(code, none)
	}
	p := problem.Newf(code, "nothing can be sent to any of the %d rows: nothing was accepted; see errors for the first of them", rejected)
	for _, r := range first {
		p.Errors = append(p.Errors, problem.Detail{Pointer: fmt.Sprintf("/%s/%d", field, r.Row-1), Code: problem.Code(r.Code), Detail: r.Detail})
	}
	return p
}

// startBatch has the workflow of a batch that is due started beside the request. What is not started
// here is started by the worker.
func (a *API) startBatch(b store.Batch) {
	if b.Waits {
		return
	}
	a.Starts.Submit(func(ctx context.Context) {
		if err := a.Starter.StartBatch(ctx, b.WorkflowID, b.ID, b.Channel); err != nil {
			a.Logger.WarnContext(ctx, "workflow not started: left to the worker", "batch_id", b.ID, "error", err)
			return
		}
		if err := a.Store.MarkBatchStarted(ctx, b.ID, b.WorkflowID); err != nil {
			a.Logger.WarnContext(ctx, "start not marked: the worker will start it again, which changes nothing", "batch_id", b.ID, "error", err)
		}
	})
}

// previewBatch reads all rows and writes none.
func (a *API) previewBatch(c *gin.Context, draft *batchDraft, rows *batchRows) error {
	ctx := c.Request.Context()
	for more := true; more; {
		var err error
		if _, more, err = rows.next(); err != nil {
			return a.uploadFailed(ctx, err)
		}
	}
	if rows.total == 0 {
		return noRecipients(rows)
	}
	preview := BatchPreview{DryRun: true, Total: rows.total, Skipped: rows.twins, Segments: rows.segments,
		RejectedCount: rows.rejected, Rejected: append([]store.Rejected{}, rows.first...), IgnoredColumns: draft.ignored}
	senders, err := a.Store.Senders(ctx)
	if err != nil {
		return a.fail(ctx, err)
	}
	for _, s := range senders {
		if s.ID == draft.SenderID {
			preview.WaitingBeforehand = s.Waiting
		}
	}
	if interval := a.Settings.SendInterval(draft.Channel); interval > 0 {
		seconds := int64((time.Duration(preview.WaitingBeforehand+int64(rows.total-rows.twins)) * interval).Seconds())
		preview.EstimatedSeconds = &seconds
	}
	text, err := json.Marshal(preview)
	if err != nil {
		return a.fail(ctx, err)
	}
	writeAnswer(c, store.Answer{Status: http.StatusOK, Body: text})
	return nil
}

// onceUpload names the request in the ledger, by what was uploaded.
func (k IdempotencyKey) onceUpload(ctx context.Context, query url.Values, body *spool) *store.Once {
	if k.Key == "" || query.Get("dry_run") == "true" {
		return nil
	}
	all := sha256.New()
	fmt.Fprintf(all, "POST %s?%s\n", batchesPath, query.Encode())
	all.Write(body.hash.Sum(nil))
	once := &store.Once{Owner: callerOf(ctx).keyID, Key: k.Key}
	copy(once.Request[:], all.Sum(nil))
	return once
}

// batchAnsweredBefore repeats the first answer to a request that would be refused now.
func (a *API) batchAnsweredBefore(c *gin.Context, once *store.Once, refusal error) error {
	first, err := a.answeredBefore(c.Request.Context(), once, refusal)
	if err != nil {
		return err
	}
	replayUpload(c, store.Answer{Status: http.StatusAccepted, Location: first.Location, Body: first.Body.text})
	return nil
}

func replayUpload(c *gin.Context, first store.Answer) {
	c.Header("Idempotent-Replayed", "true")
	writeAnswer(c, first)
}

func writeAnswer(c *gin.Context, answer store.Answer) {
	if answer.Location != "" {
		c.Header("Location", answer.Location)
	}
	c.Data(answer.Status, "application/json", append(bytes.TrimSuffix(answer.Body, []byte("\n")), '\n'))
}

// describeAcceptBatch adds the operation to the description.
func describeAcceptBatch(to huma.API) {
	op := operation("send-batch", http.MethodPost, "/batches", "Batches", ScopeSend, "Send to many",
		"At most 1,000,000 recipients, or all members of a list (list_id). As JSON, or as a CSV file (Content-Type: text/csv) with the other fields in the query: its first row names the columns, `to` and one for each parameter of the template; "+
			"UTF-8, Shift_JIS and UTF-16 are understood. Rows that nothing can be sent to are listed in rejected, and the others go on. "+
			"The answer comes when all of it is in the ledger; a file that is wrong as a whole, or an upload that is cut off, leaves nothing behind. "+
			"With dry_run nothing is accepted, and the answer (200) says what would be.",
		http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity)
	schemas := to.OpenAPI().Components.Schemas
	request := schemas.Schema(reflect.TypeFor[batchRequest](), true, "batchRequest")
	if of := schemas.SchemaFromRef(request.Ref); of != nil {
		of.Properties[recipientsField] = &huma.Schema{Type: huma.TypeArray, Items: schemas.Schema(reflect.TypeFor[recipientRequest](), true, ""), Description: "Who gets it, unless list_id says it. Not in the query of a file."}
	}
	for i := range reflect.TypeFor[batchRequest]().NumField() {
		f := reflect.TypeFor[batchRequest]().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		op.Parameters = append(op.Parameters, &huma.Param{Name: name, In: "query", Description: "For a file. " + f.Tag.Get("doc"), Schema: schemas.Schema(f.Type, true, "")})
	}
	op.Parameters = append(op.Parameters, &huma.Param{Name: idempotencyHeader, In: "header", Description: "As for one notification.", Schema: &huma.Schema{Type: huma.TypeString}})
	op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"application/json": {Schema: request},
		"text/csv":         {Schema: &huma.Schema{Type: huma.TypeString}},
	}}
	op.Responses = map[string]*huma.Response{
		"200": {Description: "dry_run: what the batch would be.", Content: map[string]*huma.MediaType{"application/json": {Schema: schemas.Schema(reflect.TypeFor[BatchPreview](), true, "")}}},
		"202": {Description: "Accepted.", Content: map[string]*huma.MediaType{"application/json": {Schema: schemas.Schema(reflect.TypeFor[Batch](), true, "")}}},
	}
	addProblems(to, &op)
	to.OpenAPI().AddOperation(&op)
}
