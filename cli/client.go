package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/todoku/todoku/api/problem"
)

const (
	answerLimit   = 30 * time.Second // for one answer
	maxAnswerSize = 16 << 20
)

// What was not answered, or was answered "later", is asked again a few times: after what the answer
// tells, or after growing pauses.
const (
	tries         = 4
	firstPause    = 200 * time.Millisecond
	longestPause  = 10 * time.Second
	noticeablyFar = time.Second // a pause that people are told of
)

// client speaks to the API as any other program does.
type client struct {
	connection
	language string
	http     *http.Client
	tell     io.Writer // of pauses; nil: nobody
}

func newClient(cmd *cobra.Command) (*client, error) {
	found, err := findConnection(cmd)
	if err != nil {
		return nil, err
	}
	c := &client{connection: found, language: messageLanguage(), http: &http.Client{
		Timeout: answerLimit,
		// The key is for this address and not for another that it points to.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if !wantsJSON(cmd) {
		c.tell = cmd.ErrOrStderr()
	}
	return c, nil
}

// asking is one thing that the API is asked for.
type asking struct {
	method, path string
	body         any    // sent as JSON unless it is nil
	file         *file  // sent in the place of body
	key          string // the Idempotency-Key, where there is one
	etag         string // the If-Match, where there is one
	repeatable   bool   // asking twice does what asking once does
	endless      bool   // the answer takes as long as it takes
}

// file is what is uploaded.
type file struct {
	open      func() (io.ReadCloser, error)
	mediaType string
}

// reply is an answer of the API: Value is what a command reads of it, and raw all of it.
type reply[T any] struct {
	Value T
	raw   []byte
	etag  string // of what the answer shows, where it has one
}

// print shows the answer as the API gave it, with --json, or else as people read it.
func (r reply[T]) print(cmd *cobra.Command, forPeople func(io.Writer, T) error) error {
	out := cmd.OutOrStdout()
	if !wantsJSON(cmd) {
		return forPeople(out, r.Value)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, bytes.TrimSpace(r.raw), "", "  "); err != nil {
		return fmt.Errorf("print the answer: %w", err)
	}
	_, err := fmt.Fprintln(out, pretty.String())
	return err
}

// call asks the API for one thing, which is done once whatever happens to the answer: what changes
// something is not asked again when it may have been done. The error is a *problem.Problem where the
// API says no, and an *unreachableError where nothing answers.
func call[T any](ctx context.Context, c *client, method, path string, body any) (reply[T], error) {
	return ask[T](ctx, c, once(method, path, body))
}

func once(method, path string, body any) asking {
	return asking{method: method, path: path, body: body, repeatable: method == http.MethodGet || method == http.MethodPatch}
}

// printChange reads what is at the path, and changes it unless somebody else does at this moment.
func printChange[T any](cmd *cobra.Command, c *client, path string, change any, forPeople func(io.Writer, T) error) error {
	found, err := call[T](cmd.Context(), c, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	return printAnswer(cmd, c, asking{method: http.MethodPatch, path: path, body: change, etag: found.etag}, forPeople)
}

// printAnswer asks and prints what is answered.
func printAnswer[T any](cmd *cobra.Command, c *client, q asking, forPeople func(io.Writer, T) error) error {
	answer, err := ask[T](cmd.Context(), c, q)
	if err != nil {
		return err
	}
	return answer.print(cmd, forPeople)
}

// show prints what the API has at a path.
func show[T any](cmd *cobra.Command, c *client, path string, forPeople func(io.Writer, T) error) error {
	return printAnswer(cmd, c, once(http.MethodGet, path, nil), forPeople)
}

// showing is what a command does that shows one thing.
func showing[T any](forPeople func(io.Writer, T) error) func(*cobra.Command, *client, string) error {
	return func(cmd *cobra.Command, c *client, path string) error { return show(cmd, c, path, forPeople) }
}

// ask asks until there is an answer that is not "later".
func ask[T any](ctx context.Context, c *client, q asking) (reply[T], error) {
	for try, pause := 1, firstPause; ; try, pause = try+1, pause*2 {
		answer, later, err := askOnce[T](ctx, c, q)
		if err == nil || try == tries || ctx.Err() != nil || !q.mayAskAgain(err) {
			return answer, err
		}
		if later = min(max(later, pause), longestPause); later >= noticeablyFar && c.tell != nil {
			fmt.Fprintf(c.tell, "%s: asking again in %v\n", clean(err.Error()), later)
		}
		select {
		case <-ctx.Done():
			return answer, err
		case <-time.After(later):
		}
	}
}

// mayAskAgain reports whether the same question may be answered a little later, and does no harm.
func (q asking) mayAskAgain(err error) bool {
	var p *problem.Problem
	if errors.As(err, &p) {
		return q.repeatable && (p.Status == http.StatusServiceUnavailable || p.Code == problem.IdempotencyKeyInUse)
	}
	var away *unreachableError
	return errors.As(err, &away) && (q.repeatable || away.unsent)
}

// askOnce returns, with a problem, what its Retry-After says.
func askOnce[T any](ctx context.Context, c *client, q asking) (answer reply[T], later time.Duration, err error) {
	response, raw, err := c.exchange(ctx, q)
	if err != nil {
		return answer, 0, err
	}
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case response.StatusCode == http.StatusNoContent:
		answer.raw = []byte("{}") // for --json
		return answer, 0, nil
	case response.StatusCode < 300 && media == "application/json":
		answer.raw, answer.etag = raw, response.Header.Get("ETag")
		if err := json.Unmarshal(raw, &answer.Value); err != nil {
			return answer, 0, c.strange(response)
		}
		return answer, 0, nil
	}
	return answer, retryAfter(response), c.refusal(response, raw)
}

// refusal is the *problem.Problem that the API answers with, or says that it answers with something else.
func (c *client) refusal(response *http.Response, raw []byte) error {
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	var p problem.Problem
	if response.StatusCode >= 400 && media == problem.ContentType && json.Unmarshal(raw, &p) == nil {
		return &p
	}
	return c.strange(response)
}

// retryAfter is what the answer says about asking again; 0: nothing.
func retryAfter(response *http.Response) time.Duration {
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	return time.Duration(seconds) * time.Second
}

// download copies a file that the API gives.
func (c *client) download(ctx context.Context, path string, to io.Writer) error {
	q := asking{method: http.MethodGet, path: path, endless: true}
	response, err := c.send(ctx, q)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); response.StatusCode == http.StatusOK && media == "text/csv" {
		if _, err := io.Copy(to, response.Body); err != nil {
			return fmt.Errorf("the file broke off before its end: ask for it again: %w", err)
		}
		return nil
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerSize))
	if err != nil {
		return c.unreachable(ctx, q.method, err)
	}
	return c.refusal(response, raw)
}

