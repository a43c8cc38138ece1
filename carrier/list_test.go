package carrier

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/todoku/todoku/notify"
)

const messagesPath = "/2010-04-01/Accounts/" + testAccount + "/Messages.json"

func numbered(prefix string, n int) string { return fmt.Sprintf("%s%032d", prefix, n) }

// listPage writes a page of messages with the SIDs first to last, and where the next one is.
func listPage(first, last int, next string) string {
	var rows []string
	for n := first; n <= last; n++ {
		rows = append(rows, `{"sid":"`+numbered("SM", n)+`","status":"delivered","num_segments":"1"}`)
	}
	nextURI := "null"
	if next != "" {
		nextURI = strconv.Quote(next)
	}
	return `{"messages":[` + strings.Join(rows, ",") + `],"page":0,"page_size":2,"next_page_uri":` + nextURI + `}`
}

func collect(ctx context.Context, c *Client, f Filter) (sids []string, pages int, err error) {
	for page, err := range c.List(ctx, notify.SMS, f) {
		if err != nil {
			return sids, pages, err
		}
		pages++
		for _, r := range page {
			sids = append(sids, r.SID)
		}
	}
	return sids, pages, nil
}

func TestListAsksByTheFilter(t *testing.T) {
	tokyo := time.FixedZone("JST", 9*60*60)
	filter := Filter{
		To: testTo, From: testFrom,
		SentAfter:  time.Date(2026, 1, 2, 9, 0, 0, 999, tokyo),
		SentBefore: time.Date(2026, 1, 3, 9, 0, 0, 1, tokyo),
		PageSize:   20,
	}
	for name, tc := range map[string]struct {
		channel notify.Channel
		filter  Filter
		path    string
		query   url.Values
	}{
		"messages": {notify.SMS, filter, "Messages.json", url.Values{
			"To": {testTo}, "From": {testFrom}, "PageSize": {"20"},
			"DateSent>": {"2026-01-02T00:00:00Z"}, "DateSent<": {"2026-01-03T00:00:01Z"}}},
		"calls": {notify.Call, filter, "Calls.json", url.Values{
			"To": {testTo}, "From": {testFrom}, "PageSize": {"20"},
			"StartTime>": {"2026-01-02T00:00:00Z"}, "StartTime<": {"2026-01-03T00:00:01Z"}}},
		"everything": {notify.SMS, Filter{}, "Messages.json", url.Values{"PageSize": {"1000"}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if !strings.HasSuffix(r.URL.Path, "/"+tc.path) || !reflect.DeepEqual(r.URL.Query(), tc.query) {
					t.Errorf("%s %v\nwant %v", r.URL.Path, r.URL.Query(), tc.query)
				}
				answer(w, http.StatusOK, `{"messages":[],"calls":[],"next_page_uri":null}`)
			})
			for _, err := range c.List(t.Context(), tc.channel, tc.filter) {
				if err != nil {
					t.Fatal(err)
				}
				t.Error("an empty list has a page")
			}
		})
	}
}

func TestListFollowsTheNextPageToTheLetter(t *testing.T) {
	// twilio-go would take ".123" out of the token and sort the parameters.
	second := messagesPath + "?PageToken=PASM.123&Page=1&To=%2B1"
	server := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.RequestURI() {
		case "/prefix" + messagesPath + "?PageSize=2":
			answer(w, http.StatusOK, listPage(1, 2, second))
		case "/prefix" + second:
			answer(w, http.StatusOK, listPage(2, 3, messagesPath+"?Page=2")) // row 2 moved
		case "/prefix" + messagesPath + "?Page=2":
			answer(w, http.StatusOK, listPage(1, 0, messagesPath+"?Page=3")) // nothing, but not the end
		case "/prefix" + messagesPath + "?Page=3":
			answer(w, http.StatusOK, listPage(4, 4, ""))
		default:
			t.Errorf("asked for %s", r.URL.RequestURI())
			answer(w, http.StatusNotFound, "")
		}
	}
	c := serve(t, server, func(o *Options) { o.APIURL += "/prefix" })
	sids, pages, err := collect(t.Context(), c, Filter{PageSize: 2})
	want := []string{numbered("SM", 1), numbered("SM", 2), numbered("SM", 3), numbered("SM", 4)}
	if err != nil || !reflect.DeepEqual(sids, want) || pages != 3 {
		t.Errorf("%d pages of %v, %v; want 3 of %v", pages, sids, err, want)
	}
}

