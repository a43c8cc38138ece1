package v1_test

import (
	"net/http"
	"testing"

	"github.com/todoku/todoku/api/apitest"
)

func TestJSONMayBeginWithAByteOrderMark(t *testing.T) {
	a := apitest.Start(t)
	for path, body := range map[string]string{
		"/api/v1/notifications": `{"channel": "SMS", "to": "090-1234-5678", "body": "x"}`,
		batches:                 `{"channel": "SMS", "body": "x", "recipients": [{"to": "090-1234-5678"}, {"to": "090-1234-5679"}]}`,
		lists:                   `{"name": "marked", "members": [{"to": "090-1234-5678"}]}`,
	} {
		if got := a.Do("POST", path, "\uFEFF"+body); got.Status != http.StatusAccepted && got.Status != http.StatusCreated {
			t.Errorf("%s answers %d %s", path, got.Status, got.Text)
		}
	}
}

func TestARejectedRowTakesNobodyOffAList(t *testing.T) {
	a := apitest.Start(t)
	at := createList(t, a, `{"name": "l", "members": [{"to": "090-1234-5678"}, {"to": "090-1234-5679"}]}`) + "/members?mode=replace"
	file := "to\n09012345678\n0901234567x\n"
	first := a.Do("POST", at, file, asCSV)
	wantReport(t, first, "0 0 1 0 0 1 2")
	if got := first.Body["not_removed"]; got != 1.0 {
		t.Errorf("not removed: %v", got)
	}
	wantReport(t, a.Do("POST", at+"&remove_with_rejected=true", file, asCSV), "0 0 1 1 0 1 1")
}
