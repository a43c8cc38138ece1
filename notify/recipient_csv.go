package notify

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

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
	CSVTooManyColumns   = "csv_too_many_columns"
	CSVUnclosedQuote    = "csv_unclosed_quote"
	CSVRowTooLong       = "csv_row_too_long"
	CSVUnknownEncoding  = "csv_unknown_encoding"
	CSVRowColumnCount   = "row_column_count"
	CSVRowMisplacedMark = "row_misplaced_quote"
	CSVRowEncoding      = "row_encoding"
	CSVRowUnnamedValue  = "row_unnamed_column"
	CSVRowSeveralRows   = "row_number_behind_line_break"
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
// for each parameter, then the recipients. It tells UTF-8, UTF-16 with a byte order mark, and Shift_JIS as
// Excel in Japan writes it; any other encoding must be declared. It takes fields in quotes; LF, CRLF and CR;
// rows without their last cells, which are empty then. It holds one row in memory, whatever the size of the
// file.
type RecipientReader struct {
	source  *recordLimit
	sniffer *sniffer
	csv     *csv.Reader
	columns []string
	to      int
	above   int // lines of the file that are no rows: the header, and what line breaks in cells have added
}

// NewRecipientReader reads the header. charset is what the file is said to be encoded in; empty: nothing is
// said. The error is a *CSVError, or what reading from r returned.
func NewRecipientReader(r io.Reader, charset string) (*RecipientReader, error) {
	declared, err := declaredCharset(charset)
	if err != nil {
		return nil, err
	}
	sniffer, err := newSniffer(r, declared)
	if err != nil {
		return nil, err
	}
	source := &recordLimit{r: sniffer}
	rr := &RecipientReader{source: source, sniffer: sniffer, csv: csv.NewReader(source), to: -1}
	rr.csv.FieldsPerRecord = -1
	rr.csv.ReuseRecord = true
	header, _, err := rr.record()
	if errors.Is(err, io.EOF) {
		return nil, &CSVError{Code: CSVEmpty, Detail: "the file is empty: its first row must name the columns, one of them `to`"}
	}
	if err != nil {
		return nil, err
	}
	if strings.ContainsAny(strings.Join(header, ""), "\x00\x1b") { // UTF-16 and UTF-32 are full of the one, ISO-2022-JP of the other
		return nil, &CSVError{Code: CSVUnknownEncoding, Detail: unknownEncoding}
	}
	named := len(header) // without the empty last columns that spreadsheets leave behind
	for named > 1 && IsBlank(header[named-1]) {
		named--
	}
	if named > MaxCSVColumns {
		return nil, &CSVError{Code: CSVTooManyColumns, Detail: fmt.Sprintf("the file has %d columns, more than %d: keep `to` and the template's parameters", named, MaxCSVColumns)}
	}
	seen := map[string]bool{}
	for i, name := range header {
		name = norm.NFC.String(strings.TrimFunc(name, func(r rune) bool { return !visible(r) }))
		if strings.EqualFold(name, "to") {
			name, rr.to = "to", i
		}
		switch {
		case name != "" && seen[name]:
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
	case strings.HasPrefix(strings.ToLower(first), "sep="):
		return "the first row names a separator: remove it, and save the file with commas"
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
		if i != rr.to && name != "" {
			names = append(names, name)
		}
	}
	return names
}

// Encoding is what the file is read in, as far as it was read.
func (rr *RecipientReader) Encoding() string {
	if rr.sniffer.charset == nil {
		return "us-ascii"
	}
	return rr.sniffer.charset.name
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
		if !slices.ContainsFunc(record, func(cell string) bool { return !IsBlank(cell) }) {
			continue // a row of nothing, as at the end of many files
		}
		if err := rr.checkCells(record, row); err != nil {
			return Recipient{Row: row}, err
		}
		cell := func(i int) string {
			if i < len(record) {
				return PlainCell(strings.Clone(record[i]))
			}
			return "" // spreadsheets leave out the last cells where they are empty
		}
		recipient := Recipient{Row: row, To: cell(rr.to)}
		if len(rr.columns) > 1 {
			recipient.Params = make(map[string]string, len(rr.columns)-1)
			for i, name := range rr.columns {
				if i != rr.to && name != "" {
					recipient.Params[name] = cell(i)
				}
			}
		}
		return recipient, nil
	}
}

