package cli

import (
	"strings"
	"testing"
)

func TestColumnsAlignInJapaneseToo(t *testing.T) {
	rows := newTable("NAME", "BODY")
	rows.add("リマインダー", "a")
	rows.add("reminder", "b")
	rows.add("か\u3099", "c") // with a combining mark
	var out strings.Builder
	if err := rows.print(&out); err != nil {
		t.Fatal(err)
	}
	want := "NAME          BODY\n" +
		"リマインダー  a\n" +
		"reminder      b\n" +
		"か\u3099            c\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
