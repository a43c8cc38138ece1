package v1

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// recipientSource gives the rows of a request, in order. After a *rowError the next row can be read;
// io.EOF follows the last one.
type recipientSource interface {
	Read() (notify.Recipient, error)
}

// rowError says why nothing can be sent to one row.
type rowError struct {
	row  int
	code string
	text string
}

func (e *rowError) Error() string { return e.text }

// csvSource reads a file.
type csvSource struct{ *notify.RecipientReader }

// Read tells errors of one row from those of the file.
func (s csvSource) Read() (notify.Recipient, error) {
	r, err := s.RecipientReader.Read()
	var wrong *notify.CSVError
	switch {
	case errors.As(err, &wrong) && wrong.OfRow():
		return r, &rowError{wrong.Row, wrong.Code, wrong.Detail}
	case errors.As(err, &wrong):
		return r, csvProblem(wrong)
	}
	return r, err
}

func csvProblem(e *notify.CSVError) error {
	if e.Row > 0 {
		return problem.Newf(problem.Code(e.Code), "row %d: %s", e.Row, e.Detail)
	}
	return problem.New(problem.Code(e.Code), e.Detail)
}

// jsonSource reads the array of a body whose syntax was checked. R is what each of its objects holds.
type jsonSource[R any] struct {
	decoder     *jsontext.Decoder
	recipient   func(R) notify.Recipient
	description string // of such an object
	row         int
}

type recipientRequest struct {
	To     string            `json:"to" example:"090-1234-5678" doc:"A phone number as people write it."`
	Params map[string]string `json:"params,omitempty" doc:"A value for each placeholder of the template, and no others. A blank one counts as missing."`
}

// newRecipientSource reads the recipients of a batch.
func newRecipientSource(body io.Reader) (recipientSource, error) {
	s := &jsonSource[recipientRequest]{description: "to and params", recipient: func(r recipientRequest) notify.Recipient {
		return notify.Recipient{To: r.To, Params: r.Params}
	}}
	return s, s.open(body, recipientsField)
}

// open goes to the array, which is the field of the object.
func (s *jsonSource[R]) open(body io.Reader, field string) error {
	s.decoder = jsontext.NewDecoder(body)
	if _, err := s.decoder.ReadToken(); err != nil { // {
		return err
	}
	for {
		name, err := s.decoder.ReadToken()
		if err != nil {
			return err
		}
		if name.String() == field {
			_, err := s.decoder.ReadToken() // [
			return err
		}
		if err := s.decoder.SkipValue(); err != nil {
			return err
		}
	}
}

func (s *jsonSource[R]) Read() (notify.Recipient, error) {
	if s.decoder.PeekKind() == ']' {
		return notify.Recipient{}, io.EOF
	}
	s.row++
	value, err := s.decoder.ReadValue()
	if err != nil {
		return notify.Recipient{}, err
	}
	members, ok := object(value)
	if !ok {
		return notify.Recipient{}, &rowError{s.row, string(problem.WrongType), "expected an object with " + s.description}
	}
	var of R
	if wrong := readMembers(members, &of); len(wrong) > 0 {
		return notify.Recipient{}, &rowError{s.row, string(wrong[0].Code), strings.TrimPrefix(wrong[0].Pointer+": "+wrong[0].Detail, ": ")}
	}
	recipient := s.recipient(of)
	recipient.Row = s.row
	return recipient, nil
}

// rowCheck decides whether a row can be sent to, as the whole batch is sent. It is safe for
// concurrent use.
type rowCheck struct {
	channel     notify.Channel
	region      string
	countries   []string
	numberKinds []notify.PhoneKind // that are allowed though they charge the caller
	hashKey     []byte
	template    *notify.Template // nil: the text is the same for all
	kinds       map[string]notify.ParamKind
	columns     []string // of a file: the parameters that are taken from it; nil: what a row gives must fit
	segments    int      // of the text that is the same for all
	count       bool     // count segments
	texts       bool     // keep the texts
	text        string   // that is the same for all
}

// batchRow is a row that can be sent to.
type batchRow struct {
	recipient store.BatchRecipient
	key       twinKey
	segments  int
	text      string // where texts are kept
}

