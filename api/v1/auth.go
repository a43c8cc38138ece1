package v1

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/todoku/todoku/api/auth"
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
// within it; one that expires, at its time.
const keyMemory = 10 * time.Second

// Why keys are refused: the values of a metric's label.
const (
	keyMissing  = "missing"
	keyMistyped = "mistyped"
	keyUnknown  = "unknown"
	keyRevoked  = "revoked"
	keyExpired  = "expired"
	keyScope    = "scope_missing"
	keyLimited  = "too_many_wrong"
)

var refusedKeys = promauto.NewCounterVec(prometheus.CounterOpts{
	Name: "todoku_refused_keys_total",
	Help: "Requests whose API key was refused.",
}, []string{"kind"})

func init() {
	for _, kind := range []string{keyMissing, keyMistyped, keyUnknown, keyRevoked, keyExpired, keyScope, keyLimited} {
		refusedKeys.WithLabelValues(kind) // so that each is 0 and not absent before the first one
	}
}

// gate lets a request pass whose key has the scope that its operation asks for.
type gate struct {
	api *API
	own *[sha256.Size]byte // the hash of TODOKU_API_KEY; nil when it is not set

	guesses auth.Guesses

	mu      sync.Mutex
	found   map[[sha256.Size]byte]foundKey
	genuine map[[sha256.Size]byte]struct{} // were valid once, so they are no guesses: a few for each key that was made
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
	g := &gate{api: a, found: make(map[[sha256.Size]byte]foundKey), genuine: make(map[[sha256.Size]byte]struct{})}
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
	found, err := g.admit(ctx.Context(), ctx.Header("Authorization"), humagin.Unwrap(ctx).ClientIP(), ctx.Operation().Security[0][bearer])
	if err != nil {
		refuse(ctx, err)
		return
	}
	next(huma.WithValue(ctx, callerKey{}, found))
}

var ownScopes = []string{ScopeSend, ScopeRead, ScopeManage}

// admit finds whose key it is and requires the scopes. Its error is a problem.
func (g *gate) admit(ctx context.Context, authorization, address string, scopes []string) (caller, error) {
	found, err := g.caller(ctx, authorization, auth.Source(address))
	if err != nil {
		return caller{}, err
	}
	return found, require(found.scopes, scopes)
}

// caller finds whose key it is and what it may do. Its error is a problem. A source that sends many wrong keys has to
// wait before another one is looked for. Keys that were valid before are let through, for many clients may share
// the address of a proxy.
func (g *gate) caller(ctx context.Context, authorization string, source netip.Prefix) (caller, error) {
	scheme, key, _ := strings.Cut(authorization, " ")
	if key = strings.TrimSpace(key); key == "" || !strings.EqualFold(scheme, "Bearer") {
		refusedKeys.WithLabelValues(keyMissing).Inc()
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
	if wait := g.guesses.Wait(source); wait > 0 && !g.wasValid(hash) {
		refusedKeys.WithLabelValues(keyLimited).Inc()
		seconds := int(math.Ceil(wait.Seconds()))
		return caller{}, problem.New(problem.TooManyWrongKeys, "too many wrong API keys came from this address: check the key, and try again after the seconds in Retry-After").
			WithHeader("Retry-After", strconv.Itoa(seconds))
	}
	if auth.Mistyped(key) {
		return caller{}, g.wrong(source, keyMistyped, "the API key has a typing error, or was cut off: copy all of it again")
	}
	stored, err := g.api.Store.KeyByHash(ctx, hash[:])
	switch {
	case errors.Is(err, store.ErrNotFound):
		return caller{}, g.wrong(source, keyUnknown, "the API key is not valid: check it, or make a new one with `todoku key add`")
	case err != nil:
		return caller{}, g.api.fail(ctx, err)
	case stored.RevokedAt != nil:
		return caller{}, g.wrong(source, keyRevoked, "the API key was revoked: make a new one with `todoku key add`")
	case stored.Expired:
		return caller{}, g.wrong(source, keyExpired, "the API key has expired: make a new one with `todoku key add`")
	}
	found := caller{stored.ID, stored.Scopes}
	until := time.Now().Add(keyMemory)
	if stored.ExpiresAt != nil && stored.ExpiresAt.Before(until) {
		until = *stored.ExpiresAt
	}
	g.remember(hash, found, until)
	return found, nil
}

// wrong counts a key that is refused and answers.
func (g *gate) wrong(source netip.Prefix, kind, detail string) error {
	g.guesses.Wrong(source)
	refusedKeys.WithLabelValues(kind).Inc()
	return problem.New(problem.KeyInvalid, detail).WithHeader("WWW-Authenticate", `Bearer realm="todoku", error="invalid_token"`)
}

func (g *gate) wasValid(hash [sha256.Size]byte) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, was := g.genuine[hash]
	return was
}

func (g *gate) remembered(hash [sha256.Size]byte) (caller, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key, ok := g.found[hash]
	return key.caller, ok && time.Now().Before(key.until)
}

// remember also forgets what is too old, so the memory is no larger than the number of keys in use.
func (g *gate) remember(hash [sha256.Size]byte, by caller, until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	for h, key := range g.found {
		if now.After(key.until) {
			delete(g.found, h)
		}
	}
	g.found[hash] = foundKey{by, until}
	g.genuine[hash] = struct{}{}
}

func require(have, need []string) error {
	for _, scope := range need {
		if !slices.Contains(have, scope) {
			refusedKeys.WithLabelValues(keyScope).Inc()
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
