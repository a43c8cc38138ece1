// Package api is the HTTP side of the product: the REST API, Twilio's webhooks, health, metrics and
// the API's own description. It accepts notifications into the ledger and has their workflows
// started beside the requests, so it goes on accepting while Temporal is away.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/todoku/todoku/api/background"
	"github.com/todoku/todoku/api/problem"
	v1 "github.com/todoku/todoku/api/v1"
	"github.com/todoku/todoku/api/webhook"
	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/settings"
	"github.com/todoku/todoku/settlement"
	"github.com/todoku/todoku/store"
)

// Starter is what the API needs of the door to Temporal.
type Starter interface {
	v1.Starter
	settlement.Signaler
	// Ping reports whether Temporal answers.
	Ping(ctx context.Context) error
}

// Deps are what a Server works with; all are needed but DrainDelay and Ops.
type Deps struct {
	Store    *store.Store
	Starter  Starter
	Settings *settings.Settings
	Logger   *slog.Logger
	// DrainDelay is how long a server that was told to stop still takes requests while /readyz says
	// 503, for load balancers and for clients whose connections it asks to end. Default: 0.
	DrainDelay time.Duration
	// Ops is the listener for /metrics and /docs, and for /healthz and /readyz too. Default: all are on the listener
	// of the API.
	Ops net.Listener
}

const (
	startsAtOnce   = 16     // starts of workflows in flight; the relay takes the rest
	signalsAtOnce  = 16     // signals in flight
	signalsWaiting = 10_000 // signals in line; the workflows' own checks take the rest
	maxHeaderBytes = 16 << 10

	// requestLimit ends a request whose database does not answer, well before the server's own
	// time-outs.
	requestLimit = 10 * time.Second
	// stopLimit bounds a graceful stop: the requests, and then what they set off.
	stopLimit = 20 * time.Second
)

// Server is the API. It is an http.Handler; Run serves it.
type Server struct {
	deps      Deps
	engine    *gin.Engine
	ops       *gin.Engine // health, metrics and docs on a listener of their own; nil: engine has them
	resources *v1.API
	starts    *background.Tasks
	signals   *background.Tasks
	health    *health
	draining  atomic.Bool // connections end with their next answer
	refusing  atomic.Bool // and that answer is a refusal
	busy      connections
}

// New puts the API together. It touches neither the network nor the database.
func New(deps Deps) (*Server, error) {
	s := &Server{
		deps:    deps,
		starts:  background.NewTasks(startsAtOnce, 0),
		signals: background.NewTasks(signalsAtOnce, signalsWaiting),
	}
	s.health = &health{deps: deps, draining: &s.draining}
	validator, err := newValidator(deps.Settings)
	if err != nil {
		return nil, err
	}
	s.engine = s.newEngine()

	description := describe()
	resources := humagin.New(s.engine, huma.Config{
		OpenAPI:       description,
		Formats:       map[string]huma.Format{"application/json": v1.Format, "json": v1.Format},
		DefaultFormat: "application/json",
	})
	notifier := &settlement.Notifier{Store: deps.Store, Workflows: deps.Starter, Log: deps.Logger, Submit: s.signals.Submit}
	s.resources = &v1.API{Store: deps.Store, Starter: deps.Starter, Settings: deps.Settings, Logger: deps.Logger, Starts: s.starts, Notifier: notifier}
	s.resources.Register(resources)
	s.resources.RegisterStreams(s.engine, resources)
	(&webhook.Handler{Store: deps.Store, Notifier: notifier, Validator: validator, Logger: deps.Logger}).Register(s.engine)
	(&webhook.Calls{
		Store: deps.Store, Validator: validator, Logger: deps.Logger, PublicURL: deps.Settings.PublicURL, Region: deps.Settings.DefaultRegion,
		Countries: deps.Settings.AllowedCountries, NumberKinds: deps.Settings.AllowedNumberKinds, HashKey: []byte(deps.Settings.PhoneHashKey),
		Limits: store.InboundLimits{Open: deps.Settings.InboundMaxCalls, PerSecond: deps.Settings.InboundCallsPerSecond},
	}).Register(s.engine)

	s.health.register(s.engine)
	operations := s.engine
	if deps.Ops != nil {
		s.ops = s.newEngine()
		operations = s.ops
		s.health.register(operations)
	}
	operations.GET("/metrics", gin.WrapH(promhttp.Handler()))
	if err := registerDocs(operations, description); err != nil {
		return nil, err
	}
	return s, nil
}

