package api

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/todoku/todoku/migrations"
	"github.com/todoku/todoku/store"
)

// Limits of a readiness check.
const (
	databaseLimit = 2 * time.Second
	temporalLimit = time.Second
	schemaMemory  = 30 * time.Second // how long a schema that was right is not looked at again
	// outcomeMemory is how long any outcome is told again, so that a flood of questions costs nothing.
	outcomeMemory = time.Second
)

// readiness is what /readyz says. The API accepts notifications without Temporal, so only the
// database and its schema decide whether it is ready.
type readiness struct {
	Status   string `json:"status"`   // ok, degraded, down, stopping
	Database string `json:"database"` // up, down
	Schema   string `json:"schema"`   // up, behind, ahead, unknown
	Temporal string `json:"temporal"` // up, down

	// DatabaseError is why the database is down, in Postgres's own words where there are any.
	DatabaseError string `json:"database_error,omitempty"`
}

type health struct {
	deps     Deps
	draining *atomic.Bool

	mu            sync.Mutex
	schemaRightAt time.Time
	last          readiness
	lastAt        time.Time
}

func (h *health) register(to gin.IRoutes) {
	for _, method := range []string{http.MethodGet, http.MethodHead} { // load balancers ask with either
		to.Handle(method, "/healthz", h.alive)
		to.Handle(method, "/readyz", h.ready)
	}
}

func (h *health) alive(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"status": "ok"}) }

func (h *health) ready(c *gin.Context) {
	found := h.remembered()
	status := http.StatusOK
	if found.Status == "down" || found.Status == "stopping" {
		status = http.StatusServiceUnavailable
	}
	c.JSON(status, found)
}

// remembered checks once for everybody who asks at the same time or a little later.
func (h *health) remembered() readiness {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lastAt.IsZero() || time.Since(h.lastAt) > outcomeMemory {
		// Not in the context of the request: its client may leave, and others wait for the outcome.
		h.last = h.check(context.Background())
		h.lastAt = time.Now()
	}
	found := h.last
	if h.draining.Load() {
		found.Status = "stopping"
	}
	return found
}

func (h *health) check(ctx context.Context) readiness {
	found := readiness{Status: "ok", Database: "up", Schema: "unknown", Temporal: "up"}
	var temporal sync.WaitGroup
	temporal.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, temporalLimit)
		defer cancel()
		if h.deps.Starter.Ping(ctx) != nil {
			found.Temporal = "down"
		}
	})
	database, cancel := context.WithTimeout(ctx, databaseLimit)
	defer cancel()
	if err := h.deps.Store.Ready(database); err != nil {
		found.Database, found.DatabaseError = "down", store.Outage(err)
	} else {
		found.Schema = h.schema(database)
	}
	temporal.Wait()

	switch {
	case found.Database != "up", found.Schema == "behind", found.Schema == "unknown":
		found.Status = "down"
	case found.Temporal != "up", found.Schema == "ahead": // a rolling update migrates first
		found.Status = "degraded"
	}
	return found
}

func (h *health) schema(ctx context.Context) string {
	if time.Since(h.schemaRightAt) < schemaMemory {
		return "up"
	}
	err := migrations.Check(ctx, h.deps.Settings.DatabaseURL)
	switch {
	case errors.Is(err, migrations.ErrBehind):
		return "behind"
	case errors.Is(err, migrations.ErrAhead):
		return "ahead"
	case err != nil:
		return "unknown"
	}
	h.schemaRightAt = time.Now()
	return "up"
}
