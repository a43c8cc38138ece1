package v1

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"maps"
	"runtime"
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

// MaxRecipients is how many rows a batch may have.
const MaxRecipients = 1_000_000

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

// jsonSource reads the array of recipients of a body whose syntax was checked.
type jsonSource struct {
	decoder *jsontext.Decoder
	row     int
}

// newJSONSource goes to the array.
func newJSONSource(body io.Reader) (*jsonSource, error) {
	s := &jsonSource{decoder: jsontext.NewDecoder(body)}
	if _, err := s.decoder.ReadToken(); err != nil { // {
		return nil, err
	}
	for {
		name, err := s.decoder.ReadToken()
		if err != nil {
			return nil, err
		}
		if name.String() == recipientsField {
			_, err := s.decoder.ReadToken() // [
			return s, err
		}
		if err := s.decoder.SkipValue(); err != nil {
			return nil, err
		}
	}
}

type recipientRequest struct {
	To     string            `json:"to" example:"090-1234-5678" doc:"A phone number as people write it."`
	Params map[string]string `json:"params,omitempty" doc:"A value for each placeholder of the template, and no others."`
}

func (s *jsonSource) Read() (notify.Recipient, error) {
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
		return notify.Recipient{}, &rowError{s.row, string(problem.WrongType), "expected an object with to and params"}
	}
	var of recipientRequest
	if wrong := readMembers(members, &of); len(wrong) > 0 {
		return notify.Recipient{}, &rowError{s.row, string(wrong[0].Code), strings.TrimPrefix(wrong[0].Pointer+": "+wrong[0].Detail, ": ")}
	}
	return notify.Recipient{Row: s.row, To: of.To, Params: of.Params}, nil
}

// rowCheck decides whether a row can be sent to, as the whole batch is sent. It is safe for
// concurrent use.
type rowCheck struct {
	channel   notify.Channel
	region    string
	countries []string
	hashKey   []byte
	template  *notify.Template // nil: the text is the same for all
	columns   []string         // of a file: the parameters that are taken from it; nil: what a row gives must fit
	segments  int              // of the text that is the same for all
	count     bool             // count segments
}

// checkedRow is a row that was looked at, alone.
type checkedRow struct {
	recipient store.BatchRecipient
	key       twinKey
	segments  int
	rejected  *store.Rejected
	fatal     error // of the request; no row follows
}

