package notify

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding/htmlindex"
)

// labels are encodings that users have.
var labels = []string{
	"utf-8", "shift_jis", "euc-jp", "iso-2022-jp", "gb18030", "gbk", "big5", "euc-kr",
	"windows-1250", "windows-1251", "windows-1252", "windows-1253", "windows-1254", "windows-1255", "windows-1256", "windows-1257", "windows-1258",
	"windows-874", "iso-8859-2", "iso-8859-5", "iso-8859-7", "iso-8859-15", "koi8-r", "ibm866", "macintosh", "x-mac-cyrillic",
}

var names = []string{
	"Pérez", "Müller", "Łukasz", "Ωμέγα", "Γιώργος", "ΩΜΕΓΑ", "Иванов", "Мария Сорокина", "ИВАНОВ", "Василий", "김철수", "이영희", "王小明", "王小明 陳大文",
	"髙橋", "﨑", "ｶﾀｶﾅ", "ﾕｷ", "～", "−", "∥", "O’Brien", "José García", "Žižek", "Škoda", "Ünal Şahin", "שלום", "محمد", "สมชาย", "Nguyễn", "佐藤", "さくら",
	"François", "Zoë Kravitz", "Ærø", "Straße", "“quoted”", "10 €", "1º", "高橋 太郎", "山田",
	"李", "王芳", "陳大", "朴", "강", "한솔", "ИВАНОВА", "ЯНА", "ΕΛΕΝΗ", "ΝΙΚΟΣ", "Élodie", "Åsa", "Özil", "É", "Ø", "ｻﾄｳ", "ｽｽﾞｷ ﾊﾅｺ", "ﾔﾏﾀﾞ ﾀﾛｳ", "髙", "邉", "森",
	"林檎", "渡邊", "小林", "松", "　", "Ａ棟", "アパートA101",
}

// texts reads a file's first column of texts; refused says that it is refused as a whole.
func texts(t *testing.T, file, charset string) (read []string, rejected int, refused bool) {
	t.Helper()
	rr, err := NewRecipientReader(strings.NewReader(file), charset)
	for err == nil {
		var row Recipient
		if row, err = rr.Read(); err == nil {
			read = append(read, row.Params["name"])
			continue
		}
		var of *CSVError
		if errors.As(err, &of) && of.OfRow() {
			rejected, err = rejected+1, nil
		}
	}
	var of *CSVError
	if !errors.Is(err, io.EOF) && !errors.As(err, &of) {
		t.Fatal(err)
	}
	return read, rejected, !errors.Is(err, io.EOF)
}

func inEncoding(label, text string) (string, bool) {
	e, err := htmlindex.Get(label)
	if err != nil {
		return "", false
	}
	out, err := e.NewEncoder().String(text)
	if err != nil {
		return "", false
	}
	back, err := e.NewDecoder().String(out)
	return out, err == nil && back == text
}

func TestAFileOfOneRowIsReadAsItsTextOrNotAtAll(t *testing.T) {
	t.Parallel()
	right := 0
	for _, label := range labels {
		for _, name := range names {
			file, ok := inEncoding(label, "to,name\r\n09010000010,"+name+"\r\n")
			if !ok {
				continue
			}
			read, _, _ := texts(t, file, "")
			for _, got := range read {
				if got != name {
					t.Errorf("%s in %s is read as %q", name, label, got)
				}
			}
			right += len(read)
			if read, rejected, refused := texts(t, file, label); refused || rejected > 0 || !slices.Equal(read, []string{name}) {
				t.Errorf("%s in %s, declared as such: %q, %d rejected, refused %v", name, label, read, rejected, refused)
			}
		}
	}
	if right < len(names) {
		t.Errorf("only %d files were read", right)
	}
}

func TestAFileOfManyRowsIsReadAsItsTextsOrNotAtAll(t *testing.T) {
	t.Parallel()
	for _, label := range labels {
		var rows []string
		file := "to,name\n"
		for _, name := range names {
			row, ok := inEncoding(label, name)
			if !ok {
				continue
			}
			if label == "iso-2022-jp" && strings.ContainsAny(row, "\",") {
				continue
			}
			file += "09010000010," + row + "\n"
			rows = append(rows, name)
		}
		read, rejected, refused := texts(t, file, "")
		for _, got := range read {
			if !slices.Contains(rows, got) {
				t.Errorf("%s has a row that is read as %q", label, got)
			}
		}
		if !refused && len(read)+rejected != len(rows) {
			t.Errorf("%s has %d rows, of which %d are read and %d rejected", label, len(rows), len(read), rejected)
		}
	}
}

