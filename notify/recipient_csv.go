package notify

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"
)

// Limits of a recipients file.
const (
	MaxCSVColumns     = 100
	MaxCSVRecordBytes = 1 << 20 // of one row, quoted line breaks included
)

// Codes of a CSVError.
const (
	CSVEmpty            = "csv_empty"
	CSVWithoutTo        = "csv_without_to"
	CSVDuplicateColumn  = "csv_duplicate_column"
	CSVUnnamedColumn    = "csv_unnamed_column"
	CSVTooManyColumns   = "csv_too_many_columns"
	CSVUnclosedQuote    = "csv_unclosed_quote"
	CSVRowTooLong       = "csv_row_too_long"
	CSVUnknownEncoding  = "csv_unknown_encoding"
	CSVRowColumnCount   = "row_column_count"
	CSVRowMisplacedMark = "row_misplaced_quote"
)

// CSVError says what is wrong with a recipients file, or with one row of it. It does not repeat
// what the file says.
type CSVError struct {
	Code   string
	Row    int // as of a Recipient; 0: the header or the file as a whole
	Detail string
}

func (e *CSVError) Error() string { return e.Detail }

// OfRow reports whether only one row is wrong, so that the next one can be read.
func (e *CSVError) OfRow() bool { return strings.HasPrefix(e.Code, "row_") }

// Recipient is one row of a recipients file: who gets a notification, and with which parameters.
type Recipient struct {
	Row    int // as a spreadsheet counts: the first one below the header is 1, and those that are empty count
	To     string
	Params map[string]string // by column; cells that are empty are empty strings

	Timezone, Locale string // of a member of a list; empty: not given. A file has no such columns of its own.
}

// RecipientReader reads a recipients file row by row: a header with the column `to` and a column
// for each parameter, then the recipients. It takes UTF-8 with and without a byte order mark,
// UTF-16 with one, and Shift_JIS as Excel in Japan writes it; fields in quotes; LF and CRLF. It
// holds one row in memory, whatever the size of the file.
type RecipientReader struct {
	source  *recordLimit
	csv     *csv.Reader
	columns []string
	to      int
	above   int // lines of the file that are no rows: the header, and what line breaks in cells have added
}

// NewRecipientReader reads the header. The error is a *CSVError, or what reading from r returned.
func NewRecipientReader(r io.Reader) (*RecipientReader, error) {
	source := &recordLimit{r: decode(r)}
	rr := &RecipientReader{source: source, csv: csv.NewReader(source), to: -1}
	rr.csv.FieldsPerRecord = -1
	rr.csv.ReuseRecord = true
	header, _, err := rr.record()
	if errors.Is(err, io.EOF) {
		return nil, &CSVError{Code: CSVEmpty, Detail: "the file is empty: its first row must name the columns, one of them `to`"}
	}
	if err != nil {
		return nil, err
	}
	switch names := strings.Join(header, ""); {
	case strings.ContainsAny(names, "\x00\x1b"): // UTF-16 and UTF-32 are full of the one, ISO-2022-JP of the other
		return nil, &CSVError{Code: CSVUnknownEncoding, Detail: unknownEncoding}
	case strings.Contains(names, "\r"): // within what would be one row
		return nil, &CSVError{Code: CSVWithoutTo, Detail: "the line breaks are those of old Macs, so the whole file is one row: save it as `CSV UTF-8`"}
	}
	if len(header) > MaxCSVColumns {
		return nil, &CSVError{Code: CSVTooManyColumns, Detail: fmt.Sprintf("the file has %d columns, more than %d: keep `to` and the template's parameters", len(header), MaxCSVColumns)}
	}
	seen := map[string]bool{}
	for i, name := range header {
		name = norm.NFC.String(strings.TrimFunc(name, func(r rune) bool { return !visible(r) }))
		if strings.EqualFold(name, "to") {
			name, rr.to = "to", i
		}
		switch {
		case name == "":
			return nil, &CSVError{Code: CSVUnnamedColumn, Detail: fmt.Sprintf("column %d has no name: name it in the first row, or remove it", i+1)}
		case seen[name]:
			return nil, &CSVError{Code: CSVDuplicateColumn, Detail: fmt.Sprintf("column %d has the name of an earlier one: keep one of the two", i+1)}
		}
		seen[name] = true
		rr.columns = append(rr.columns, name)
	}
	if rr.to < 0 {
		return nil, &CSVError{Code: CSVWithoutTo, Detail: withoutTo(header)}
	}
	return rr, nil
}

