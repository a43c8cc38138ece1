package v1

import (
	"io"
	"strings"
	"testing"

	"github.com/todoku/todoku/notify"
)

// rowsOf gives rows, and panics in the place of one that has no number.
type rowsOf struct{ left []notify.Recipient }

func (r *rowsOf) Read() (notify.Recipient, error) {
	if len(r.left) == 0 {
		return notify.Recipient{}, io.EOF
	}
	row := r.left[0]
	r.left = r.left[1:]
	if row.To == "" {
		panic("090-1234-5678 cannot be read")
	}
	return row, nil
}

func TestPanicOverARowIsAnErrorOfItsRequest(t *testing.T) {
	t.Parallel()
	check := func(r notify.Recipient) checkedRow[string] {
		if r.To == "bad" {
			panic("090-1234-5678 cannot be checked")
		}
		return checkedRow[string]{row: r.To}
	}
	for name, rows := range map[string][]notify.Recipient{
		"while it is checked": {{To: "1"}, {To: "bad"}},
		"while it is read":    {{To: "1"}, {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checked := checkRows(t.Context(), &rowsOf{rows}, check)
			if row, ok, err := checked.next(); row != "1" || !ok || err != nil {
				t.Errorf("the row before it is %q, %v, %v", row, ok, err)
			}
			_, ok, err := checked.next()
			if ok || err == nil || !strings.Contains(err.Error(), "panic") || strings.Contains(err.Error(), "5678") {
				t.Errorf("it ends with %v, %v", ok, err)
			}
		})
	}
}

func TestLargeRowsAreCheckedAFewAtATime(t *testing.T) {
	t.Parallel()
	rows := make([]notify.Recipient, 64)
	for i := range rows {
		rows[i] = notify.Recipient{To: strings.Repeat("9", bytesInPart)}
	}
	source := &rowsOf{rows}
	checked := checkRows(t.Context(), source, func(r notify.Recipient) checkedRow[int] { return checkedRow[int]{row: len(r.To)} })
	if part := <-<-checked.parts; len(part) != 1 {
		t.Errorf("a part has %d rows of %d bytes", len(part), bytesInPart)
	}
}