func TestAFilePutTogetherOfTwoEncodingsHasBadRowsAndNoOtherTexts(t *testing.T) {
	t.Parallel()
	for _, most := range []string{"utf-8", "shift_jis"} {
		for _, label := range labels {
			for _, name := range names {
				row, ok := inEncoding(label, name)
				if !ok || label == "iso-2022-jp" {
					continue
				}
				all := []string{"佐藤", "鈴木", "高橋 さくら", "山田 太郎"}
				rest, _ := inEncoding(most, "1,佐藤\n2,鈴木\n3,高橋 さくら\n4,山田 太郎\n")
				read, rejected, refused := texts(t, "to,name\n"+rest+"5,"+row+"\n", "")
				for _, got := range read {
					if got != name && !slices.Contains(all, got) {
						t.Errorf("a row of %s, %s, in a file of %s is read as %q", label, name, most, got)
					}
				}
				if !refused && len(read)+rejected != 5 {
					t.Errorf("%s in %s: %d read, %d rejected", label, most, len(read), rejected)
				}
			}
		}
	}
}

// The rule that keeps rows of other encodings out must let through what people in Japan write.
func TestRowsOfShiftJISAreRead(t *testing.T) {
	t.Parallel()
	rows := []string{
		"佐藤", "渡邊", "髙橋", "齋藤", "森", "さくら", "マリア", "小林 ｺﾊﾞﾔｼ", "山田,ﾔﾏﾀﾞ ﾀﾛｳ", "John　Smith", "ＡＢＣ商会", "（株）森", "10時～11時", "①番", "ハイツB,2階",
		"Smith", "O'Brien・ジュン", "診療予約のお知らせです。", "会社ABC",
	}
	for _, row := range rows {
		encoded, ok := inEncoding("shift_jis", row)
		if !ok {
			t.Fatalf("%s is not in Shift_JIS", row)
		}
		file, _ := inEncoding("shift_jis", "to,name,note\n1,佐藤,\n2,鈴木,\n")
		read, rejected, refused := texts(t, file+"3,"+encoded+"\n", "")
		name, _, _ := strings.Cut(row, ",")
		if refused || rejected > 0 || !slices.Equal(read, []string{"佐藤", "鈴木", name}) {
			t.Errorf("%s: %q, %d rejected, refused %v", row, read, rejected, refused)
		}
	}
}

func TestOneStrayByteIsOneBadRow(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"to,name\n090-7771-0001,佐藤\n090-7771-0002,鈴木\n090-7771-0003,\x8d\x82\x8b\xb4\n": "[佐藤 鈴木] 1 false",
		"to,name\n1,Pérez\n2,Müller\n3,P\xe9rez\n":                                      "[Pérez Müller] 1 false",
		"to,name\r\n09010000010,P\xe9rez\r\n":                                           "[] 0 true",
		"to,name\n1,\x8d\xb2\x93\xa1\n2,\xf0\x40\n3,\x97\xe9\x96\xd8\n":                 "[佐藤 鈴木] 1 false",
		"to,name\n1,佐藤\n" + strings.Repeat("2,a\n", 30_000) + "3,\xff\n":                "",
	} {
		read, rejected, refused := texts(t, file, "")
		if want == "" {
			if refused || rejected != 1 || len(read) != 30_001 {
				t.Errorf("%d read, %d rejected, refused %v", len(read), rejected, refused)
			}
			continue
		}
		if got := fmt.Sprint(read, rejected, refused); got != want {
			t.Errorf("%q: %s, want %s", file, got, want)
		}
	}
}

func TestADeclaredCharset(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ file, charset, want string }{
		{"to,name\n1,P\xe9rez\n2,\x81\n", "latin1", "[Pérez] 1 false"},
		{"to,name\n1,P\xe9rez\n", "utf-8", "[] 1 false"},
		{"to,name\n1,佐藤\n", "windows-1252", "[] 0 true"},
		{"\uFEFFto,name\n1,佐藤\n", "windows-1252", "[佐藤] 0 false"},
		{"to,name\n1,a\n", "klingon", "[] 0 true"},
		{"to,name\n1,\x8d\xb2\x93\xa1\n", "CP932", "[佐藤] 0 false"},
		{"t\x00o\x00,\x00n\x00a\x00m\x00e\x00\n\x001\x00,\x00\xe9\x00\n\x00", "utf-16le", "[é] 0 false"},
	} {
		read, rejected, refused := texts(t, test.file, test.charset)
		if got := fmt.Sprint(read, rejected, refused); got != test.want {
			t.Errorf("%q as %s: %s, want %s", test.file, test.charset, got, test.want)
		}
	}
}
