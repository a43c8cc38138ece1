package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

// page is a part of a collection in the form that the API gives it.
type page[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"next_cursor"`
}

// everyPage reads every page of a collection, as one.
func everyPage[T any](ctx context.Context, c *client, path string, query url.Values) (all reply[items[T]], err error) {
	raw := itemsOf[json.RawMessage](nil)
	query.Set("limit", "200")
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
