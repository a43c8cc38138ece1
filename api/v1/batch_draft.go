package v1

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

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

// batchDraft is a request that was read and is right, as far as it can be without its recipients.
type batchDraft struct {
	store.NewNotification // what each of them has
	name                  *string
	template              *notify.Template
	kinds                 map[string]notify.ParamKind // of its placeholders
	ignored               []string
	warnings              []Warning
	unusedParams          func() bool   // of a list that was read
	encoding              func() string // of a file, as far as it was read
	columns               []string
	isCSV                 bool
	listID                *int64 // has the recipients, in the place of body
	allowTwins, dryRun    bool
	body                  *spool
}

// text is what is sent, with its placeholders.
func (d *batchDraft) text() string {
	if d.template != nil {
		return d.template.String()
	}
	return valueOf(d.Message)
}

// allWarnings are to be asked for after the last recipient.
func (d *batchDraft) allWarnings() []Warning {
	if d.unusedParams != nil && d.unusedParams() {
		return append(d.warnings, unusedParams())
	}
	return d.warnings
}

// example shows a row that would be sent.
func (d *batchDraft) example(r batchRow) BatchExample {
	shown := BatchExample{Row: r.recipient.Row, Text: r.text}
	if d.Channel == notify.Call {
		shown.Language, _ = notify.SpeechLanguage(r.text)
	}
	return shown
}

// readBatch reads all but the recipients, and says everything that is wrong with it.
func (a *API) readBatch(ctx context.Context, query url.Values, isCSV bool, body *spool) (*batchDraft, error) {
	members, err := queryMembers(query, isCSV)
	if err != nil {
		return nil, err
	}
	hasRecipients := isCSV
	if !isCSV {
		var inBody map[string]jsontext.Value
		inBody, hasRecipients, err = jsonMembers(body, recipientsField)
		if err != nil {
			return nil, err
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
	draft.SendAt = checkSendAt(&wrong, req.SendAt, a.Store.Now(ctx))
	checkBatchName(&wrong, req.Name)
	if err := a.checkBatchContent(ctx, &wrong, req, draft); err != nil {
		return nil, err
	}
	if err := a.checkBatchList(ctx, &wrong, draft, hasRecipients); err != nil {
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
			return nil, unknownParameter()
		case len(values) != 1:
			return nil, repeatedParameter(name)
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

// checkBatchContent takes the body, or the template's current version.
func (a *API) checkBatchContent(ctx context.Context, wrong *problem.Details, req batchRequest, draft *batchDraft) error {
	checkBody(wrong, req.Body, req.TemplateID, &draft.NewNotification)
	if req.Body != nil || wrong.At("/body") || req.TemplateID == nil || wrong.At("/template_id") {
		return nil
	}
	return a.checkBatchTemplate(ctx, wrong, *req.TemplateID, draft)
}

// checkBatchList takes the list, where the request has no recipients of its own.
func (a *API) checkBatchList(ctx context.Context, wrong *problem.Details, draft *batchDraft, hasRecipients bool) error {
	switch hasList := draft.listID != nil || wrong.At("/list_id"); {
	case hasList && draft.isCSV:
		wrong.Add("/list_id", problem.RecipientsOrList, "the file has the recipients: leave list_id out, or send it as JSON")
	case hasList && hasRecipients:
		wrong.Add("/list_id", problem.RecipientsOrList, "give either recipients or list_id, and not both")
	case !hasList && !hasRecipients:
		wrong.Add(pointerTo("", recipientsField), problem.Required, "the field recipients is missing: add it, or list_id")
	case draft.listID != nil:
		return a.findBatchList(ctx, wrong, *draft.listID)
	}
	return nil
}

func (a *API) findBatchList(ctx context.Context, wrong *problem.Details, id int64) error {
	_, err := a.Store.RecipientList(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		wrong.Add("/list_id", problem.ListNotFound, "there is no list with this id: see GET /api/v1/lists")
	case err != nil:
		return a.fail(ctx, err)
	}
	return nil
}

func (a *API) checkBatchTemplate(ctx context.Context, wrong *problem.Details, id int64, draft *batchDraft) error {
	template, err := a.findTemplate(ctx, wrong, id, draft.Channel)
	if template == nil {
		return err
	}
	draft.TemplateID, draft.TemplateVersion = &template.ID, &template.Version
	parsed, err := notify.ParseTemplate(template.Body)
	if err != nil {
		return a.fail(ctx, fmt.Errorf("read template %d: %w", template.ID, err))
	}
	draft.template, draft.kinds = &parsed, template.Kinds
	return nil
}
