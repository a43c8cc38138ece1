package simulator

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// What TaskRouter and Studio keep, workspaces, workers, flows and so on, is alike in how it is made, listed,
// changed and deleted. A collection does that for one kind of member.

const (
	taskRouterURL = "https://taskrouter.twilio.com"
	studioURL     = "https://studio.twilio.com"
)

// identity is what every member has.
type identity struct {
	sid, account, name   string
	url                  string // absolute, as Twilio writes it
	createdAt, updatedAt time.Time
}

func (i *identity) own() *identity { return i }

type member interface {
	own() *identity
	// show is the member as Twilio's API shows it.
	show() any
}

// collection is the members of one kind in one place. The lock of its world guards it.
type collection[T member] struct {
	key    string // of the list in a page
	prefix string // of SIDs
	url    string // absolute
	bySID  map[string]T
	order  []T // oldest first

	// What may be asked for beyond lists and fetches; nil: it may not. Each fails the form where it refuses.
	make    func(f *form, id identity) T
	change  func(T, *form)
	release func(T, *form)
	// settle follows on any of them.
	settle func()
	// list narrows a page by more than the friendly name.
	filter func(f *form) func(T) bool
}

func (c *collection[T]) get(sid string) (T, bool) {
	m, ok := c.bySID[sid]
	return m, ok
}

func (c *collection[T]) add(m T) {
	if c.bySID == nil {
		c.bySID = make(map[string]T)
	}
	c.bySID[m.own().sid] = m
	c.order = append(c.order, m)
}

func (c *collection[T]) remove(m T) {
	delete(c.bySID, m.own().sid)
	for i, other := range c.order {
		if other.own() == m.own() {
			c.order = append(c.order[:i:i], c.order[i+1:]...)
			return
		}
	}
}

// identify makes the identity of a new member.
func (c *collection[T]) identify(account, name string) identity {
	now := time.Now()
	sid := newSID(c.prefix)
	return identity{sid: sid, account: account, name: name, url: c.url + "/" + sid, createdAt: now, updatedAt: now}
}

// shelf is a collection of any kind, as a path names it.
type shelf interface {
	serve(method, sid string, f *form, who caller) answer
}

// serve answers a request for the collection or, with a SID, for one of its members. The world is locked.
func (c *collection[T]) serve(method, sid string, f *form, who caller) answer {
	if sid == "" {
		switch {
		case method == http.MethodGet:
			return c.page(f)
		case method == http.MethodPost && c.make != nil:
			return c.create(f, who)
		}
		return refusal(methodNotAllowed())
	}
	m, ok := c.get(sid)
	if !ok {
		return refusal(notFound(strings.TrimPrefix(strings.TrimPrefix(c.url, taskRouterURL), studioURL) + "/" + sid))
	}
	switch {
	case method == http.MethodGet:
		return jsonAnswer(http.StatusOK, m.show())
	case method == http.MethodPost && c.change != nil:
		if c.change(m, f); f.failed != nil {
			return refusal(f.failed)
		}
		m.own().updatedAt = time.Now()
		c.settled()
		return jsonAnswer(http.StatusOK, m.show())
	case method == http.MethodDelete && c.release != nil:
		if c.release(m, f); f.failed != nil {
			return refusal(f.failed)
		}
		c.remove(m)
		c.settled()
		return answer{status: http.StatusNoContent}
	}
	return refusal(methodNotAllowed())
}

func (c *collection[T]) settled() {
	if c.settle != nil {
		c.settle()
	}
}

func (c *collection[T]) create(f *form, who caller) answer {
	m := c.make(f, c.identify(who.account, f.text("FriendlyName")))
	if f.failed != nil {
		return refusal(f.failed)
	}
	c.add(m)
	shown := jsonAnswer(http.StatusCreated, m.show())
	c.settled()
	return shown
}

// pageFields are the types of what every list can be asked.
var pageFields = []field{pageSizeField, pageField}

// page answers with one page, the oldest members first, walked by PageToken: PT and the SID of the page's first
// member. FriendlyName is compared without regard to case, which is more than clients may rely on.
func (c *collection[T]) page(f *form) answer {
	f.check(pageFields)
	size := defaultPageSize
	if f.has("PageSize") {
		size, _ = strconv.Atoi(f.text("PageSize")) // checked by its field
	}
	page, _ := strconv.Atoi(f.text("Page"))
	token := f.text("PageToken")
	if page > 0 && token == "" {
		f.refuse(40153, "Absolute Paging is not supported: follow next_page_url.")
	}
	wanted := func(T) bool { return true }
	if c.filter != nil {
		wanted = c.filter(f)
	}
	if f.failed != nil {
		return refusal(f.failed)
	}

	shown, next, begun := []any{}, "", token == ""
	for _, m := range c.order {
		begun = begun || token == "PT"+m.own().sid
		if !begun || !wanted(m) || f.has("FriendlyName") && !strings.EqualFold(m.own().name, f.text("FriendlyName")) {
			continue
		}
		if len(shown) == size {
			next = "PT" + m.own().sid
			break
		}
		shown = append(shown, m.show())
	}
	meta := map[string]any{
		"key": c.key, "page": page, "page_size": size,
		"url": c.pageURL(f, page, token), "first_page_url": c.pageURL(f, 0, ""),
		"next_page_url": nil, "previous_page_url": nil,
	}
	if next != "" {
		meta["next_page_url"] = c.pageURL(f, page+1, next)
	}
	return jsonAnswer(http.StatusOK, map[string]any{c.key: shown, "meta": meta})
}

func (c *collection[T]) pageURL(f *form, page int, token string) string {
	query := url.Values{}
	for name, values := range f.values {
		query[name] = values
	}
	query.Set("Page", strconv.Itoa(page))
	query.Set("PageToken", token)
	if token == "" {
		query.Del("PageToken")
	}
	return c.url + "?" + query.Encode()
}

// iso8601 writes a time as TaskRouter and Studio do; null when it has not happened yet.
func iso8601(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC().Format("2006-01-02T15:04:05Z"))
}

// given reports whether the form has the parameter, an empty one included: that is how a text is taken out.
func (f *form) given(name string) bool {
	_, ok := f.values[name]
	return ok
}

// take puts the parameter into its place, where the form has it.
func (f *form) take(name string, into *string) {
	if f.given(name) {
		*into = f.text(name)
	}
}

// takeName refuses an empty friendly name; a create needs one.
func (f *form) takeName(i *identity) {
	f.take("FriendlyName", &i.name)
	if strings.TrimSpace(i.name) == "" {
		f.refuse(20001, "Missing required parameter FriendlyName in the post body")
	}
}
