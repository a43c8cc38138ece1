package notify

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

func readRecipients(r io.Reader) (rows []Recipient, bad []string, err error) {
	rr, err := NewRecipientReader(r, "")
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

func encoded(t *testing.T, text, in string) string {
	t.Helper()
	var out string
	var err error
	switch in {
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
		"sep=;\nto;name\n":  "separator",
		"phone,name\n1,x\n": "no column is named `to`",
	} {
		_, _, err := readRecipients(strings.NewReader(file))
		var wrong *CSVError
		if !errors.As(err, &wrong) || wrong.Code != CSVWithoutTo || !strings.Contains(wrong.Detail, want) {
			t.Errorf("%q is refused with %v, and not for its %s", file, err, want)
		}
	}
}

func TestAFileThatIsNoTextOrInAnotherEncodingIsRefused(t *testing.T) {
	const text = "to,name\r\n090-1234-5678,山田 太郎\r\n090-1234-5679,すずき\r\n"
	in := func(e encoding.Encoding, text string) string {
		out, err := e.NewEncoder().String(text)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for name, test := range map[string]struct{ file, want string }{
		"EUC-JP":                             {in(japanese.EUCJP, text), "name it as charset"},
		"EUC-JP without kana":                {in(japanese.EUCJP, "to,name\n"+strings.Repeat("1,山田 太郎\n", 10)), "name it as charset"},
		"EUC-JP, in the header too":          {in(japanese.EUCJP, strings.Replace(text, "name", "氏名", 1)), "name it as charset"},
		"ISO-2022-JP, in the header":         {in(japanese.ISO2022JP, strings.Replace(text, "name", "氏名", 1)), "name it as charset"},
		"UTF-16 without a byte order mark":   {in(unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), strings.Replace(text, "name", "氏名", 1)), "name it as charset"},
		"big-endian UTF-16 without a mark":   {in(unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), text), "name it as charset"},
		"UTF-32":                             {in(utf32.UTF32(utf32.LittleEndian, utf32.UseBOM), text), "name it as charset"},
		"a workbook":                         {"PK\x03\x04\x14\x00\x06\x00\b\x00\x00\x00!\x00", "workbook"},
		"a workbook of an older spreadsheet": {"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", "workbook"},
	} {
		_, _, err := readRecipients(strings.NewReader(test.file))
		var wrong *CSVError
		if !errors.As(err, &wrong) || wrong.Code != CSVUnknownEncoding || !strings.Contains(wrong.Detail, test.want) {
			t.Errorf("%s is refused with %v", name, err)
		}
	}
}

func TestHalfWidthKanaIsReadWhereNoOtherEncodingWritesItAlike(t *testing.T) {
	for name, want := range map[string]string{
		"ﾔﾏﾀﾞ ﾀﾛｳ": "", "髙﨑 ①㈱ ～": "", "佐藤 ﾔﾏﾀﾞ ﾊﾅｺ": "", "ﾐｱ ﾏﾙ": CSVUnknownEncoding, "髙ﾊｼ": CSVUnknownEncoding, "ｻｳﾅﾄ": CSVUnknownEncoding,
	} {
		file := encoded(t, "to,氏名\n1,"+name+"\n", "Shift_JIS")
		rows, _, err := readRecipients(strings.NewReader(file))
		var refused *CSVError
		switch {
		case want == "" && (err != nil || len(rows) != 1 || rows[0].Params["氏名"] != name):
			t.Errorf("%s: %+v, error %v", name, rows, err)
		case want != "" && (!errors.As(err, &refused) || refused.Code != want):
			t.Errorf("%s: %+v, error %v", name, rows, err)
		}
		if read, rejected, refused := texts(t, strings.Replace(file, "to,\x8e\x81\x96\xbc", "to,name", 1), "shift_jis"); refused || rejected != 0 || read[0] != name {
			t.Errorf("%s with a charset: %q, %d rejected, refused %v", name, read, rejected, refused)
		}
	}
}

func TestColumnsAreFoundWhateverStandsInvisiblyAroundTheirNames(t *testing.T) {
	rows, _, err := readRecipients(strings.NewReader("\uFEFF\uFEFFto,\u3000氏名\u200b\n1,山田\n"))
	if err != nil || len(rows) != 1 || rows[0].Params["氏名"] != "山田" {
		t.Errorf("%+v, error %v", rows, err)
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
		"200 columns":                  {"to" + strings.Repeat(",x", 199) + "\n", CSVTooManyColumns, 0},
		"a quote that is never closed": {"to,name\na,b\nc,\"d\ne,f\n", CSVUnclosedQuote, 2},
		"a row that never ends":        {"to,name\na,\"" + strings.Repeat("x", 2<<20) + "\"\n", CSVRowTooLong, 1},
		"neither UTF-8 nor Shift_JIS":  {"to,name\na,\xff\xff\xff\n", CSVUnknownEncoding, 1},
		"a quote that ends in another": {"to,name\n1,a\n2,\"b\n3,\"c\"\n", CSVUnclosedQuote, 2},
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
	rows, bad, err := readRecipients(strings.NewReader("TO , name\n1,a\n3,c,d\n4,x\"y\n5,e\n"))
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
	if got, want := strings.Join(bad, ", "), "2 row_column_count, 3 row_misplaced_quote"; got != want {
		t.Errorf("bad rows are %s, want %s", got, want)
	}
}

func TestRowsAreNumberedAsInASpreadsheet(t *testing.T) {
	for name, test := range map[string]struct{ file, good, bad string }{
		"empty lines count":                {"\n\nto,name\n\n2,a\n\r\n\r\n5,a\n", "2 5", ""},
		"also where there is one column":   {"to\n1\n\n3\n", "1 3", ""},
		"rows of spaces count":             {"to,name\n1,a\n  \n3,a\n", "1 3", ""},
		"line breaks in cells do not":      {"\"to\",\"na\nme\"\n1,\"a\nb\r\n\nc\"\n2,a\n", "1 2", ""},
		"nor those in rows that are wrong": {"to,name\n1,\"a\nb\",c\n2,a\n3,\"a\"c\n4,a\n", "2 4", "1 row_column_count, 3 row_misplaced_quote"},
		"the last may have no line break":  {"to,name\r\n\r\n2,a", "2", ""},
	} {
		rows, bad, err := readRecipients(strings.NewReader(test.file))
		var good []string
		for _, row := range rows {
			good = append(good, fmt.Sprint(row.Row))
			if fmt.Sprint(row.Row) != row.To {
				t.Errorf("%s: row %d is taken for row %s", name, row.Row, row.To)
			}
		}
		if got := strings.Join(good, " "); err != nil || got != test.good || strings.Join(bad, ", ") != test.bad {
			t.Errorf("%s: good are %q, bad %q, error %v", name, got, bad, err)
		}
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