// newValidator is nil where Twilio is given no address to call, or nothing to sign with.
func newValidator(s *settings.Settings) (*carrier.SignatureValidator, error) {
	if s.PublicURL == "" || s.TwilioAuthToken == "" {
		return nil, nil
	}
	validator, err := carrier.NewSignatureValidator(s.TwilioAuthToken, s.PublicURL, s.TwilioAuthTokenPrevious)
	if err != nil {
		return nil, fmt.Errorf("prepare the webhooks: %w", err)
	}
	validator.PreviousUsed = webhook.CountPreviousToken
	return validator, nil
}

func (s *Server) newEngine() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.HandleMethodNotAllowed = true
	engine.RedirectTrailingSlash = false
	_ = engine.SetTrustedProxies(s.deps.Settings.TrustedProxies) // they were checked; without any, no header says who the client is
	engine.RemoteIPHeaders = []string{"X-Forwarded-For"}
	engine.Use(identify, observe(s.deps.Logger), s.leave, limit, recoverPanics(s.deps.Logger), wholeQuery)
	engine.NoRoute(func(c *gin.Context) {
		problem.Write(c.Writer, problem.New(problem.RouteNotFound, "there is nothing at this address: see /docs"))
	})
	engine.NoMethod(func(c *gin.Context) {
		problem.Write(c.Writer, problem.New(problem.MethodNotAllowed, "this address has no such method: use one of those in the header Allow"))
	})
	return engine
}

// leave ends the connections of a server that stops, each after an answer, so that no client loses a
// request on a connection that closes under it.
func (s *Server) leave(c *gin.Context) {
	if s.draining.Load() {
		c.Header("Connection", "close")
	}
	if s.refusing.Load() {
		problem.Write(c.Writer, problem.Leaving())
		c.Abort()
		return
	}
	c.Next()
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.serve(s.engine, w, r) }

func (s *Server) serve(engine *gin.Engine, w http.ResponseWriter, r *http.Request) {
	body := readToItsEnd(r)
	engine.ServeHTTP(w, r)
	if s.draining.Load() {
		body.discard(w, discardLimitAtStop)
	} else {
		body.discard(w, discardLimit)
	}
}

func (s *Server) newHTTPServer(engine *gin.Engine) *http.Server {
	return &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(engine, w, r) }),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.deps.Logger.Handler(), slog.LevelDebug), // what clients do to connections
	}
}

// Run serves on the listener until ctx ends, and then stops without losing anything. At first /readyz
// says 503, and each connection is closed after its next answer. After DrainDelay no new connections
// are taken and new requests are answered with 503 and Retry-After; streams of events end, and requests in
// flight are finished, and so are the starts and signals that they set off, all within 20 s. It returns nil
// after a clean stop.
func (s *Server) Run(ctx context.Context, listener net.Listener) error {
	if ops := s.deps.Ops; ops != nil {
		operations := s.newHTTPServer(s.ops)
		defer operations.Close()
		go func() {
			if err := operations.Serve(ops); !errors.Is(err, http.ErrServerClosed) {
				s.deps.Logger.Error("health, metrics and docs are not served any more", "error", err)
			}
		}()
	}
	server := s.newHTTPServer(s.engine)
	server.ConnState = s.busy.follow
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return errors.Join(fmt.Errorf("serve HTTP: %w", err), s.finish(context.WithoutCancel(ctx)))
	case <-ctx.Done():
	}

	s.draining.Store(true)
	time.Sleep(s.deps.DrainDelay)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	s.refusing.Store(true)
	s.resources.Leave()
	err := listener.Close()
	<-ended // with the error of a listener that was closed
	err = errors.Join(err, s.busy.wait(stop))
	// From here on http.Server drops what it reads without an answer, so everything has its own by now.
	if late := server.Shutdown(stop); late != nil {
		err = errors.Join(err, fmt.Errorf("close connections: %w", late), server.Close())
	}
	return errors.Join(err, s.finish(stop))
}

// finish waits for what the requests set off.
func (s *Server) finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	if err := errors.Join(s.starts.Drain(ctx), s.signals.Drain(ctx)); err != nil {
		return fmt.Errorf("finish starts and signals: %w", err)
	}
	return nil
}
