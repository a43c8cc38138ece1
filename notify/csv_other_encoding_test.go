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

// combined are names of a family name alone, and with each of the given names.
func combined(family, given string) (names []string) {
	for _, f := range strings.Fields(family) {
		names = append(names, f)
		for _, g := range strings.Fields(given) {
			names = append(names, f+g)
		}
	}
	return names
}

func TestNamesOfManyCountriesAreReadAsTheyAreOrNotAtAll(t *testing.T) {
	t.Parallel()
	japanese := combined("佐藤 鈴木 高橋 田中 伊藤 渡辺 山本 中村 小林 加藤 吉田 山田 林 森 原 関 星 堀 辻 谷 岡 島 泉 畑 浜 旭 北 南 東 西 齋藤 渡邊 髙橋",
		"健 誠 愛 舞 楓 太郎 花子 さくら ユウキ")
	chinese := combined("王 李 张 刘 陈 杨 赵 吴 周 徐 孙 马 朱 胡 郭 何 高 林 罗 郑 梁 谢 宋 唐 许 韩 冯 邓 曹 彭 卢 陆 鲁 毛 薛 魏 韦 肖 邱 邹 龚 邵 钱 汤 孔 白 濮 滕",
		"伟 芳 娜 静 敏 强 磊 军 洋 勇 艳 杰 娟 涛 明 超 雪 维 小平 小雪 维伟 晓新 欣")
	taiwan := combined("陳 林 黃 張 李 王 吳 劉 蔡 楊 許 鄭 謝 洪 郭 邱 曾 廖 賴 徐 周 葉 蘇 莊 江 呂 何 羅 高 蕭 潘 簡 朱 鍾 彭 游 詹 胡 施 沈 余 趙 盧 梁 顏 柯 孫 魏 翁 戴",
		"志明 淑芬 美玲 家豪 雅婷 怡君 宗翰 俊傑 偉 強 麗 明 芬")
	korean := combined("김 이 박 최 정 강 조 윤 장 임 한 오 서 신 권 황 안 송 전 홍 유 고 문 양 손 배 백 허 남 심 노 하 곽 성 차 주 우 구 민 류 나 진 지 엄 채 원 천 방 공 현",
		"민준 서연 지훈 수빈 예은 도윤 준 현 영 수 철")
	russian := strings.Fields("Иван Мария ОЛЬГА ПЁТР Сергей ЕЛЕНА Юлия Яна ИЯ Лев Илья Андрей ТАТЬЯНА Ян Ева Жанна Эмма Юрий ЯКОВ Глеб ФЁДОР Ли Зоя")
	greek := strings.Fields("ΜΑΡΙΑ Γιώργος ΝΙΚΟΣ Ελένη ΑΝΝΑ Κώστας ΗΡΩ Λία Ρέα Ίων Άννα Εύα ΖΩΗ ΣΟΦΙΑ Όλγα Ήβη Ξένια")
	latin := strings.Fields("José Zoë René Léa Chloé Éva Éric Óscar Ángel Íñigo Åsa Øyvind Ærø Jörg Müller Weiß Öz Çetin Žan Šime Ñu Né Élise Ås Bø Noël Åke João Ö å")
	rest := []string{"佐藤 花子", "鈴木 一郎"}
	first, second := written(t, "shift_jis", rest[0]), written(t, "shift_jis", rest[1])
	for label, names := range map[string][]string{
		"shift_jis": japanese, "euc-jp": japanese, "gbk": chinese, "gb18030": taiwan, "big5": taiwan, "euc-kr": korean, "windows-1251": russian,
		"windows-1253": greek, "windows-1252": latin, "macintosh": latin, "utf-8": slices.Concat(japanese, chinese, taiwan, korean, russian, greek, latin),
	} {
		rejected := 0
		for _, name := range names {
			row, ok := inEncoding(label, name)
			if !ok {
				continue // the encoding does not have it
			}
			for file, format := range map[string]string{
				"alone": "to,name\n1,%s\n", "in UTF-8": "to,name\n1,佐藤 花子\n2,%s\n3,鈴木 一郎\n", "in Shift_JIS": "to,name\n1," + first + "\n2,%s\n3," + second + "\n",
			} {
				read, _, _ := texts(t, fmt.Sprintf(format, row), "")
				for _, got := range read {
					if got != name && !slices.Contains(rest, got) {
						t.Errorf("%s, %s in %s, is read as %q", name, file, label, got)
					}
				}
				own := label == "shift_jis" && file == "in Shift_JIS" || label == "utf-8" && file == "in UTF-8"
				if own && !slices.Contains(read, name) {
					rejected++
				}
			}
		}
		if rejected > len(names)/100 {
			t.Errorf("%d of %d names in %s are rejected in files of their own encoding", rejected, len(names), label)
		}
	}
}
