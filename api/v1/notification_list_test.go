package v1_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/todoku/todoku/api/apitest"
	"github.com/todoku/todoku/notify"
)

func items(t *testing.T, answer apitest.Answer) (found []string, next string) {
	t.Helper()
	all, ok := answer.Body["items"].([]any)
	if answer.Status != 200 || !ok {
		t.Fatalf("answer = %d %s", answer.Status, answer.Text)
	}
	for _, item := range all {
		found = append(found, item.(map[string]any)["id"].(string))
	}
	next, _ = answer.Body["next_cursor"].(string)
	return found, next
}

func TestTheListIsReadPageByPage(t *testing.T) {
	a := apitest.Start(t)
	var want []string
	for range 5 {
		want = slices.Insert(want, 0, accept(t, a, hello).String())
	}
	var got []string
	cursor, pages := "", 0
	for {
		page, next := items(t, a.Do("GET", send+"?limit=2&cursor="+cursor, ""))
		got, pages, cursor = append(got, page...), pages+1, next
		if next == "" {
			break
		}
	}
	if !slices.Equal(got, want) || pages != 3 {
		t.Errorf("%d pages have\n%v, want\n%v", pages, got, want)
	}
	if all, next := items(t, a.Do("GET", send, "")); len(all) != 5 || next != "" {
		t.Errorf("without a limit: %d, and then %q", len(all), next)
	}
}

func TestTheListIsFiltered(t *testing.T) {
	a := apitest.Start(t)
	plain := accept(t, a, hello).String()
	named := accept(t, a, `{"channel": "SMS", "to": "080-1234-5678", "body": "x", "reference": "visit & 7"}`).String()
	held := accept(t, a, `{"channel": "CALL", "to": "03-1234-5678", "body": "x"}`).String()
	failed := accept(t, a, hello)
	refuse(t, a, failed)
	senders, err := a.Store.Senders(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range senders {
		if s.Channel == notify.Call {
			if err := a.Store.StopSender(t.Context(), s.ID, false, "21606", "it cannot call"); err != nil {
				t.Fatal(err)
			}
		}
	}
	for query, want := range map[string][]string{
		"status=HELD":               {held},
		"status=ACCEPTED":           {named, plain},
		"status=FAILED,HELD":        {failed.String(), held},
		"status=FAILED&status=HELD": {failed.String(), held},
		"status=SUCCESS":            nil,
		"channel=CALL":              {held},
		"phone=" + url.QueryEscape("０８０－１２３４－５６７８"): {named},
		"phone=08012345678":               {named},
		"phone=%2B818012345678":           {named},
		"phone=08012345679":               nil,
		"reference=visit+%26+7":           {named},
		"channel=SMS&phone=09012345678":   {failed.String(), plain},
		"created_to=2020-01-01T00:00:00Z": nil,
		"created_from=" + url.QueryEscape(time.Now().Add(-time.Hour).Format(time.RFC3339)): {failed.String(), held, named, plain},
	} {
		if got, _ := items(t, a.Do("GET", send+"?"+query, "")); !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", query, got, want)
		}
	}
	if log := a.Log(); strings.Contains(log, "1234") {
		t.Error("the log has a number")
	}
	if page := a.Do("GET", send, ""); strings.Contains(page.Text, "8012345678") || !strings.Contains(page.Text, "*5678") {
		t.Errorf("numbers are not masked: %s", page.Text)
	}
	answer := a.Do("GET", send+"?status=LOST&channel=FAX&created_to=today&cursor=x", "")
	for _, name := range []string{"status: ", "channel: ", "created_to: ", "cursor: "} {
		if !strings.Contains(answer.Body["detail"].(string), name) {
			t.Errorf("the problem does not name %s%s", name, answer.Text)
		}
	}
}
