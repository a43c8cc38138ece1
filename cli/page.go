package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// page is a part of a collection in the form that the API gives it.
type page[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"next_cursor"`
}

// largestPage is what the API gives at once.
const largestPage = 200

// paging is which part of a collection is wanted.
type paging struct {
	limit int
	after string
}

func (p *paging) addFlags(cmd *cobra.Command) {
	cmd.Flags().IntVar(&p.limit, "limit", 50, "how many at most, up to 200")
	cmd.Flags().StringVar(&p.after, "cursor", "", "read on after a page: its next `cursor`")
}

// query asks for that part of what has all of the given values. Those that are empty were not given.
func (p *paging) query(given map[string]string) (url.Values, error) {
	if p.limit < 1 || p.limit > largestPage {
		return nil, usageErrorf("--limit must be from 1 to %d", largestPage)
	}
	query := url.Values{"limit": {strconv.Itoa(p.limit)}}
	if p.after != "" {
		query.Set("cursor", p.after)
	}
	for name, value := range given {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query, nil
}

// addPeriod asks for what was created in a time, as people write its begin and its end.
func addPeriod(query url.Values, from, to string) error {
	for name, value := range map[string]string{"created_from": from, "created_to": to} {
		if value == "" {
			continue
		}
		at, err := parsePast(value)
		if err != nil {
			return err
		}
		query.Set(name, at.Format(time.RFC3339))
	}
	return nil
}

// listPage prints one page as a table and how to read on, or that there is none of them.
func listPage[T any](cmd *cobra.Command, c *client, path string, query url.Values, none string, tableOf func([]T, *time.Location) *table) error {
	return show(cmd, c, path+"?"+query.Encode(), inZone(func(out io.Writer, p page[T], zone *time.Location) error {
		switch {
		case len(p.Items) == 0 && p.NextCursor != nil:
			_, err := fmt.Fprintf(out, "none so far: repeat the command with --cursor %s to look further back\n", clean(*p.NextCursor))
			return err
		case len(p.Items) == 0:
			_, err := fmt.Fprintln(out, none)
			return err
		}
		if err := tableOf(p.Items, zone).print(out); err != nil || p.NextCursor == nil {
			return err
		}
		_, err := fmt.Fprintf(out, "There are more: repeat the command with --cursor %s\n", clean(*p.NextCursor))
		return err
	}))
}

// listAll prints a whole collection as a table, or that there is none of them.
func listAll[T any](cmd *cobra.Command, path string, query url.Values, none string, tableOf func([]T) *table) error {
	c, err := newClient(cmd)
	if err != nil {
		return err
	}
	all, err := everyPage[T](cmd.Context(), c, path, query)
	if err != nil {
		return err
	}
	return all.print(cmd, func(out io.Writer, all items[T]) error {
		if len(all.Items) == 0 {
			_, err := fmt.Fprintln(out, none)
			return err
		}
		return tableOf(all.Items).print(out)
	})
}

// everyPage reads every page of a collection, as one.
func everyPage[T any](ctx context.Context, c *client, path string, query url.Values) (all reply[items[T]], err error) {
	raw := itemsOf[json.RawMessage](nil)
	query.Set("limit", strconv.Itoa(largestPage))
	for more := true; more; {
		part, err := call[page[T]](ctx, c, http.MethodGet, path+"?"+query.Encode(), nil)
		if err != nil {
			return all, err
		}
		all.Value.Items = append(all.Value.Items, part.Value.Items...)
		var rawPart items[json.RawMessage]
		if err := json.Unmarshal(part.raw, &rawPart); err != nil {
			return all, fmt.Errorf("read %s: %w", path, err)
		}
		raw.Items = append(raw.Items, rawPart.Items...)
		if more = part.Value.NextCursor != nil; more {
			query.Set("cursor", *part.Value.NextCursor)
		}
	}
	var buffer bytes.Buffer
	err = writeJSON(&buffer, raw)
	all.raw = buffer.Bytes()
	return all, err
}
