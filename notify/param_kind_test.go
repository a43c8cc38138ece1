package notify_test

import (
	"strings"
	"testing"

	"github.com/todoku/todoku/notify"
)

func TestKindsTellRightValuesFromWrong(t *testing.T) {
	for kind, values := range map[notify.ParamKind]struct{ right, wrong []string }{
		notify.ParamText:   {[]string{"", "anything", "25:00", strings.Repeat("x", 1000)}, nil},
		notify.ParamNumber: {[]string{"3", "1500", "1,500", "-0.5", "+81", "１，５００"}, []string{"", "three", "1,50", "0x10", "1e6", "三", "3 ", strings.Repeat("1", 65)}},
		notify.ParamDate:   {[]string{"2026-04-01", "2026/4/1", "2026.4.1", "2026年4月1日", "4/1", "4月1日", "２月２９日", "2028-02-29"}, []string{"", "tomorrow", "2026-02-31", "2/30", "2027-02-29", "13/1", "10:30"}},
		notify.ParamTime:   {[]string{"10:30", "9:05", "23:59:59", "00:00", "10時", "10時30分", "１０：３０"}, []string{"", "25:00", "10:60", "10:30:61", "24:00", "noon", "10", "4/1"}},
		"color":            {nil, []string{"red"}},
	} {
		for _, value := range values.right {
			if !kind.Fits(value) {
				t.Errorf("%q is no %s", value, kind)
			}
		}
		for _, value := range values.wrong {
			if kind.Fits(value) {
				t.Errorf("%q is a %s", value, kind)
			}
		}
	}
	for _, kind := range notify.ParamKinds {
		if !kind.Fits(kind.Example("name")) {
			t.Errorf("the example of %s does not fit", kind)
		}
	}
}

func TestWrongValuesAreNamedAndNotRepeated(t *testing.T) {
	kinds := map[string]notify.ParamKind{"time": notify.ParamTime, "date": notify.ParamDate, "count": notify.ParamNumber, "absent": notify.ParamTime}
	wrong := notify.CheckKinds(kinds, map[string]string{" time ": "25:00", "date": "2026-02-31", "count": "3", "name": "x"})
	if len(wrong) != 2 || wrong[0].Name != "date" || wrong[1].Name != "time" {
		t.Fatalf("wrong are %v", wrong)
	}
	for _, w := range wrong {
		if text := w.Error(); strings.Contains(text, "25:00") || strings.Contains(text, "02-31") || !strings.Contains(text, w.Name) {
			t.Errorf("the error is %q", text)
		}
	}
}
