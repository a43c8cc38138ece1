package simulator

import (
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	defaultPageSize = 50
	maxPageSize     = 1000
)

// listFilters are the parameters by which a channel's list can be narrowed, in the order in which Twilio writes
// them into the URIs of pages.
var listFilters = map[channel][]string{
	sms: {"To", "From", "DateSent", "DateSent<", "DateSent>"},
	call: {"To", "From", "ParentCallSid", "Status", "StartTime", "StartTime<", "StartTime>",
		"EndTime", "EndTime<", "EndTime>"},
}

var listFields = map[channel][]field{
	sms: {
		pageSizeField, pageField,
		listDate("DateSent"), listDate("DateSent<"), listDate("DateSent>"),
	},
	call: {
		pageSizeField, pageField,
		listDate("StartTime"), listDate("StartTime<"), listDate("StartTime>"),
		listDate("EndTime"), listDate("EndTime<"), listDate("EndTime>"),
		sidOf("ParentCallSid", "CA", 0),
		oneOf("Status", 0, "queued", "ringing", "in-progress", "completed", "busy", "failed", "no-answer", "canceled"),
	},
}

var (
	pageSizeField = integerBetween("PageSize", 1, maxPageSize, 0)
	pageField     = integerBetween("Page", 0, 1<<31-1, 0)
)

// listing is one page that was asked for.
type listing struct {
	target target
	query  url.Values
	size   int
	page   int
	// Where the page begins or ends; at most one of the two is set.
	after, before *record
}

// list answers with one page, the newest records first. Pages are walked with PageToken: PA and the SID of the
// last record of the page before, or PB and the SID of the first record of the page after.
func (w *world) list(r *http.Request, t target) answer {
	query, err := url.ParseQuery(r.URL.RawQuery)
	f := &form{values: query}
	if err != nil {
		f.refuse(20001, "Bad request: the query cannot be read.")
	}
	f.check(listFields[t.channel])

	page := w.readPage(f, t)
	if f.failed != nil {
		return refusal(f.failed)
	}
	return jsonAnswer(http.StatusOK, page)
}

// readPage copies the page out of the ledger, so that creates do not wait for its encoding.
func (w *world) readPage(f *form, t target) map[string]any {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.readListing(f, t)
	if f.failed != nil {
		return nil
	}
	return l.body(l.take(w.newestFirst(t.channel, l.query.Get("To"), l.after)))
}

// readListing fails the form when it does not name a page. The world is locked.
func (w *world) readListing(f *form, t target) listing {
	l := listing{target: t, query: f.values, size: defaultPageSize}
	if f.has("PageSize") {
		l.size, _ = strconv.Atoi(f.text("PageSize")) // checked by its field
	}
	if f.has("Page") {
		l.page, _ = strconv.Atoi(f.text("Page"))
	}
	token := f.text("PageToken")
	if token == "" {
		if l.page > 0 {
			f.refuse(20001, "PageToken is required for paging.")
		}
		return l
	}
	sid := token[min(2, len(token)):]
	marked := w.ledgers[t.channel].find(t.account, sid)
	if c, ok := w.inboundCall[sid]; ok && c.account == t.account && t.channel == call {
		marked = c.record
	}
	switch {
	case marked == nil:
		f.refuse(20001, "Invalid PageToken: %s", token)
	case strings.HasPrefix(token, "PA"):
		l.after = marked
	case strings.HasPrefix(token, "PB"):
		l.before = marked
	default:
		f.refuse(20001, "Invalid PageToken: %s", token)
	}
	return l
}

// newestFirst yields a channel's records as Twilio lists them, those of calls that came in among the calls. The world
// is locked.
func (w *world) newestFirst(ch channel, to string, after *record) iter.Seq[*record] {
	if ch != call || len(w.inbound) == 0 {
		return w.ledgers[ch].newestFirst(to, after)
	}
	records := slices.Collect(w.ledgers[ch].newestFirst(to, nil))
	for _, c := range w.inbound {
		if to == "" || c.to == to {
			records = append(records, c.record)
		}
	}
	slices.SortStableFunc(records, func(a, b *record) int { return b.createdAt.Compare(a.createdAt) })
	if after != nil {
		records = records[slices.Index(records, after)+1:]
	}
	return slices.Values(records)
}

// take collects the page's records, and says whether there are more behind them. The world is locked.
func (l *listing) take(newestFirst iter.Seq[*record]) (records []*record, more bool) {
	wanted := l.filter()
	for r := range newestFirst {
		if l.before != nil && r == l.before {
			more = true
			break
		}
		if !wanted(r) {
			continue
		}
		if l.before == nil && len(records) == l.size {
			more = true
			break
		}
		records = append(records, r)
	}
	if len(records) > l.size { // a page that ends at a record has the ones just before it
		records = records[len(records)-l.size:]
	}
	if len(records) > 0 {
		last := records[len(records)-1]
		last.pagedUnsent = last.sentAt.IsZero()
	}
	return records, more
}

