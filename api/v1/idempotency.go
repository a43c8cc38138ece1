package v1

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/go-json-experiment/json"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/store"
)

const (
	idempotencyHeader = "Idempotency-Key"
	longestKey        = 255
)

// IdempotencyKey is the caller's name for a request that may come again.
type IdempotencyKey struct {
	Key string `header:"Idempotency-Key" doc:"Your name for this request: up to 255 printable ASCII characters, for example a UUID. Sent again with the same body within 24 hours, the request is not done again: the first answer is repeated, with Idempotent-Replayed: true. So a request whose answer was lost may be sent until an answer comes."`
}

// Resolve refuses a header that is there and is no key.
func (*IdempotencyKey) Resolve(ctx huma.Context) []error {
	if err := checkKeys(humagin.Unwrap(ctx).Request.Header.Values(idempotencyHeader)); err != nil {
		return []error{err}
	}
	return nil
}

// checkKeys refuses what a request has sent in the header, if it is there and no key.
func checkKeys(sent []string) error {
	switch {
	case len(sent) == 0:
	case len(sent) > 1:
		return problem.New(problem.IdempotencyKeyMalformed, "the request has the header Idempotency-Key twice: send one")
	case sent[0] == "" || len(sent[0]) > longestKey || strings.ContainsFunc(sent[0], unprintable):
		return problem.New(problem.IdempotencyKeyMalformed, "an Idempotency-Key has 1 to 255 printable ASCII characters: make one for each request, for example a UUID")
	}
	return nil
}

func unprintable(r rune) bool { return r < ' ' || r > '~' }

// once names the request in the ledger: the caller's key, and what is asked at which address. It is
// nil when the request has no key.
func (k IdempotencyKey) once(ctx context.Context, address string, asked any) (*store.Once, error) {
	if k.Key == "" {
		return nil, nil
	}
	text, err := json.Marshal(asked, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("read the request again: %w", err)
	}
	return &store.Once{Owner: callerOf(ctx).keyID, Key: k.Key, Request: sha256.Sum256(append([]byte(address+"\n"), text...))}, nil
}

// keyProblem says why a request under a key is not answered as it would be without.
func (a *API) keyProblem(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, store.ErrKeyInUse):
		return problem.New(problem.IdempotencyKeyInUse, "the request under this Idempotency-Key is still being answered: send it again in a second").WithHeader("Retry-After", "1")
	case errors.Is(err, store.ErrKeyReused):
		return problem.New(problem.IdempotencyKeyReused, "another request was made under this Idempotency-Key: make a new key for each request")
	}
	return a.fail(ctx, err)
}
