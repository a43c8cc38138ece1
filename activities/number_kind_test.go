package activities_test

import (
	"testing"

	"github.com/todoku/todoku/activities"
	"github.com/todoku/todoku/notify"
)

func TestACallThatWasAcceptedToAPremiumRateNumberIsNotMade(t *testing.T) {
	b := newBench(t)
	for _, to := range []string{"+81990123456", "+81570012345", "+812012345678"} {
		ref := b.accept(notify.Call, to, "x")
		next, err := b.Send(t.Context(), ref)
		b.want(ref, next, err, activities.Done, notify.Failed)
		if n := b.row(ref); n.FailureCode == nil || *n.FailureCode != notify.CodeNumberKind {
			t.Errorf("%s: %+v", to, n)
		}
	}
	b.Terms.NumberKinds = []notify.PhoneKind{notify.CompanyWide}
	ref := b.accept(notify.Call, "+81570012345", "x")
	if _, err := b.Send(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if got := b.creates(); got != 1 {
		t.Errorf("%d calls were made, want the allowed one", got)
	}
}
