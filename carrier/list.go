package carrier

import (
	"context"
	"iter"
	"net/url"
	"strings"
	"time"

	openapi "github.com/twilio/twilio-go/rest/api/v2010"

	"github.com/todoku/todoku/notify"
)

// Filter says which messages or calls to list. Empty fields do not restrict.
type Filter struct {
	To   string
	From string

	// SentAfter and SentBefore bound the time at which a message was sent, or a call was dialed.
	// What is still queued has no such time, and with a bound may be left out. Twilio documents
	// the bounds as whole days, inclusive, and takes seconds: expect a little more than asked for.
	SentAfter  time.Time
	SentBefore time.Time

	PageSize int // 1 to 1,000; 0 means 1,000
}

const largestPage = 1000

// List walks through messages or calls, the most recently sent first, page by page along Twilio's
// own next_page_uri. No SID comes twice. A listing without an error was read to its last page: what
// breaks off, or runs in a circle, ends with an error, and what was yielded before must then not be
// taken for all there is. Twilio sorts by the time of sending, so a row on a later page that is sent
// in the meantime moves to the top and is missed: only a second listing proves that a row is absent,
// unless the first was one page.
func (c *Client) List(ctx context.Context, ch notify.Channel, f Filter) iter.Seq2[[]Resource, error] {
	return func(yield func([]Resource, error) bool) {
		seen := map[string]bool{}
		fruitful, barren := 0, 0 // pages with something new; pages in a row without
		var next *url.URL
		for {
			page, err := c.page(ctx, ch, f, next)
			if err != nil {
				yield(nil, err)
				return
			}
			fresh := page.resources[:0]
			for _, r := range page.resources {
				if !seen[r.SID] {
					seen[r.SID] = true
					fresh = append(fresh, r)
				}
			}
			if len(fresh) > 0 && !yield(fresh, nil) {
				return
			}
			if next = page.next; next == nil {
				return
			}
			if len(fresh) > 0 {
				fruitful, barren = fruitful+1, 0
			} else {
				barren++
			}
			// A row that is sent in the meantime moves to the top, and the pages after it are read
			// once more; but then something new must come.
			if barren > fruitful+1 {
				yield(nil, page.exchange.undecodable("the list runs in a circle"))
				return
			}
		}
	}
}

type page struct {
	exchange  *exchange
	resources []Resource
	next      *url.URL // nil: this was the last page
}

// page reads one page of a list: the first by the filter, the others by the next_page_uri of the
// page before.
func (c *Client) page(ctx context.Context, ch notify.Channel, f Filter, at *url.URL) (page, error) {
	e, service := c.begin(ctx, "list "+string(ch))
	e.limit = listAnswerLimit
	e.page = at
	e.private = []string{f.To, f.From, c.accountSID, c.authToken}

	read := page{exchange: e}
	var answer struct {
		Messages    []messageAnswer `json:"messages"`
		Calls       []callAnswer    `json:"calls"`
		URI         string          `json:"uri"`
		NextPageURI string          `json:"next_page_uri"`
	}
	e.answer = &answer
	switch {
	case f.PageSize < 0 || f.PageSize > largestPage:
		return page{}, e.fail(Request, "the page size is not between 1 and 1000", nil)
	case ch == notify.SMS:
		_, err := service.PageMessage(f.messages(), "", "")
		if err := e.failure(err); err != nil {
			return page{}, err
		}
		if answer.Messages == nil { // an empty page says "messages": []
			return page{}, e.undecodable("it is not a page of messages")
		}
		for _, m := range answer.Messages {
			if problem := c.foreign(m.AccountSID); problem != "" {
				return page{}, e.undecodable(problem)
			}
			read.resources = append(read.resources, m.resource())
		}
	case ch == notify.Call:
		_, err := service.PageCall(f.calls(), "", "")
		if err := e.failure(err); err != nil {
			return page{}, err
		}
		if answer.Calls == nil {
			return page{}, e.undecodable("it is not a page of calls")
		}
		for _, call := range answer.Calls {
			if problem := c.foreign(call.AccountSID); problem != "" {
				return page{}, e.undecodable(problem)
			}
			read.resources = append(read.resources, call.resource())
		}
	default:
		return page{}, e.fail(Request, "the channel is neither SMS nor CALL", nil)
	}
	if !c.ownPage(answer.URI) {
		return page{}, e.undecodable("it is a page of another account")
	}
	for _, r := range read.resources {
		if problem := r.problem(); problem != "" {
			return page{}, e.undecodable(problem)
		}
	}
	if answer.NextPageURI != "" {
		// Twilio writes a path and a query. What names a host too was written by something in between.
		if strings.HasPrefix(answer.NextPageURI, "/") {
			read.next = e.follow(answer.NextPageURI)
		}
		if read.next == nil {
			return page{}, e.undecodable("its next_page_uri does not lead to a page of the same list")
		}
	}
	return read, nil
}

// ownPage reports whether a page's own address is one of the client's account, which an empty page names
// too. Twilio's pages have it; what stands in for Twilio may leave it out.
func (c *Client) ownPage(uri string) bool {
	return uri == "" || strings.Contains(uri, "/Accounts/"+c.accountSID+"/")
}

// follow reads a next_page_uri, of which only path and query are used. It is nil unless they lead
// to the list that this exchange read.
func (e *exchange) follow(nextPageURI string) *url.URL {
	u, err := url.Parse(nextPageURI)
	if err != nil || !strings.HasPrefix(u.Path, "/") || u.Path != e.path || u.RawQuery == e.query {
		return nil
	}
	return u
}

func (f Filter) messages() *openapi.ListMessageParams {
	params := new(openapi.ListMessageParams).SetPageSize(f.pageSize())
	if f.To != "" {
		params.SetTo(f.To)
	}
	if f.From != "" {
		params.SetFrom(f.From)
	}
	if !f.SentAfter.IsZero() {
		params.SetDateSentAfter(f.sentAfter())
	}
	if !f.SentBefore.IsZero() {
		params.SetDateSentBefore(f.sentBefore())
	}
	return params
}

func (f Filter) calls() *openapi.ListCallParams {
	params := new(openapi.ListCallParams).SetPageSize(f.pageSize())
	if f.To != "" {
		params.SetTo(f.To)
	}
	if f.From != "" {
		params.SetFrom(f.From)
	}
	if !f.SentAfter.IsZero() {
		params.SetStartTimeAfter(f.sentAfter())
	}
	if !f.SentBefore.IsZero() {
		params.SetStartTimeBefore(f.sentBefore())
	}
	return params
}

func (f Filter) pageSize() int {
	if f.PageSize == 0 {
		return largestPage
	}
	return f.PageSize
}

// twilio-go writes whole seconds: the bounds move outwards to the next one.
func (f Filter) sentAfter() time.Time { return f.SentAfter.UTC().Truncate(time.Second) }
func (f Filter) sentBefore() time.Time {
	return f.SentBefore.UTC().Add(time.Second - time.Nanosecond).Truncate(time.Second)
}
