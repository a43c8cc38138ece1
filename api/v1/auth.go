package v1

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/store"
)

// Scopes of API keys.
const (
	ScopeSend   = "send"   // send notifications
	ScopeRead   = "read"   // see notifications, templates and senders, numbers masked
	ScopeManage = "manage" // change templates, resume senders
	ScopePII    = "pii"    // see whole phone numbers
)

// keyMemory is how long a key that was found is not looked for again. A revoked key stops working
// within it.
const keyMemory = 10 * time.Second

// gate lets a request pass whose key has the scope that its operation asks for.
type gate struct {
	api *API
	own *[sha256.Size]byte // the hash of TODOKU_API_KEY; nil when it is not set

	mu    sync.Mutex
	found map[[sha256.Size]byte]foundKey
}

type foundKey struct {
	caller
	until time.Time
}

// caller is who asks, by the API key.
type caller struct {
	keyID  int64 // 0: the key of TODOKU_API_KEY
	scopes []string
}

func newGate(a *API) *gate {
	g := &gate{api: a, found: make(map[[sha256.Size]byte]foundKey)}
	if a.Settings.APIKey != "" {
		own := sha256.Sum256([]byte(a.Settings.APIKey))
		g.own = &own
	}
	return g
}

type callerKey struct{}

func callerOf(ctx context.Context) caller {
	found, _ := ctx.Value(callerKey{}).(caller)
	return found
}

// seesNumbers reports whether the request's key may see whole phone numbers.
func seesNumbers(ctx context.Context) bool { return slices.Contains(callerOf(ctx).scopes, ScopePII) }

func (g *gate) pass(ctx huma.Context, next func(huma.Context)) {
	found, err := g.caller(ctx.Context(), ctx.Header("Authorization"))
	if err == nil {
		err = require(found.scopes, ctx.Operation().Security[0][bearer])
	}
	if err != nil {
		refuse(ctx, err)
		return
	}
	next(huma.WithValue(ctx, callerKey{}, found))
}

var ownScopes = []string{ScopeSend, ScopeRead, ScopeManage}

// caller finds whose key it is and what it may do. Its error is a problem.
func (g *gate) caller(ctx context.Context, authorization string) (caller, error) {
	scheme, key, _ := strings.Cut(authorization, " ")
	if key = strings.TrimSpace(key); key == "" || !strings.EqualFold(scheme, "Bearer") {
		return caller{}, problem.New(problem.KeyMissing, "the request has no API key: send the header Authorization: Bearer KEY").
			WithHeader("WWW-Authenticate", `Bearer realm="todoku"`)
	}
	hash := sha256.Sum256([]byte(key))
	if g.own != nil && subtle.ConstantTimeCompare(hash[:], g.own[:]) == 1 {
		return caller{scopes: ownScopes}, nil
	}
	if found, ok := g.remembered(hash); ok {
		return found, nil
	}
	stored, err := g.api.Store.KeyByHash(ctx, hash[:])
	switch {
	case errors.Is(err, store.ErrNotFound):
		return caller{}, problem.New(problem.KeyInvalid, "the API key is not valid, or was revoked: check it, or make a new one with `todoku key add`").
			WithHeader("WWW-Authenticate", `Bearer realm="todoku", error="invalid_token"`)
	case err != nil:
		return caller{}, g.api.fail(ctx, err)
	}
	found := caller{stored.ID, stored.Scopes}
	g.remember(hash, found)
	return found, nil
}

func (g *gate) remembered(hash [sha256.Size]byte) (caller, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key, ok := g.found[hash]
	return key.caller, ok && time.Now().Before(key.until)
}

// remember also forgets what is too old, so the memory is no larger than the number of keys in use.
func (g *gate) remember(hash [sha256.Size]byte, by caller) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	for h, key := range g.found {
		if now.After(key.until) {
			delete(g.found, h)
		}
	}
	g.found[hash] = foundKey{by, now.Add(keyMemory)}
}

func require(have, need []string) error {
	for _, scope := range need {
		if !slices.Contains(have, scope) {
			return problem.Newf(problem.ScopeMissing, "the API key lacks the scope %s: use a key that has it", scope).
				WithHeader("WWW-Authenticate", fmt.Sprintf(`Bearer realm="todoku", error="insufficient_scope", scope=%q`, scope))
		}
	}
	return nil
}

// refuse answers in the place of an operation.
func refuse(ctx huma.Context, err error) {
	var p *problem.Problem
	if !errors.As(err, &p) {
		panic(fmt.Errorf("refuse a request: %w", err))
	}
	problem.Write(humagin.Unwrap(ctx).Writer, p)
}