func (c *rowCheck) check(r notify.Recipient) checkedRow {
	reject := func(code, detail string) checkedRow {
		return checkedRow{rejected: &store.Rejected{Row: r.Row, Code: code, Detail: detail}}
	}
	number, err := notify.ParsePhoneNumber(r.To, c.region)
	if err == nil {
		err = number.Accepts(c.channel, c.countries)
	}
	var invalid *notify.InvalidNumberError
	if errors.As(err, &invalid) {
		return reject(invalid.Code, invalid.Error())
	}
	row := checkedRow{
		recipient: store.BatchRecipient{Row: r.Row, To: number, ToHash: number.Hash(c.hashKey)},
		segments:  c.segments,
	}
	params := r.Params
	if c.template == nil {
		if c.columns == nil && len(params) > 0 {
			return reject(string(problem.ParamsWithoutTemplate), "parameters need a template: give template_id, or leave params out")
		}
		row.key = keyOf(number, nil)
		return row
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
	if params == nil {
		params = map[string]string{}
	}
	if row.recipient.Params, err = json.Marshal(params); err != nil {
		return checkedRow{fatal: err}
	}
	row.key = keyOf(number, params)
	return row
}

// fill makes the text, or says why there is none.
func (c *rowCheck) fill(params map[string]string) (text, code, detail string) {
	text, err := c.template.Render(params)
	var misfit *notify.ParamsError
	if errors.As(err, &misfit) {
		if len(misfit.Missing) > 0 {
			return "", string(problem.ParamMissing), misfit.Error()
		}
		return "", string(problem.ParamUnknown), misfit.Error()
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

func keyOf(number notify.PhoneNumber, params map[string]string) (key twinKey) {
	var all bytes.Buffer
	all.WriteString(number.E164)
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

// batchRows checks the rows of a request on all cores, and gives them in their order.
type batchRows struct {
	parts   <-chan chan []checkedRow // in the order of the request
	current []checkedRow
	seen    *twins // nil: twins are let through

	total    int // rows that can be sent to, twins included
	twins    int
	segments int // of rows that are not twins
	rejected int
	first    []store.Rejected
}

const rowsInPart = 256

// readRows begins to read and check. It ends with ctx. seen is nil where twins are let through.
func readRows(ctx context.Context, source recipientSource, check *rowCheck, seen *twins) *batchRows {
	workers := runtime.GOMAXPROCS(0)
	parts := make(chan chan []checkedRow, 2*workers)
	type job struct {
		rows []notify.Recipient
		bad  []checkedRow // each in the place of the row that it follows
		at   []int
		done chan []checkedRow
	}
	work := make(chan job, 2*workers)
	for range workers {
		go func() {
			for j := range work {
				checked := make([]checkedRow, 0, len(j.rows)+len(j.bad))
				next := 0
				for i, row := range j.rows {
					for next < len(j.at) && j.at[next] == i {
						checked = append(checked, j.bad[next])
						next++
					}
					checked = append(checked, check.check(row))
				}
				j.done <- append(checked, j.bad[next:]...)
			}
		}()
	}
	go func() {
		defer close(parts)
		defer close(work)
		for ended := false; !ended; {
			j := job{done: make(chan []checkedRow, 1)}
			for len(j.rows)+len(j.bad) < rowsInPart && !ended {
				row, err := source.Read()
				var bad *rowError
				switch {
				case err == nil:
					j.rows = append(j.rows, row)
					continue
				case errors.Is(err, io.EOF):
					ended = true
					continue
				case errors.As(err, &bad):
					j.bad = append(j.bad, checkedRow{rejected: &store.Rejected{Row: bad.row, Code: bad.code, Detail: bad.text}})
				default:
					j.bad, ended = append(j.bad, checkedRow{fatal: err}), true
				}
				j.at = append(j.at, len(j.rows))
			}
			select {
			case parts <- j.done:
			case <-ctx.Done():
				return
			}
			work <- j // a worker is free, or will be: none waits for anybody
		}
	}()
	return &batchRows{parts: parts, seen: seen}
}

// next gives the next row to write, and false after the last one.
func (b *batchRows) next() (store.BatchRecipient, bool, error) {
	for {
		for len(b.current) == 0 {
			part, ok := <-b.parts
			if !ok {
				return store.BatchRecipient{}, false, nil
			}
			b.current = <-part
		}
		row := b.current[0]
		b.current = b.current[1:]
		switch {
		case row.fatal != nil:
			return store.BatchRecipient{}, false, row.fatal
		case row.rejected != nil:
			b.rejected++
			if len(b.first) < store.MaxRejected {
				b.first = append(b.first, *row.rejected)
			}
			if b.total+b.rejected > MaxRecipients {
				return store.BatchRecipient{}, false, tooMany()
			}
			continue
		}
		if b.total++; b.total+b.rejected > MaxRecipients {
			return store.BatchRecipient{}, false, tooMany()
		}
		var err, seenErr error
		row.recipient.ID, err = uuid.NewV7()
		if b.seen != nil {
			row.recipient.Twin, seenErr = b.seen.add(row.key)
		}
		if row.recipient.Twin {
			b.twins++
		} else {
			b.segments += row.segments
		}
		return row.recipient, true, errors.Join(err, seenErr)
	}
}

func tooMany() error {
	return problem.Newf(problem.TooManyRecipients, "the batch has more than %d rows: split it", MaxRecipients)
}
