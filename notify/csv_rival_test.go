package notify

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding/unicode"
)

// writtenIn are names of one to four characters, by the encodings that people write them in.
var writtenIn = map[string][]string{
	"utf-8":          {"林", "佐藤", "さくら", "山田太郎", "ﾀﾛｳ", "毛", "王伟", "魏维伟", "김", "김철수", "Öz", "Zoë", "é", "Лев", "Ия", "ИВАН", "Ρέα", "ΖΩΗ", "Ňu"},
	"utf-8 bom":      {"林", "佐藤", "ﾀﾛｳ", "毛", "김철수", "Öz", "é", "Ия", "Ρέα"},
	"utf-16le":       {"林", "佐藤", "Öz", "Лев"},
	"utf-16be":       {"林", "佐藤", "Öz", "Лев"},
	"shift_jis":      {"林", "森", "佐藤", "山田", "山本", "さくら", "アイ", "山田太郎", "ﾀﾛｳ", "ﾔﾏﾀﾞ", "ｱｲ", "ﾐ", "濱", "髙"},
	"euc-jp":         {"林", "森", "藤", "谷", "佐藤", "山田", "中村", "鈴木", "高橋", "山田太郎", "長谷川", "さくら", "アイ", "ｶﾅ", "ﾀﾛｳ"},
	"iso-2022-jp":    {"林", "佐藤", "山田太郎", "さくら"},
	"windows-1252":   {"É", "é", "Öz", "Šu", "Zoë", "René", "Éva", "Åsa", "ÀÉ", "Žan", "’t O"},
	"windows-1251":   {"Я", "Ия", "Лев", "ЛЕВ", "ИВАН", "Иван", "ИВАНОВ", "ПЕТР", "Юлия", "ЁЖ", "Њ"},
	"windows-1253":   {"Ω", "ΖΩ", "Ρέα", "ΖΩΗ", "ΩΜΕΓΑ", "Εύα", "ΝΙΚΗ", "Άρης"},
	"gbk":            {"毛", "王", "李", "伟", "卢", "陆", "小平", "王伟", "李娜", "张伟", "魏维伟", "薛小雪", "谢雪", "欧阳小明", "濮阳", "陳", "張偉", "陳大文", "張强", "楊偉", "劉備", "趙雲", "孫權", "黃"},
	"big5":           {"陳", "林", "王", "小明", "陳大", "王小明", "林志玲", "歐陽小明", "李", "吳"},
	"euc-kr":         {"김", "이", "박", "최", "조", "김철수", "이영희", "최민호", "박", "채", "천", "남궁민수", "조정"},
	"macintosh":      {"É", "é", "Öz", "Zoë", "René", "Éva", "Éric", "Åsa", "ÀÉ", "Çelà"},
	"ibm866":         {"Лев", "ИВАН", "Иван"},
	"x-mac-cyrillic": {"Лев", "Иван"},
	"koi8-r":         {"Лев", "ИВАН", "Иван"},
	"windows-874":    {"สมชาย", "กมล", "ธนพล"},
	"iso-8859-5":     {"ЛЕВ", "Иван"},
}

// written is a text in an encoding. The encoder of WHATWG's EUC-JP has half-width kana; that of Big5 has what it can decode.
func written(t *testing.T, label, text string) string {
	t.Helper()
	var err error
	out, ok := text, true
	switch label {
	case "utf-8":
	case "utf-8 bom":
		out = "\uFEFF" + text
	case "utf-16le", "utf-16be":
		endian := unicode.LittleEndian
		if label == "utf-16be" {
			endian = unicode.BigEndian
		}
		out, err = unicode.UTF16(endian, unicode.IgnoreBOM).NewEncoder().String(text)
	default:
		out, ok = inEncoding(label, text)
	}
	if err != nil || !ok {
		t.Fatalf("%s cannot be written in %s: %v", text, label, err)
	}
	return out
}

func TestShortFilesAreReadAsTheirTextsOrNotAtAll(t *testing.T) {
	t.Parallel()
	for label, names := range writtenIn {
		for i, name := range names {
			for _, rows := range [][]string{{name}, {name, names[(i+1)%len(names)], names[(i+2)%len(names)]}} {
				file := "to,name\r\n"
				for n, row := range rows {
					file += fmt.Sprintf("0901000001%d,%s\r\n", n, row)
				}
				read, rejected, refused := texts(t, written(t, label, file), "")
				for _, got := range read {
					if !slices.Contains(rows, got) {
						t.Errorf("%q in %s is read as %q", rows, label, got)
					}
				}
				if !refused && len(read)+rejected != len(rows) {
					t.Errorf("%q in %s: %d are read and %d rejected", rows, label, len(read), rejected)
				}
			}
		}
	}
}

func TestARowOfAnotherEncodingIsReadAsItsTextOrNotAtAll(t *testing.T) {
	t.Parallel()
	files := map[string][]string{
		"utf-8":     {"佐藤 花子", "鈴木 一郎", "Pérez"},
		"shift_jis": {"佐藤 花子", "鈴木 一郎", "山田 さくら"},
	}
	for most, rows := range files {
		for label, names := range writtenIn {
			for _, name := range names {
				for at := range 3 {
					file := written(t, most, "to,name\r\n")
					for n, row := range rows {
						if n == at {
							file += written(t, label, "09010000019,"+name+"\r\n")
						}
						file += written(t, most, fmt.Sprintf("0901000001%d,%s\r\n", n, row))
					}
					read, rejected, refused := texts(t, file, "")
					for _, got := range read {
						if got != name && !slices.Contains(rows, got) {
							t.Errorf("a row of %s, %q, in a file of %s is read as %q", label, name, most, got)
						}
					}
					if !refused && len(read)+rejected < len(rows) {
						t.Errorf("a row of %s, %q, in a file of %s: %d are read and %d rejected", label, name, most, len(read), rejected)
					}
				}
			}
		}
	}
}

func TestCommonShortFilesAreRead(t *testing.T) {
	t.Parallel()
	for label, files := range map[string][][]string{
		"utf-8": {{"林"}, {"佐藤"}, {"さくら"}, {"김철수"}, {"王伟"}, {"Öz"}, {"Zoë"}, {"Лев"}, {"ИВАН"}, {"Εύα"}, {"สมชาย"}, {"محمد"}, {"ﾀﾛｳ"}, {"1º"}},
		"shift_jis": {
			{"佐藤"}, {"鈴木"}, {"高橋"}, {"田中"}, {"伊藤"}, {"渡辺"}, {"さくら"}, {"山田 太郎"}, {"吉田", "佐藤"}, {"佐藤", "林"}, {"山田", "森", "原"}, {"佐藤", "関", "谷", "柴", "北", "南", "辻", "堤"},
			{"佐藤 ｻﾄｳ ﾊﾅｺ", "鈴木 ｽｽﾞｷ"}, {"佐藤", "ﾔﾏﾀﾞ ﾀﾛｳ"}, {"佐藤", "ビルB1F 東京", "プA棟 東京都港区"},
		},
	} {
		for _, rows := range files {
			file := written(t, label, "to,name\r\n1,"+strings.Join(rows, "\r\n1,")+"\r\n")
			if read, _, _ := texts(t, file, ""); !slices.Equal(read, rows) {
				t.Errorf("%q in %s is read as %q", rows, label, read)
			}
		}
	}
}
