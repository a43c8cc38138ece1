package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"
)

// A BatchRequest is a bulk request, and the key under which it is repeated.
type BatchRequest struct {
	Query url.Values // all but the recipients, as POST /api/v1/batches takes it beside a file
	File  []byte     // CSV

	IdempotencyKey string
}

// A Batch is one bulk request as the API shows it.
type Batch struct {
	ID     uuid.UUID
	State  string
	Total  int
	Counts map[string]int // by status, in lower case; held beside accepted
}

// Open is how many of its notifications are not final.
func (b Batch) Open() int {
	return b.Counts["accepted"] + b.Counts["held"] + b.Counts["sending"] + b.Counts["pending"]
}

// Recipients is a file with a column of n numbers, those from Number(first) on, and one of names.
func Recipients(first, n int) []byte {
	var file bytes.Buffer
	file.WriteString("to,name\n")
	for i := first; i < first+n; i++ {
		fmt.Fprintf(&file, "%s,患者%d\n", Number(i), i)
	}
	return file.Bytes()
}

// SendBatch sends a batch as Send does a single: it repeats the call, under the same key, until it is
// accepted.
func (a *API) SendBatch(ctx context.Context, request BatchRequest) (b Batch, tries int, err error) {
	tries, err = a.repeat(ctx, func() error {
		return a.call(ctx, exchange{
			method: http.MethodPost, path: "/batches?" + request.Query.Encode(), media: "text/csv", body: request.File,
			key: request.IdempotencyKey, want: http.StatusAccepted, into: &b,
		})
	})
	return b, tries, err
}

// Batch reads how far a batch has come.
func (a *API) Batch(ctx context.Context, id uuid.UUID) (b Batch, err error) {
	err = a.call(ctx, exchange{method: http.MethodGet, path: "/batches/" + id.String(), want: http.StatusOK, into: &b})
	return b, err
}

// SetBatchPace gives a batch a pace of its own.
func (a *API) SetBatchPace(ctx context.Context, id uuid.UUID, interval time.Duration) (b Batch, err error) {
	change := fmt.Sprintf(`{"send_interval_ms": %d}`, interval.Milliseconds())
	err = a.call(ctx, exchange{
		method: http.MethodPatch, path: "/batches/" + id.String(), media: "application/json", body: []byte(change),
		want: http.StatusOK, into: &b,
	})
	return b, err
}

// Template makes a template for SMS and returns its id.
func (a *API) Template(ctx context.Context, name, body string) (id int64, err error) {
	text, err := json.Marshal(map[string]string{"channel": "SMS", "name": name, "body": body})
	if err != nil {
		return 0, err
	}
	var made struct{ ID int64 }
	err = a.call(ctx, exchange{method: http.MethodPost, path: "/templates", media: "application/json", body: text, want: http.StatusCreated, into: &made})
	return made.ID, err
}
