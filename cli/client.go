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
	"time"

	"github.com/spf13/cobra"

	"github.com/todoku/todoku/api/problem"
)

const (
	answerLimit   = 30 * time.Second // for one answer
	maxAnswerSize = 16 << 20
)

// client speaks to the API as any other program does.
type client struct {
	connection
	language string
	http     *http.Client
}

func newClient(cmd *cobra.Command) (*client, error) {
	found, err := findConnection(cmd)
	if err != nil {
		return nil, err
	}
	return &client{connection: found, language: messageLanguage(), http: &http.Client{
		Timeout: answerLimit,
		// The key is for this address and not for another that it points to.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// reply is an answer of the API: Value is what a command reads of it, and raw all of it.
type reply[T any] struct {
	Value T
	raw   []byte
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

// call asks the API for one thing. body is sent as JSON unless it is nil. The error is a
// *problem.Problem where the API says no, and an *unreachableError where nothing answers.
func call[T any](ctx context.Context, c *client, method, path string, body any) (reply[T], error) {
	var answer reply[T]
	response, raw, err := c.exchange(ctx, method, path, body)
	if err != nil {
		return answer, err
	}
	media, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case response.StatusCode < 300 && media == "application/json":
		answer.raw = raw
		if err := json.Unmarshal(raw, &answer.Value); err != nil {
			return answer, c.strange(response)
		}
		return answer, nil
	case response.StatusCode >= 400 && media == problem.ContentType:
		var p problem.Problem
		if json.Unmarshal(raw, &p) == nil {
			return answer, &p
		}
	}
	return answer, c.strange(response)
}

func (c *client) exchange(ctx context.Context, method, path string, body any) (*http.Response, []byte, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, nil, fmt.Errorf("write the request: %w", err)
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.url+"/api/v1"+path, content)
	if err != nil {
		return nil, nil, fmt.Errorf("prepare the request: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+c.key)
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Accept-Language", c.language)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, nil, c.unreachable(ctx, method, err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerSize))
	if err != nil {
		return nil, nil, c.unreachable(ctx, method, err)
	}
	return response, raw, nil
}

// unreachableError says that no answer came.
type unreachableError struct{ text string }

func (e *unreachableError) Error() string { return e.text }

func (c *client) unreachable(ctx context.Context, method string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var address *url.Error // says again what was asked
	if errors.As(err, &address) {
		err = address.Err
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return &unreachableError{fmt.Sprintf("the API at %s (%s) cannot be reached: %v: does it run?", c.url, c.origin, dial.Err)}
	}
	text := fmt.Sprintf("the answer of the API at %s (%s) was lost: %v", c.url, c.origin, err)
	if method != http.MethodGet {
		text += ": it may or may not have done what you asked"
	}
	return &unreachableError{text}
}

// strange is the error for an answer that Todoku does not give.
func (c *client) strange(response *http.Response) error {
	return fmt.Errorf("%s (%s) answered %s, but not as Todoku does: check the address", c.url, c.origin, response.Status)
}
