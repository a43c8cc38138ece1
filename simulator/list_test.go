package simulator_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// list returns the page at a path below the account: its JSON, and the recipients on it.
func (r *rig) list(collection string, query url.Values) (map[string]any, []string) {
	r.t.Helper()
	path := "/" + collection + ".json"
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return r.page("/2010-04-01/Accounts/" + testAccount + path)
}

func (r *rig) page(uri string) (map[string]any, []string) {
	r.t.Helper()
	status, page := r.do(r.request("GET", uri, ""))
	if status != http.StatusOK {
		r.t.Fatalf("GET %s: %d %v", uri, status, page)
	}
	records, ok := page["messages"].([]any)
	if !ok {
		records = page["calls"].([]any)
	}
	to := []string{}
	for _, record := range records {
		to = append(to, record.(map[string]any)["to"].(string))
	}
	return page, to
}

func numbers(from, to int) []string {
	var list []string
	for i := from; i >= to; i-- {
		list = append(list, fmt.Sprintf("+155501%05d", i))
	}
	return list
}

func (r *rig) sendMany(n int) {
	r.t.Helper()
	for i := 1; i <= n; i++ {
		r.sendMessage(map[string]string{"To": fmt.Sprintf("+155501%05d", i)})
	}
}

func TestListIsWalkedByNextPageURI(t *testing.T) {
	rig := start(t)
	rig.behave(`{"callback_delay_ms": 0}`)
	rig.sendMany(7)
	eventually(t, "all delivered", func() bool {
		return !slices.ContainsFunc(rig.items("messages"), func(m item) bool { return m.Status != "delivered" })
	})
	page, to := rig.list("Messages", url.Values{"PageSize": {"3"}, "From": {goodSender}})
	account := "/2010-04-01/Accounts/" + testAccount
	base := account + "/Messages.json?From=%2B15005550006&PageSize=3"
	last := page["messages"].([]any)[2].(map[string]any)["sid"].(string)
	want := map[string]any{
		"page": 0.0, "page_size": 3.0, "start": 0.0, "end": 2.0, "previous_page_uri": nil,
		"uri": base + "&Page=0", "first_page_uri": base + "&Page=0",
		"next_page_uri": base + "&Page=1&PageToken=PA" + last,
	}
	for name, value := range want {
		if page[name] != value {
			t.Errorf("%s is %v, want %v", name, page[name], value)
		}
	}
	all := to
	pages := 1
	for next := page["next_page_uri"]; next != nil; next = page["next_page_uri"] {
		page, to = rig.page(next.(string))
		all = append(all, to...)
		pages++
	}
	if pages != 3 || !slices.Equal(all, numbers(7, 1)) {
		t.Errorf("%d pages with %v", pages, all)
	}
	if page["start"] != 6.0 || page["end"] != 6.0 || page["page"] != 2.0 {
		t.Errorf("the last page goes from %v to %v", page["start"], page["end"])
	}
	if page, to = rig.page(page["previous_page_uri"].(string)); !slices.Equal(to, numbers(4, 2)) {
		t.Errorf("back on page %v there are %v", page["page"], to)
	}
}

func TestListWithoutAnything(t *testing.T) {
	rig := start(t)
	for _, collection := range []string{"Messages", "Calls"} {
		page, to := rig.list(collection, nil)
		if len(to) != 0 || page["end"] != 0.0 || page["page_size"] != 50.0 || page["next_page_uri"] != nil {
			t.Errorf("an empty list is %v", page)
		}
	}
}

func TestMessageListFilters(t *testing.T) {
	rig := start(t)
	rig.behave(`{"callback_delay_ms": 0, "outcomes": {"+15550100003": {"status": "queued"}}}`)
	rig.sendMany(3)
	rig.sendMessage(map[string]string{"To": "+15550100001", "From": "+15550100099"})
	eventually(t, "the others delivered", func() bool {
		delivered := 0
		for _, m := range rig.items("messages") {
			if m.Status == "delivered" {
				delivered++
			}
		}
		return delivered == 3
	})
	one, two, three := "+15550100001", "+15550100002", "+15550100003"
	now := time.Now().UTC()
	day := now.Format(time.DateOnly)
	at := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339) }
	for _, test := range []struct {
		name     string
		query    url.Values
		want     []string
		dateOnly bool // Twilio takes dates without a time, although its document says date-time
	}{
		{"all; what is not sent yet stands first", nil, []string{three, one, two, one}, false},
		{"to one", url.Values{"To": {one}}, []string{one, one}, false},
		{"to one that is not sent", url.Values{"To": {three}}, []string{three}, false},
		{"to nobody", url.Values{"To": {"+15550100009"}}, []string{}, false},
		{"from one", url.Values{"From": {"+15550100099"}}, []string{one}, false},
		{"sent that day", url.Values{"DateSent": {day}}, []string{one, two, one}, true},
		{"sent on that time's day", url.Values{"DateSent": {at(0)}}, []string{one, two, one}, false},
		{"sent the day before", url.Values{"DateSent": {now.AddDate(0, 0, -1).Format(time.DateOnly)}}, []string{}, true},
		{"sent since", url.Values{"DateSent>": {at(-time.Minute)}}, []string{one, two, one}, false},
		{"sent in the future", url.Values{"DateSent>": {at(time.Minute)}}, []string{}, false},
		{"sent until", url.Values{"DateSent<": {at(time.Minute)}}, []string{one, two, one}, false},
		{"sent until long ago", url.Values{"DateSent<": {at(-time.Minute)}}, []string{}, false},
		{"sent until that day's end", url.Values{"DateSent<": {day}}, []string{one, two, one}, true},
		{"a window, to one", url.Values{"To": {one}, "DateSent>": {at(-time.Minute)}, "DateSent<": {at(time.Minute)}},
			[]string{one, one}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			checked := rig.client.Transport.(specChecker)
			defer func() { rig.client.Transport = checked }()
			if test.dateOnly {
				rig.client.Transport = checked.next
			}
			if _, to := rig.list("Messages", test.query); !slices.Equal(to, test.want) {
				t.Errorf("listed %v, want %v", to, test.want)
			}
		})
	}
}