// checkCells refuses what stands where no column is, and what is more than one row.
func (rr *RecipientReader) checkCells(record []string, row int) error {
	for i, cell := range record {
		switch {
		case i < len(rr.columns) && rr.columns[i] != "", IsBlank(cell):
		case i < len(rr.columns):
			return &CSVError{Code: CSVRowUnnamedValue, Row: row,
				Detail: fmt.Sprintf("column %d has a value, but no name: name it in the first row, or empty it", i+1)}
		default:
			return &CSVError{Code: CSVRowColumnCount, Row: row,
				Detail: fmt.Sprintf("the row has %d columns and the header %d: put cells that hold commas or line breaks in quotes", len(record), len(rr.columns))}
		}
	}
	numbered := false
	for i, cell := range record {
		if !strings.Contains(cell, "\n") {
			continue
		}
		for line := range strings.Lines(cell) {
			parts := strings.Split(strings.TrimRight(line, "\n"), ",")
			for _, part := range parts {
				if (len(parts) > 1 || len(rr.columns) == 1) && isNumber(part) {
					return &CSVError{Code: CSVUnclosedQuote, Row: row,
						Detail: "a cell has a line break and holds what looks like other rows: close the quote that begins here, or write its phone numbers without commas"}
				}
			}
			numbered = numbered || i == rr.to || hasNumber(line)
		}
	}
	if numbered {
		return &CSVError{Code: CSVRowSeveralRows, Row: row,
			Detail: "a cell has a line break and a phone number, as where a quote is not closed: close it, or write the cell in one line"}
	}
	return nil
}

var (
	writtenDate   = regexp.MustCompile(`\b[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}\b`)
	writtenNumber = regexp.MustCompile(`[0-9](?:[-(). /]*[0-9]){8,}`)
)

// isNumber reports whether the text is nothing but what may be a phone number.
func isNumber(text string) bool {
	text = strings.Trim(strings.Map(foldNumberRune, text), " \t\"'")
	digits := 0
	for _, r := range writtenDate.ReplaceAllString(text, "x") {
		switch {
		case '0' <= r && r <= '9':
			digits++
		case !strings.ContainsRune("+-(). /", r):
			return false
		}
	}
	return digits >= 8
}

// hasNumber reports whether a part of the text may be a phone number.
func hasNumber(text string) bool {
	return writtenNumber.MatchString(writtenDate.ReplaceAllString(strings.Map(foldNumberRune, text), "x"))
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
	case errors.As(err, &parse) && parse.Line != parse.StartLine:
		return nil, row, &CSVError{Code: CSVUnclosedQuote, Row: row, Detail: "a quote that begins in this row ends in another one, so rows would be lost: close it, and write quotes within cells twice"}
	case errors.As(err, &parse):
		code := CSVRowMisplacedMark
		if row == 0 {
			code = CSVUnclosedQuote
		}
		return nil, row, &CSVError{Code: code, Row: row, Detail: "a quote stands within a cell: put the cell in quotes and write the quote twice"}
	case err != nil:
		return nil, row, err
	}
	charset := rr.sniffer.charset
	if charset == nil { // ASCII
		return record, row, nil
	}
	doubt := noDoubt
	if row > 0 {
		doubt = charset.doubtOf(record)
	}
	for i, cell := range record {
		text, ok := charset.decode(cell)
		switch {
		case !ok && row == 0:
			return nil, row, &CSVError{Code: CSVUnknownEncoding, Detail: unknownEncoding}
		case !ok || doubt == badRow:
			return nil, row, &CSVError{Code: CSVRowEncoding, Row: row, Detail: undecodable}
		}
		record[i] = strings.TrimPrefix(text, "\uFEFF") // of a file that was appended
	}
	if doubt == unclear {
		return nil, row, &CSVError{Code: CSVUnknownEncoding, Row: row, Detail: unclearRow}
	}
	return record, row, nil
}

const (
	undecodable = "the row has a character that is not in the file's encoding, or that only one computer knows: " +
		"write the row again; if the file has one encoding, name it as charset"
	unclearRow = "the row has only half-width katakana or signs, which other encodings write alike: " +
		"if the file is Shift_JIS, name it as charset, as in `Content-Type: text/csv; charset=shift_jis`"
)

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