// withoutTo says why the header has no column `to`: of a file of another kind, what kind it is.
func withoutTo(header []string) string {
	switch first := header[0]; {
	case len(header) == 1 && strings.Contains(first, ";"):
		return "the columns are parted by semicolons: save the file with commas"
	case len(header) == 1 && strings.Contains(first, "\t"):
		return "the columns are parted by tabs: save the file as `CSV UTF-8`, with commas"
	}
	return "no column is named `to`: the first row must name the columns, and `to` holds the phone numbers"
}

// Columns are the names of the parameters' columns, in the file's order.
func (rr *RecipientReader) Columns() []string {
	var names []string
	for i, name := range rr.columns {
		if i != rr.to {
			names = append(names, name)
		}
	}
	return names
}

// Read returns the next recipient, and io.EOF after the last one. After a *CSVError that is OfRow
// the next row can be read; any other error concerns the whole file.
func (rr *RecipientReader) Read() (Recipient, error) {
	for {
		record, row, err := rr.record()
		if errors.Is(err, io.EOF) {
			return Recipient{}, io.EOF
		}
		if err != nil {
			return Recipient{Row: row}, err
		}
		if len(record) == 1 && strings.TrimSpace(record[0]) == "" && len(rr.columns) > 1 {
			continue // a row of spaces, as at the end of many files
		}
		if len(record) != len(rr.columns) {
			return Recipient{Row: row}, &CSVError{Code: CSVRowColumnCount, Row: row,
				Detail: fmt.Sprintf("the row has %d columns and the header %d: put cells that hold commas or line breaks in quotes", len(record), len(rr.columns))}
		}
		recipient := Recipient{Row: row, To: strings.Clone(record[rr.to])}
		if len(record) > 1 {
			recipient.Params = make(map[string]string, len(record)-1)
			for i, cell := range record {
				if i != rr.to {
					recipient.Params[rr.columns[i]] = strings.Clone(cell)
				}
			}
		}
		return recipient, nil
	}
}

// record reads the next record, and which row it is; the header is row 0.
func (rr *RecipientReader) record() (record []string, row int, err error) {
	rr.source.left = MaxCSVRecordBytes
	record, err = rr.csv.Read()
	row = rr.place(record, err)
	var parse *csv.ParseError
	var whole *CSVError
	switch {
	case errors.As(err, &whole): // from below
		whole.Row = row
		return nil, row, whole
	case errors.As(err, &parse) && errors.Is(parse.Err, csv.ErrQuote) && rr.source.ended:
		return nil, row, &CSVError{Code: CSVUnclosedQuote, Row: row, Detail: "a quote that begins here is never closed, so the rest of the file would be one cell: close it"}
	case errors.As(err, &parse):
		code := CSVRowMisplacedMark
		if row == 0 {
			code = CSVUnclosedQuote
		}
		return nil, row, &CSVError{Code: code, Row: row, Detail: "a quote stands within a cell: put the cell in quotes and write the quote twice"}
	case err != nil:
		return nil, row, err
	}
	for _, cell := range record {
		if !utf8.ValidString(cell) || strings.ContainsRune(cell, utf8.RuneError) {
			return nil, row, &CSVError{Code: CSVUnknownEncoding, Row: row, Detail: unknownEncoding}
		}
	}
	return record, row, nil
}

// place tells, by the line on which what was just read begins, which row that is.
func (rr *RecipientReader) place(record []string, err error) (row int) {
	var line, breaks int
	var parse *csv.ParseError
	switch {
	case errors.As(err, &parse):
		line, breaks = parse.StartLine, parse.Line-parse.StartLine
	case len(record) > 0:
		line, _ = rr.csv.FieldPos(0)
		for _, cell := range record {
			breaks += strings.Count(cell, "\n")
		}
	}
	if rr.columns == nil {
		rr.above = line
	}
	row = line - rr.above
	rr.above += breaks
	return row
}

const unknownEncoding = "the file is neither UTF-8 nor Shift_JIS from its first row to its last: save it as `CSV UTF-8`"

// recordLimit bounds what is read for one row.
type recordLimit struct {
	r     io.Reader
	left  int
	ended bool
}

func (l *recordLimit) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, &CSVError{Code: CSVRowTooLong, Detail: fmt.Sprintf("a row is longer than %d bytes: a quote may not be closed", MaxCSVRecordBytes)}
	}
	n, err := l.r.Read(p)
	l.left -= n
	l.ended = l.ended || errors.Is(err, io.EOF)
	return n, err
}