func TestCallListFilters(t *testing.T) {
	rig := start(t)
	rig.behave(`{"callback_delay_ms": 0, "outcomes": {
		"+15550100002": {"status": "busy"}, "+15550100003": {"status": "queued"}}}`)
	one, two, three := "+15550100001", "+15550100002", "+15550100003"
	for _, to := range []string{one, two, three} {
		rig.makeCall(map[string]string{"To": to})
	}
	eventually(t, "two have ended", func() bool {
		calls := rig.items("calls")
		return calls[0].Status == "completed" && calls[1].Status == "busy"
	})
	past := time.Now().UTC().Add(-time.Minute).Format(time.RFC3339)
	for _, test := range []struct {
		name  string
		query url.Values
		want  []string
	}{
		{"all", nil, []string{three, two, one}},
		{"to one", url.Values{"To": {one}}, []string{one}},
		{"from nobody", url.Values{"From": {one}}, []string{}},
		{"busy", url.Values{"Status": {"busy"}}, []string{two}},
		{"started since", url.Values{"StartTime>": {past}}, []string{two, one}},
		{"started until", url.Values{"StartTime<": {past}}, []string{}},
		{"ended since", url.Values{"EndTime>": {past}}, []string{two, one}},
		{"of another call", url.Values{"ParentCallSid": {"CA" + strings.Repeat("0", 32)}}, []string{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, to := rig.list("Calls", test.query); !slices.Equal(to, test.want) {
				t.Errorf("listed %v, want %v", to, test.want)
			}
		})
	}
}

func TestListRefusals(t *testing.T) {
	rig := start(t)
	sid := rig.sendMessage(nil)["sid"].(string)
	for name, query := range map[string]string{
		"a page without its token":     "Page=1",
		"a token that is none":         "Page=1&PageToken=PA",
		"a token of nobody":            "Page=1&PageToken=PASM00000000000000000000000000000000",
		"a token of another direction": "Page=1&PageToken=PX" + sid,
		"a query that cannot be read":  "To=%zz",
		"a date that is none":          "DateSent=2026-02-30",
	} {
		t.Run(name, func(t *testing.T) {
			status, body := rig.do(rig.request("GET", "/2010-04-01/Accounts/"+testAccount+"/Messages.json?"+query, ""))
			checkFailure(t, status, body, http.StatusBadRequest, 20001)
		})
	}
}

// TestNoMessageIsMissedWhenItIsSentBetweenTwoPages walks while messages leave the queue.
func TestNoMessageIsMissedWhenItIsSentBetweenTwoPages(t *testing.T) {
	for name, filter := range map[string]url.Values{"the whole list": {}, "one number's": {"To": {someone}}} {
		t.Run(name, func(t *testing.T) {
			rig := start(t)
			rig.behave(`{"latency_ms": 0, "callback_delay_ms": 0}`)
			want := make(map[string]bool)
			for range 6 {
				created := rig.sendMessage(map[string]string{
					"From": "", "MessagingServiceSid": testService, "ScheduleType": "fixed",
					"SendAt": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
				})
				want[created["sid"].(string)] = true
			}
			filter.Set("PageSize", "2")
			page, _ := rig.list("Messages", filter)
			for {
				for _, m := range page["messages"].([]any) {
					delete(want, m.(map[string]any)["sid"].(string))
				}
				rig.sim.SendScheduled(t, 3) // the last of the page and newer ones among them
				next := page["next_page_uri"]
				if next == nil {
					break
				}
				page, _ = rig.page(next.(string))
			}
			if len(want) > 0 {
				t.Errorf("%d messages were on no page", len(want))
			}
		})
	}
}
