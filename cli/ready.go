package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// readyLimit is longer than /readyz takes when everything that it asks hangs.
const readyLimit = 5 * time.Second

func newReadyCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "ready [URL]",
		GroupID: groupRun,
		Short:   "Ask an API or a worker whether it is ready, and what is down",
		Long: `Ask an API or a worker whether it is ready, and what is down.

URL is the base URL of either: the command asks URL/readyz and needs no key. Without it, the API is
asked that the other commands would use. It ends with 0 when the answer is yes, else with 1, so it is a
health check for containers, also for those that have no shell.

An API without Temporal is ready: it accepts notifications, which are sent once Temporal is back.`,
		Example: `  todoku ready
  todoku ready http://127.0.0.1:8081    # a worker: its TODOKU_WORKER_ADDR`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageErrorf("%d arguments are too many: give one URL, or none", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c := &client{http: &http.Client{Timeout: readyLimit}}
			var err error
			if len(args) == 1 {
				c.origin = "the URL given"
				c.url, err = baseURL(strings.TrimSuffix(args[0], "/readyz"), c.origin)
			} else {
				c.url, c.origin, err = findAPI()
			}
			if err != nil {
				return err
			}
			return askReady(cmd, c)
		},
	}
}

// findAPI is where the API is, for a question that needs no key.
func findAPI() (url, origin string, err error) {
	environment, err := environ()
	if err != nil {
		return "", "", err
	}
	if text := environment["TODOKU_URL"]; text != "" {
		url, err = baseURL(text, "TODOKU_URL")
		return url, "TODOKU_URL", err
	}
	running, found, err := runningDev()
	if found {
		return running.API, originDev, err
	}
	return defaultURL, originUsual, err
}

func askReady(cmd *cobra.Command, c *client) error {
	response, raw, err := c.get(cmd.Context(), "/readyz")
	if err != nil {
		return err
	}
	var answer map[string]any
	err = json.Unmarshal(raw, &answer)
	status, ok := answer["status"].(string)
	if err != nil || !ok {
		return c.strange(response)
	}
	down := whatIsDown(answer)
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s is not ready: %s", c.url, clean(cmp.Or(down, status)))
	}
	return reply[map[string]any]{Value: answer, raw: raw}.print(cmd, func(out io.Writer, _ map[string]any) error {
		text := c.url + " is ready"
		if down != "" {
			text += ", but " + down
		}
		_, err := fmt.Fprintln(out, clean(text))
		return err
	})
}

// whatIsDown puts an answer of /readyz into words. The API names each thing and how it is; a worker
// lists those that are down.
func whatIsDown(answer map[string]any) string {
	var down []string
	if list, ok := answer["down"].([]any); ok {
		for _, name := range list {
			down = append(down, fmt.Sprint(name)+" down")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(answer)) {
		if state, ok := answer[name].(string); ok && name != "status" && state != "up" {
			down = append(down, name+" "+state)
		}
	}
	return strings.Join(down, ", ")
}

// get asks for a page that is not part of the REST API and takes no key.
func (c *client) get(ctx context.Context, path string) (*http.Response, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("prepare the request: %w", err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, nil, c.unreachable(ctx, http.MethodGet, err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerSize))
	if err != nil {
		return nil, nil, c.unreachable(ctx, http.MethodGet, err)
	}
	return response, raw, nil
}
