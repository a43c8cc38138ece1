package notify

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestNoRowIsLostInAnother(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"to,name\n09010000010,\"A\n09010000011,B\n09010000012,\"C\"\n09010000013,D\n":       CSVUnclosedQuote,
		"to,name\n09010000010,\"A\n09010000011,B\n09010000012,C\"\n09010000013,D\n":         CSVUnclosedQuote,
		"name,to,x\n\"A,09010000010,X\nB\",09010000011,Y\n":                                 CSVUnclosedQuote,
		"to\n\"09010000010\n09010000011\"\n":                                                CSVUnclosedQuote,
		"to,name\n09010000010,\"A\n09010000011\"\n":                                         "[] [1 " + CSVRowSeveralRows + "]",
		"to,name\n09010000010,\"A\n電話０９０－１０００－００１１\"\n09010000012,B\n":                      "[2] [1 " + CSVRowSeveralRows + "]",
		"to,name\n09010000010,\"A\non 2026-12-01\"\n":                                       "[1] []",
		"to,name\n09010000010,5\" screen\n09010000011,B\n":                                  "[2] [1 " + CSVRowMisplacedMark + "]",
		"to,name\r09010000010,A\r09010000011,B\r":                                           "[1 2] []",
		"to,name\r\n09010000010,A\r09010000011,B\n09010000012,C":                            "[1 2 3] []",
		"to,氏名,メモ\n09010000010,佐藤,\n09010000011,佐藤\n":                                       "[1 2] []",
		"to,氏名,,\n09010000010,佐藤,,\n09010000011,佐藤,x\n":                                     "[1] [2 " + CSVRowUnnamedValue + "]",
		"to,name\n" + strings.Repeat(",\n \n\"\",\"\"\n\u3000,\n", 300) + "09010000010,A\n": "[1201] []",
		"to,name\n09010000010,A\n\uFEFF09010000011,B\n":                                     "[1 2] []",
	} {
		rows, bad, err := readRecipients(strings.NewReader(file))
		var good []int
		for _, row := range rows {
			good = append(good, row.Row)
		}
		got := fmt.Sprint(good, bad)
		if bad != nil {
			got = fmt.Sprintf("%v %s", good, fmt.Sprintf("[%s]", strings.Join(bad, ", ")))
		}
		var whole *CSVError
		if errors.As(err, &whole) {
			got = whole.Code
		}
		if got != want {
			t.Errorf("%.80q: %s, want %s", file, got, want)
		}
	}
}

func TestACellThatWasExportedIsImportedAsItWas(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"=10%引き", "'=1", "''=1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", "\nx", " =1", "\u3000=1", "\"=1", "＝1", "＋1", "－1", "＠x", " ＝1", "'x", "x", "",
	} {
		guarded := HarmlessCell(text)
		if got := PlainCell(guarded); got != text {
			t.Errorf("%q becomes %q, and then %q", text, guarded, got)
		}
		if text != "" && text != "x" && text != "'x" && !strings.HasPrefix(guarded, "'") {
			t.Errorf("%q is not guarded", text)
		}
	}
	rows, _, err := readRecipients(strings.NewReader("to,x\n'+819010000010,'=10%引き\n"))
	if err != nil || len(rows) != 1 || rows[0].To != "+819010000010" || rows[0].Params["x"] != "=10%引き" {
		t.Errorf("%+v, error %v", rows, err)
	}
}
