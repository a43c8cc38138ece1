package v1

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/outbox"
	"github.com/todoku/todoku/store"
)

// BatchPreview is what a batch would be.
type BatchPreview struct {
	DryRun            bool             `json:"dry_run"`
	Total             int              `json:"total" doc:"Notifications; rejected rows are left out."`
	Skipped           int              `json:"skipped" doc:"Of those, duplicates, which are not sent."`
	Segments          int              `json:"segments" doc:"SMS: what Twilio charges for, all in all."`
	EstimatedSeconds  *int64           `json:"estimated_seconds" doc:"How long sending takes at the present pace, behind what waits already; null where there is no pace, or the sender is stopped."`
	RejectedCount     int              `json:"rejected_count"`
	Rejected          []store.Rejected `json:"rejected" nullable:"false" doc:"The first 100 of them."`
	RejectedByCode    map[string]int   `json:"rejected_by_code" nullable:"false" doc:"How many rows were rejected for each code."`
	IgnoredColumns    []string         `json:"ignored_columns,omitempty" nullable:"false"`
	Warnings          []Warning        `json:"warnings,omitempty" nullable:"false" doc:"What may be a mistake, and is accepted."`
	Encoding          string           `json:"encoding,omitempty" example:"utf-8" doc:"Of a file: what it is read in, by the name of the WHATWG encoding standard, or us-ascii."`
	Examples          []BatchExample   `json:"examples,omitempty" nullable:"false" doc:"The first 3 texts, as they would be sent. Those of a list need the scope read."`
	WaitingBeforehand int64            `json:"waiting_beforehand" doc:"What waits to be sent by the same sender."`
}

// BatchExample is a text of a batch, as it would be sent.
type BatchExample struct {
	Row      int    `json:"row"`
	Text     string `json:"text"`
	Language string `json:"language,omitempty" example:"ja-JP" doc:"CALL: the language that the text is spoken in."`
}

const shownExamples = 3

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
		seen = newTwins()
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

// startRows begins to read the recipients. A file must have a column for each parameter.
func (a *API) startRows(ctx context.Context, draft *batchDraft, seen *twins) (*batchRows, error) {
	source, err := a.recipientsOf(ctx, draft)
	if err != nil {
		return nil, a.uploadFailed(ctx, err)
	}
	check := &rowCheck{
		channel: draft.Channel, region: a.Settings.DefaultRegion, countries: a.Settings.AllowedCountries, numberKinds: a.Settings.AllowedNumberKinds,
		hashKey: []byte(a.Settings.PhoneHashKey), template: draft.template, kinds: draft.kinds, columns: draft.columns, count: draft.dryRun && draft.Channel == notify.SMS,
	}
	if check.count && draft.Message != nil {
		check.segments = notify.Segments(*draft.Message).Segments
	}
	check.texts = draft.dryRun && (draft.listID == nil || slices.Contains(callerOf(ctx).scopes, ScopeRead))
	if check.texts && draft.Message != nil {
		check.text = *draft.Message
	}
	return readRows(ctx, source, check, seen), nil
}

func (a *API) recipientsOf(ctx context.Context, d *batchDraft) (recipientSource, error) {
	switch {
	case d.listID != nil:
		list := a.newListSource(ctx, *d.listID, d.template)
		d.unusedParams = func() bool { return list.unused }
		return list, nil
	case d.isCSV:
		return d.readFile()
	}
	return newRecipientSource(d.body)
}