// The row that a page token names was sent in the meantime, so the list starts from the top again.
func TestAListSurvivesRowsThatMove(t *testing.T) {
	pages := []string{"", listPage(1, 2, messagesPath+"?Page=1"), listPage(3, 4, messagesPath+"?Page=2"),
		listPage(4, 4, messagesPath+"?Page=3"), listPage(1, 2, messagesPath+"?Page=4"), listPage(3, 3, messagesPath+"?Page=5"),
		listPage(5, 6, "")}
	requests := 0
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests++
		answer(w, http.StatusOK, pages[requests])
	})
	sids, _, err := collect(t.Context(), c, Filter{})
	if err != nil || len(sids) != 6 {
		t.Errorf("%v, %v; want 6 SIDs", sids, err)
	}
}

func TestAListIsCompleteOrEndsWithAnError(t *testing.T) {
	for name, second := range map[string]string{
		"the second page breaks off":      `{"messages":[{"sid":"SM`,
		"the second page is no page":      `{}`,
		"the second page is null":         `null`,
		"the second page has null rows":   `{"messages":null,"next_page_uri":null}`,
		"a row has no SID":                `{"messages":[{"status":"sent"}],"next_page_uri":null}`,
		"a row has a call's SID":          `{"messages":[{"sid":"` + testCall + `","status":"sent"}],"next_page_uri":null}`,
		"a row has no status":             `{"messages":[{"sid":"` + testMessage + `"}],"next_page_uri":null}`,
		"the same page again and again":   listPage(1, 2, messagesPath+"?Page=1"),
		"a circle with changing numbers":  "CIRCLE",
		"the next page is another list":   listPage(3, 4, "/2010-04-01/Accounts/"+testAccount+"/Calls.json?Page=2"),
		"the next page is another server": listPage(3, 4, "//elsewhere.example.com/Messages.json?Page=2"),
		"the next page is on a host":      listPage(3, 4, "https://elsewhere.example.com"+messagesPath+"?Page=2"),
		"the second page lacks its rows":  `{"next_page_uri":null,"uri":"` + messagesPath + `"}`,
		"the next page is relative":       listPage(3, 4, "Messages.json?Page=2"),
		"the next page is not a URL":      listPage(3, 4, "%zz"),
		"a recipient that is no text":     `{"messages":[{"sid":"` + testMessage + `","status":"sent","to":15555550123}]}`,
		"a 500":                           "500",
	} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				requests++
				switch {
				case requests == 1:
					answer(w, http.StatusOK, listPage(1, 2, messagesPath+"?Page=1"))
				case second == "CIRCLE":
					answer(w, http.StatusOK, listPage(1, 2, fmt.Sprintf("%s?Page=%d", messagesPath, requests)))
				case second == "500":
					answer(w, http.StatusInternalServerError, `{"code":20500,"message":"Internal","status":500}`)
				default:
					answer(w, http.StatusOK, second)
				}
			})
			_, _, err := collect(t.Context(), c, Filter{To: testTo})
			expect(t, err, SafeToRetry, nil)
			leaksNothing(t, err, sms())
			if requests > 5 {
				t.Errorf("%d requests before it was noticed", requests)
			}
		})
	}
}

func TestAListStopsWhereItsReaderStops(t *testing.T) {
	requests := 0
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests++
		answer(w, http.StatusOK, listPage(requests*2-1, requests*2, fmt.Sprintf("%s?Page=%d", messagesPath, requests)))
	})
	for page, err := range c.List(t.Context(), notify.SMS, Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if page[0].SID == numbered("SM", 3) {
			break
		}
	}
	if requests != 2 {
		t.Errorf("%d pages were read, 2 were wanted", requests)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, err := range c.List(ctx, notify.SMS, Filter{}) {
		cancel()
		if err != nil {
			expect(t, err, SafeToRetry, context.Canceled)
		}
	}
}

func TestListRefusesWhatTwilioWould(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) { t.Error("a request was sent") })
	for _, tc := range []struct {
		channel notify.Channel
		filter  Filter
	}{{notify.SMS, Filter{PageSize: 1001}}, {notify.SMS, Filter{PageSize: -1}}, {notify.LINEText, Filter{}}} {
		for _, err := range c.List(t.Context(), tc.channel, tc.filter) {
			expect(t, err, Request, nil)
		}
	}
}