func (c *rowCheck) check(r notify.Recipient) checkedRow[batchRow] {
	reject := func(code, detail string) checkedRow[batchRow] { return rejectedRow[batchRow](r.Row, code, detail) }
	number, err := notify.ParsePhoneNumber(r.To, c.region)
	if err == nil {
		err = number.Accepts(c.channel, c.countries, c.numberKinds...)
	}
	var invalid *notify.InvalidNumberError
	if errors.As(err, &invalid) {
		return reject(invalid.Code, invalid.Error())
	}
	row := batchRow{
		recipient: store.BatchRecipient{Row: r.Row, To: number, ToHash: number.Hash(c.hashKey)},
		segments:  c.segments,
		text:      c.text,
	}
	params := r.Params
	if c.template == nil {
		if c.columns == nil && len(params) > 0 {
			return reject(string(problem.ParamsWithoutTemplate), "parameters need a template: give template_id, or leave params out")
		}
		row.key = rowKey(number.E164, nil)
		return checkedRow[batchRow]{row: row}
	}
	if c.columns != nil {
		params = make(map[string]string, len(c.columns))
		for _, name := range c.columns {
			params[name] = r.Params[name]
		}
	}
	text, code, detail := c.fill(params)
	if code != "" {
		return reject(code, detail)
	}
	if c.count {
		row.segments = notify.Segments(text).Segments
	}
	if c.texts {
		row.text = text
	}
	if params == nil {
		params = map[string]string{}
	}
	if row.recipient.Params, err = json.Marshal(params); err != nil {
		return checkedRow[batchRow]{fatal: err}
	}
	row.key = rowKey(number.E164, params)
	return checkedRow[batchRow]{row: row}
}

// fill makes the text, or says why there is none.
func (c *rowCheck) fill(params map[string]string) (text, code, detail string) {
	text, err := c.template.Fill(params)
	var misfit *notify.ParamsError
	if errors.As(err, &misfit) {
		if len(misfit.Missing)+len(misfit.Blank) > 0 {
			return "", string(problem.ParamMissing), misfit.Error()
		}
		return "", string(problem.ParamUnknown), misfit.Error()
	}
	if wrong := notify.CheckKinds(c.kinds, params); len(wrong) > 0 {
		return "", notify.CodeParamKind, wrong[0].Error()
	}
	if err = notify.CheckBody(c.channel, text); err == nil && c.channel == notify.Call {
		_, err = carrier.TwiML(text)
	}
	var body *notify.BodyError
	switch {
	case errors.As(err, &body):
		return "", body.Code, body.Error()
	case err != nil:
		return "", string(problem.TwiMLTooLong), err.Error()
	}
	return text, "", ""
}

// rowKey is the same for rows with the same number and parameters, and no others.
func rowKey(number string, params map[string]string) (key twinKey) {
	var all bytes.Buffer
	all.WriteString(number)
	for _, name := range slices.Sorted(maps.Keys(params)) {
		for _, part := range []string{name, params[name]} {
			all.WriteByte(0) // which no text has
			all.WriteString(part)
		}
	}
	sum := sha256.Sum256(all.Bytes())
	copy(key[:], sum[:])
	return key
}

// batchRows are the rows of a batch, in their order.
type batchRows struct {
	*checkedRows[batchRow]
	seen *twins // nil: twins are let through

	total    int // rows that can be sent to, twins included
	twins    int
	segments int        // of rows that are not twins
	examples []batchRow // the first of those, with their texts
}

// readRows begins to read and check. It ends with ctx. seen is nil where twins are let through.
func readRows(ctx context.Context, source recipientSource, check *rowCheck, seen *twins) *batchRows {
	return &batchRows{checkedRows: checkRows(ctx, source, check.check), seen: seen}
}

// next gives the next row to write, and false after the last one.
func (b *batchRows) next() (store.BatchRecipient, bool, error) {
	row, ok, err := b.checkedRows.next()
	if err != nil || !ok {
		return store.BatchRecipient{}, false, err
	}
	b.total++
	var seenErr error
	row.recipient.ID, err = uuid.NewV7()
	if b.seen != nil {
		row.recipient.Twin, seenErr = b.seen.add(row.key)
	}
	if row.recipient.Twin {
		b.twins++
	} else {
		b.segments += row.segments
		if row.text != "" && len(b.examples) < shownExamples {
			b.examples = append(b.examples, row)
		}
	}
	return row.recipient, true, errors.Join(err, seenErr)
}