// filter tells which records the listing asks for.
func (l *listing) filter() func(*record) bool {
	account, from, status := l.target.account, l.query.Get("From"), l.query.Get("Status")
	parent := l.query.Get("ParentCallSid")
	sent := readDateFilter(l.query, "DateSent")
	started, ended := readDateFilter(l.query, "StartTime"), readDateFilter(l.query, "EndTime")
	return func(r *record) bool {
		if r.account != account || from != "" && r.from != from {
			return false
		}
		fits := func(is string, startedAt, endedAt time.Time) bool {
			return parent == "" && // calls that others have started do not exist here
				(status == "" || is == status) && started.includes(startedAt) && ended.includes(endedAt)
		}
		switch c := r.kind.(type) {
		case *phoneCall:
			return fits(r.status, c.startedAt, c.endedAt)
		case rung:
			return fits(c.status, c.startedAt, c.endedAt)
		}
		return sent.includes(r.sentAt)
	}
}

// body is Twilio's JSON of a page.
func (l *listing) body(records []*record, more bool) map[string]any {
	resources := make([]any, len(records))
	for i, r := range records {
		resources[i] = r.kind.resource(r)
	}
	start := l.page * l.size
	body := map[string]any{
		"first_page_uri":    l.uri(0, ""),
		"next_page_uri":     nil,
		"previous_page_uri": nil,
		"page":              l.page,
		"page_size":         l.size,
		"start":             start,
		"end":               start + max(0, len(records)-1),
		"uri":               l.uri(l.page, l.query.Get("PageToken")),
		strings.ToLower(l.target.channel.collection()): resources,
	}
	if more {
		body["next_page_uri"] = l.uri(l.page+1, "PA"+records[len(records)-1].sid)
	}
	if l.page > 0 && len(records) > 0 {
		body["previous_page_uri"] = l.uri(l.page-1, "PB"+records[0].sid)
	}
	return body
}

// uri is the relative address of a page of this listing.
func (l *listing) uri(page int, token string) string {
	var b strings.Builder
	b.WriteString(l.target.uri())
	separator := byte('?')
	write := func(name, value string) {
		b.WriteByte(separator)
		separator = '&'
		b.WriteString(url.QueryEscape(name) + "=" + url.QueryEscape(value))
	}
	for _, name := range listFilters[l.target.channel] {
		if value := l.query.Get(name); value != "" {
			write(name, value)
		}
	}
	write("PageSize", strconv.Itoa(l.size))
	write("Page", strconv.Itoa(page))
	if token != "" {
		write("PageToken", token)
	}
	return b.String()
}

// dateFilter is a span of time, from its first to before its last second; a zero end is open.
type dateFilter struct {
	from, until time.Time
	set         bool
}

// readDateFilter reads NAME (that UTC day), NAME< (until then) and NAME> (from then on), both ends included. A date
// without a time stands for its whole day.
func readDateFilter(query url.Values, name string) dateFilter {
	var d dateFilter
	if at, _, ok := readListDate(query.Get(name)); ok {
		day := at.UTC().Truncate(24 * time.Hour)
		d = dateFilter{from: day, until: day.AddDate(0, 0, 1), set: true}
	}
	if at, unit, ok := readListDate(query.Get(name + "<")); ok {
		d.set = true
		if until := at.Add(unit); d.until.IsZero() || until.Before(d.until) {
			d.until = until
		}
	}
	if at, _, ok := readListDate(query.Get(name + ">")); ok {
		d.set = true
		if at.After(d.from) {
			d.from = at
		}
	}
	return d
}

// includes reports whether the time, to the second as Twilio shows it, is in the span. What has not happened yet
// is in no span.
func (d dateFilter) includes(t time.Time) bool {
	if !d.set {
		return true
	}
	second := t.Truncate(time.Second)
	return !t.IsZero() && !second.Before(d.from) && (d.until.IsZero() || second.Before(d.until))
}

// readListDate reads a date, whose unit is a day, or a time, whose unit is a second.
func readListDate(s string) (at time.Time, unit time.Duration, ok bool) {
	if at, err := time.Parse(time.DateOnly, s); err == nil {
		return at, 24 * time.Hour, true
	}
	at, err := time.Parse(time.RFC3339, s)
	return at, time.Second, err == nil
}

func listDate(name string) field {
	return field{name: name, want: "a date or an ISO 8601 time in GMT", valid: func(s string) bool {
		_, _, ok := readListDate(s)
		return ok
	}}
}