func (c *client) exchange(ctx context.Context, q asking) (*http.Response, []byte, error) {
	response, err := c.send(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerSize))
	if err != nil {
		return nil, nil, c.unreachable(ctx, q.method, err)
	}
	return response, raw, nil
}

func (c *client) send(ctx context.Context, q asking) (*http.Response, error) {
	content, mediaType, err := q.content()
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, q.method, c.url+"/api/v1"+q.path, content)
	if err != nil {
		return nil, fmt.Errorf("prepare the request: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+c.key)
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Accept-Language", c.language)
	if mediaType != "" {
		request.Header.Set("Content-Type", mediaType)
	}
	if q.key != "" {
		request.Header.Set("Idempotency-Key", q.key)
	}
	if q.etag != "" {
		request.Header.Set("If-Match", q.etag)
	}
	client := *c.http
	if q.file != nil || q.endless {
		client.Timeout = 0 // a file takes as long as it takes
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, c.unreachable(ctx, q.method, err)
	}
	return response, nil
}

func (q asking) content() (content io.Reader, mediaType string, err error) {
	switch {
	case q.file != nil:
		content, err = q.file.open()
		return content, q.file.mediaType, err
	case q.body == nil:
		return nil, "", nil
	}
	text, err := json.Marshal(q.body)
	if err != nil {
		return nil, "", fmt.Errorf("write the request: %w", err)
	}
	return bytes.NewReader(text), "application/json", nil
}

// unreachableError says that no answer came.
type unreachableError struct {
	text   string
	unsent bool // nothing was asked
}

func (e *unreachableError) Error() string { return e.text }

func (c *client) unreachable(ctx context.Context, method string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if unread := new(unreadableError); errors.As(err, &unread) {
		return unread
	}
	var address *url.Error // says again what was asked
	if errors.As(err, &address) {
		err = address.Err
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return &unreachableError{fmt.Sprintf("the API at %s (%s) cannot be reached: %v: does it run?", c.url, c.origin, dial.Err), true}
	}
	text := fmt.Sprintf("the answer of the API at %s (%s) was lost: %v", c.url, c.origin, err)
	if method != http.MethodGet {
		text += ": it may or may not have done what you asked"
	}
	return &unreachableError{text, false}
}

// strange is the error for an answer that Todoku does not give.
func (c *client) strange(response *http.Response) error {
	return fmt.Errorf("%s (%s) answered %s, but not as Todoku does: check the address", c.url, c.origin, response.Status)
}