// decode returns the file as UTF-8 without a byte order mark.
func decode(r io.Reader) io.Reader {
	buffered := bufio.NewReaderSize(r, sampleSize)
	head, _ := buffered.Peek(4) // a short file is read, and its error found, below
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("\xD0\xCF\x11\xE0")): // .xlsx, .ods, .numbers; .xls
		return refusal{&CSVError{Code: CSVUnknownEncoding, Detail: "the file is a workbook or an archive, and no text: open it, and save it as `CSV UTF-8`"}}
	case bytes.HasPrefix(head, []byte("\xEF\xBB\xBF")):
		_, _ = buffered.Discard(3) // just peeked
		return buffered
	case bytes.HasPrefix(head, []byte("\xFE\xFF")), bytes.HasPrefix(head, []byte("\xFF\xFE")):
		return transform.NewReader(buffered, unicode.UTF16(unicode.BigEndian, unicode.ExpectBOM).NewDecoder())
	}
	return &guess{r: buffered}
}

// refusal is a file that is not read.
type refusal struct{ err *CSVError }

func (r refusal) Read([]byte) (int, error) { return 0, r.err }

// sampleSize is how much of the file, from its first byte that is not ASCII, the encoding is told by.
const sampleSize = 64 << 10

// guess passes ASCII through, and decides between UTF-8 and Shift_JIS where it ends.
type guess struct {
	r       *bufio.Reader
	decoded io.Reader // once decided
}

func (g *guess) Read(p []byte) (int, error) {
	if g.decoded != nil {
		return g.decoded.Read(p)
	}
	if _, err := g.r.Peek(1); err != nil {
		return 0, err
	}
	sample, _ := g.r.Peek(g.r.Buffered())
	ascii := 0
	for ascii < len(sample) && sample[ascii] < utf8.RuneSelf {
		ascii++
	}
	if ascii > 0 {
		return g.r.Read(p[:min(ascii, len(p))])
	}
	sample, _ = g.r.Peek(sampleSize) // shorter at the end of the file
	switch {
	case validUTF8(sample):
		g.decoded = g.r
	case validShiftJIS(sample) && !looksLikeEUC(sample):
		g.decoded = transform.NewReader(g.r, japanese.ShiftJIS.NewDecoder())
	default:
		return 0, &CSVError{Code: CSVUnknownEncoding, Detail: unknownEncoding}
	}
	return g.decoded.Read(p)
}

// validUTF8 reports whether the sample is UTF-8, but for a character that its end cuts off.
func validUTF8(sample []byte) bool {
	for len(sample) > 0 {
		r, size := utf8.DecodeRune(sample)
		if r == utf8.RuneError && size == 1 {
			return !utf8.FullRune(sample)
		}
		sample = sample[size:]
	}
	return true
}

// validShiftJIS reports whether the sample is Shift_JIS, but for a character that its end cuts off.
func validShiftJIS(sample []byte) bool {
	decoded := make([]byte, 3*len(sample)+utf8.UTFMax)
	n, _, err := japanese.ShiftJIS.NewDecoder().Transform(decoded, sample, false)
	return (err == nil || errors.Is(err, transform.ErrShortSrc)) && !bytes.ContainsRune(decoded[:n], utf8.RuneError)
}

// looksLikeEUC reports whether the sample, which is Shift_JIS too, is EUC-JP. As Shift_JIS nearly all of it
// would be half-width kana, and of an even number wherever some follow each other. That tells the two apart
// where there are many such runs; where there are few, pairs do that are frequent in EUC-JP and not in kana.
func looksLikeEUC(sample []byte) bool {
	const many = 16
	var runs, hiragana, kanji int
	for before := byte(0); len(sample) > 1; {
		lead, trail := sample[0], sample[1]
		switch {
		case lead < utf8.RuneSelf:
			before, sample = lead, sample[1:]
			continue
		case lead < 0xA1 || lead > 0xFE || trail < 0xA1 || trail > 0xFE:
			return false
		case lead == 0xA4: // as half-width kana a comma
			hiragana++
		case lead >= 0xB0 && lead <= 0xCF && trail >= 0xE0:
			kanji++
		}
		if before < utf8.RuneSelf {
			runs++
		}
		before, sample = trail, sample[2:]
	}
	return runs >= many || hiragana > 1 || kanji > 0
}
