package notify

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"
)

func readRecipients(r io.Reader) (rows []Recipient, bad []string, err error) {
	rr, err := NewRecipientReader(r)
	if err != nil {
		return nil, nil, err
	}
	for {
		row, err := rr.Read()
		var of *CSVError
		switch {
		case errors.Is(err, io.EOF):
			return rows, bad, nil
		case errors.As(err, &of) && of.OfRow():
			bad = append(bad, fmt.Sprintf("%d %s", of.Row, of.Code))
		case err != nil:
			return rows, bad, err
		default:
			rows = append(rows, row)
		}
	}
}

func encoded(t *testing.T, text, encoding string) string {
	t.Helper()
	var out string
	var err error
	switch encoding {
	case "UTF-8":
		return text
	case "UTF-8 with a byte order mark":
		return "\uFEFF" + text
	case "Shift_JIS":
		out, err = japanese.ShiftJIS.NewEncoder().String(text)
	case "UTF-16":
		out, err = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().String(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRecipientsInEveryEncodingThatExcelWrites(t *testing.T) {
	const text = "to,氏名,note\r\n090-1234-5678,山田 太郎,\"a, b\"\r\n０９０ー１２３４ー５６７８,佐藤,\"two\nlines\"\r\n"
	want := []Recipient{
		{Row: 1, To: "090-1234-5678", Params: map[string]string{"氏名": "山田 太郎", "note": "a, b"}},
		{Row: 2, To: "０９０ー１２３４ー５６７８", Params: map[string]string{"氏名": "佐藤", "note": "two\nlines"}},
	}
	for _, encoding := range []string{"UTF-8", "UTF-8 with a byte order mark", "Shift_JIS", "UTF-16"} {
		for name, reader := range map[string]func(io.Reader) io.Reader{
			"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader, "data with EOF": iotest.DataErrReader,
		} {
			t.Run(encoding+" "+name, func(t *testing.T) {
				rows, bad, err := readRecipients(reader(strings.NewReader(encoded(t, text, encoding))))
				if err != nil || len(bad) != 0 || !reflect.DeepEqual(rows, want) {
					t.Errorf("rows %+v, bad %v, error %v", rows, bad, err)
				}
			})
		}
	}
}

func TestAFileOfAnotherKindIsToldWhatItIs(t *testing.T) {
	for file, want := range map[string]string{
		"to;name\n1;x\n":    "semicolons",
		"to\tname\n1\tx\n":  "tabs",
		"to,name\r1,x\r":    "line breaks",
		"to\r1\r":           "line breaks",
		"phone,name\n1,x\n": "no column is named `to`",
	} {
		_, _, err := readRecipients(strings.NewReader(file))
		var wrong *CSVError
		if !errors.As(err, &wrong) || wrong.Code != CSVWithoutTo || !strings.Contains(wrong.Detail, want) {
			t.Errorf("%q is refused with %v, and not for its %s", file, err, want)
		}
	}
}

func TestShiftJISThatBeginsLateInTheFile(t *testing.T) {
	text := "to,name\n" + strings.Repeat("+12025550143,Smith\n", 10_000) + "+12025550143,山田\n"
	rows, bad, err := readRecipients(strings.NewReader(encoded(t, text, "Shift_JIS")))
	if err != nil || len(bad) != 0 || len(rows) != 10_001 || rows[10_000].Params["name"] != "山田" {
		t.Errorf("%d rows, bad %v, error %v", len(rows), bad, err)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	tests := map[string]struct {
		file, code string
		row        int
	}{
		"empty":                        {"", CSVEmpty, 0},
		"without to":                   {"number,name\n+12025550143,a\n", CSVWithoutTo, 0},
		"two columns of one name":      {"to,name,name\n", CSVDuplicateColumn, 0},
		"two columns for the number":   {"to,TO\n", CSVDuplicateColumn, 0},
		"a column without a name":      {"to,,name\n", CSVUnnamedColumn, 0},
		"200 columns":                  {"to" + strings.Repeat(",x", 199) + "\n", CSVTooManyColumns, 0},
		"a quote that is never closed": {"to,name\na,b\nc,\"d\ne,f\n", CSVUnclosedQuote, 2},
		"a row that never ends":        {"to,name\na,\"" + strings.Repeat("x", 2<<20) + "\"\n", CSVRowTooLong, 1},
		"neither UTF-8 nor Shift_JIS":  {"to,name\na,\xff\xff\xff\n", CSVUnknownEncoding, 1},
		"UTF-8 that turns into noise":  {"to,name\na,山田\n" + strings.Repeat("b,c\n", 50_000) + "d,\xff\n", CSVUnknownEncoding, 50_002},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := readRecipients(strings.NewReader(test.file))
			var refused *CSVError
			if !errors.As(err, &refused) || refused.Code != test.code || refused.Row != test.row || refused.OfRow() {
				t.Errorf("error %v (%+v), want %s in row %d", err, refused, test.code, test.row)
			}
		})
	}
}

func TestBadRowsLeaveTheGoodOnes(t *testing.T) {
	rows, bad, err := readRecipients(strings.NewReader("TO , name\n1,a\n2\n3,c,d\n4,x\"y\n\n5,e\n"))
	if err != nil {
		t.Fatal(err)
	}
	var good []string
	for _, row := range rows {
		good = append(good, row.To)
	}
	if got := strings.Join(good, " "); got != "1 5" {
		t.Errorf("good rows are %s", got)
	}
	if got, want := strings.Join(bad, ", "), "2 row_column_count, 3 row_column_count, 4 row_misplaced_quote"; got != want {
		t.Errorf("bad rows are %s, want %s", got, want)
	}
	if rows[1].Row != 5 {
		t.Errorf("the last row is number %d", rows[1].Row)
	}
}

func TestAnUploadThatBreaksOffIsAnError(t *testing.T) {
	broken := errors.New("the connection was lost")
	_, _, err := readRecipients(io.MultiReader(strings.NewReader("to,name\n1,a\n2,"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want the connection's", err)
	}
}

func FuzzRecipients(f *testing.F) {
	f.Add([]byte("to,name\n+12025550143,a\n"))
	f.Add([]byte("\xEF\xBB\xBFto\n\"1\"\"\"\n"))
	f.Add([]byte("to,\x8e\x81\x96\xbc\n1,\x8e\x52\x93\x63\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		rows, _, err := readRecipients(strings.NewReader(string(file)))
		if err != nil {
			return
		}
		for _, row := range rows {
			if row.Row < 1 {
				t.Errorf("row number %d", row.Row)
			}
		}
	})
}