// readFile must find a column for each parameter.
func (d *batchDraft) readFile() (recipientSource, error) {
	d.columns = []string{}
	if d.template != nil {
		d.columns = append(d.columns, d.template.Params()...)
	}
	file, err := newMemberFile(d.body, d.columns)
	if err != nil {
		return nil, err
	}
	reader := file.RecipientReader
	d.encoding = reader.Encoding
	var missing []string
	for _, name := range d.columns {
		if !slices.Contains(reader.Columns(), name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, problem.Newf(problem.TemplateColumnMissing, "the file has no column for what the template needs (%s): add it, with that name in the first row", strings.Join(missing, ", "))
	}
	for _, name := range file.params {
		if !slices.Contains(d.columns, name) {
			d.ignored = append(d.ignored, notify.Excerpt(name))
		}
	}
	d.warnings = append(d.warnings, ColumnWarnings(d.text(), d.columns, file.params)...)
	return file, nil
}

func (a *API) writeBatch(c *gin.Context, draft *batchDraft, rows *batchRows, once *store.Once) error {
	ctx := c.Request.Context()
	id, err := uuid.NewV7()
	if err != nil {
		return a.fail(ctx, fmt.Errorf("make an id: %w", err))
	}
	answer := func(b store.Batch) (store.Answer, error) {
		shown := a.showBatch(b)
		shown.Warnings = draft.allWarnings()
		text, err := json.Marshal(shown)
		return store.Answer{Status: http.StatusAccepted, Location: batchesPath + "/" + b.ID.String(), Body: text}, err
	}
	accepted, replayed, err := a.Store.AcceptBatch(ctx, store.NewBatch{
		ID: id, Name: draft.name, Channel: draft.Channel, Message: draft.Message,
		TemplateID: draft.TemplateID, TemplateVersion: draft.TemplateVersion, SenderID: draft.SenderID,
		RequireHuman: draft.RequireHuman, ShardSize: a.Settings.BatchShard(draft.Channel), SendAt: draft.SendAt, IgnoredColumns: draft.ignored,
		Recipients: rows.next, Rejected: func() (int, []store.Rejected) { return rows.rejected, rows.first },
		RejectedByCode: func() map[string]int { return rows.byCode },
		Once:           once, Answer: answer,
	})
	var refusal *problem.Problem
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.Is(err, store.ErrNoRecipients):
		return noRecipients(rows)
	case errors.Is(err, store.ErrArchived):
		return problem.Only("/template_id", problem.TemplateArchived, archivedTemplate)
	case errors.Is(err, store.ErrReferenceGone):
		return problem.Only("/template_id", problem.TemplateNotFound, "the template was deleted at this moment: choose another one")
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
		if err := outbox.StartBatch(ctx, a.Store, a.Starter, b.Workflow()); err != nil {
			a.Logger.WarnContext(ctx, "workflow not started: left to the worker", "batch_id", b.ID, "error", err)
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
		RejectedCount: rows.rejected, Rejected: append([]store.Rejected{}, rows.first...), RejectedByCode: rows.byCode, IgnoredColumns: draft.ignored,
		Warnings: draft.allWarnings(), Examples: mapped(rows.examples, draft.example)}
	if draft.encoding != nil {
		preview.Encoding = draft.encoding()
	}
	senders, err := a.Store.Senders(ctx)
	if err != nil {
		return a.fail(ctx, err)
	}
	stopped := false
	for _, s := range senders {
		if s.ID == draft.SenderID {
			preview.WaitingBeforehand, stopped = s.Waiting, s.StoppedAt != nil
		}
	}
	if interval := a.Settings.SendInterval(draft.Channel); interval > 0 && !stopped {
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
	if body.charset != "" {
		fmt.Fprintf(all, "charset=%s\n", strings.ToLower(body.charset))
	}
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

// encodingsOfFiles is for the description of whatever takes a file.
const encodingsOfFiles = "UTF-8, UTF-16 with a byte order mark, and Shift_JIS are told apart; any other encoding is named in the Content-Type, " +
	"as in text/csv; charset=windows-1252. A row that may be another text in another encoding is rejected (row_encoding); a row of half-width " +
	"katakana only, which another encoding writes alike, refuses the file until charset=shift_jis is named (csv_unknown_encoding). "

// describeAcceptBatch adds the operation to the description.
func describeAcceptBatch(to huma.API) {
	op := operation("send-batch", http.MethodPost, "/batches", "Batches", ScopeSend, "Send to many",
		"At most 1,000,000 recipients, or all members of a list (list_id). As JSON, or as a CSV file (Content-Type: text/csv) with the other fields in the query: its first row names the columns, `to` and one for each parameter of the template; "+
			"timezone and locale are understood as in lists. "+encodingsOfFiles+
			"Missing last cells are empty; a row with more cells than the first one is rejected. "+
			"Rows that nothing can be sent to, or that leave a parameter of the template blank (param_missing), are counted in rejected_by_code, the first 100 are listed in rejected, and the others go on. "+
			"What may be a mistake, such as a text that uses no column of the file, is in warnings. "+
			"The answer comes when all of it is in the ledger; a file that is wrong as a whole, or an upload that is cut off, leaves nothing behind. "+
			"With dry_run nothing is accepted, and the answer (200) says what would be, with the encoding of the file and the first 3 texts.",
		http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
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
	op.Parameters = append(op.Parameters, &huma.Param{Name: idempotencyHeader, In: "header", Description: "As for one notification. The same file in another charset is another request.", Schema: &huma.Schema{Type: huma.TypeString}})
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
