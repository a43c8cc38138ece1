// Package simulator is a stand-in for Twilio that behaves like the real one, its faults included.
//
// It answers on Twilio's own paths for messages, calls, TaskRouter, Studio flows and the account's numbers, so
// twilio-go and the product's carrier package talk to it unchanged, posts callbacks signed as Twilio signs them, and
// is steered under /_simulator/:
//
//	GET  /_simulator/stats      what was created and called back since the last reset, and how closely spaced
//	GET  /_simulator/messages   every message, oldest first, with its callbacks
//	GET  /_simulator/calls      every outbound call, oldest first, with its callbacks
//	POST /_simulator/reset      forget everything: records, pending callbacks and behaviour
//	PUT  /_simulator/behaviour  how to behave from now on (see [Behaviour]); GET shows it
//	POST /_simulator/inbound    people ring in from now on (see [Callers]); GET lists their calls
//	POST /_simulator/operators  {"activity": "Available"}: every TaskRouter worker moves to that activity
//
// A request reads from the top of this file: [Simulator.ServeHTTP] finds the caller and what the path names,
// create.go takes creates and their faults, message.go and call.go know the two resources, and world.go moves
// them along their statuses and tells the callback URL.
//
// What accounts keep begins in account.go: collection.go makes, lists and changes it, workspace.go, worker.go,
// workflow.go, task.go and flow.go say what is special about each, and routing.go brings tasks to workers. Who rings
// in begins in inbound.go; inbound_call.go follows TwiML, and stay.go waits in the queue.
package simulator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"
)

// DefaultAddr is where [Simulator.Run] listens when neither a listener nor Options.Addr is given.
const DefaultAddr = "127.0.0.1:9911"

// nameHeader is the header of every response by which the simulator says that it is not Twilio.
const nameHeader = "Todoku-Simulator"

// stopTimeout is how long Run waits for requests in flight once its context is done.
const stopTimeout = 5 * time.Second

// Options are the simulator's settings; the zero value works.
type Options struct {
	// Addr is the host:port that Run listens on when it gets no listener; DefaultAddr when empty.
	Addr string
	// AuthToken signs the callbacks. Empty: each is signed with the password that came with the create, so
	// that any token works.
	AuthToken string
	// Logger hears of changes of behaviour and of failed callbacks, never of numbers, bodies or credentials.
	// Nil: nothing is logged.
	Logger *slog.Logger
}

// Simulator is an http.Handler that stands in for Twilio. Close it when done.
type Simulator struct {
	options Options
	world   atomic.Pointer[world]
}

// New returns a simulator that nobody has sent anything to yet, with [DefaultBehaviour].
func New(options Options) *Simulator {
	if options.Addr == "" {
		options.Addr = DefaultAddr
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Simulator{options: options}
	s.world.Store(newWorld(options.Logger))
	return s
}

// Close drops what is pending and waits, for a second at most, until no callback is in flight any more. Requests
// that still arrive are answered, but nothing follows from them. For some two minutes goroutines go on that fasthttp
// has for closing idle connections; they sleep, and there is nothing left for them to close.
func (s *Simulator) Close() {
	s.world.Load().close()
}

// Run serves on ln, or on Options.Addr when ln is nil, until ctx is done; then it answers the requests in
// flight, without the rest of their latency, and closes the simulator. It returns nil after such a stop. Meanwhile the
// process has a GC percentage of 200.
func (s *Simulator) Run(ctx context.Context, ln net.Listener) error {
	defer s.Close()
	// Records are kept and most else is garbage at once: it is collected at three times the records' size, not at twice.
	defer debug.SetGCPercent(debug.SetGCPercent(200))
	if ln == nil {
		var err error
		if ln, err = net.Listen("tcp", s.options.Addr); err != nil {
			return fmt.Errorf("simulator: listen on %s: %w", s.options.Addr, err)
		}
	}
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(s.options.Logger.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()

	select {
	case err := <-served:
		return fmt.Errorf("simulator: serve on %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := server.Shutdown(stopCtx); err != nil {
		err = errors.Join(err, server.Close())
		return fmt.Errorf("simulator: stop: requests were still in flight after %s: %w", stopTimeout, err)
	}
	<-served
	return nil
}

// ServeHTTP answers both Twilio's paths and the simulator's own.
func (s *Simulator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(nameHeader, "1")
	if name, ok := strings.CutPrefix(r.URL.Path, "/_simulator/"); ok {
		s.control(w, r, name)
		return
	}
	world := s.world.Load()
	arrived := world.now()
	w.Header().Set("Date", arrived.UTC().Format(http.TimeFormat))
	if strings.HasPrefix(r.URL.Path, "/v1/") || strings.HasPrefix(r.URL.Path, "/v2/") {
		s.serveKept(world, w, r)
		return
	}
	target, ok := parseTarget(r.URL.Path)
	if !ok {
		refusal(notFound(r.URL.Path)).write(w)
		return
	}
	if target.channel == numbers {
		s.serveNumbers(world, w, r, target)
		return
	}
	caller, failed := s.authenticate(r, target.account)
	if failed != nil {
		refusal(failed).write(w)
		return
	}
	if target.sid == "" && r.Method == http.MethodPost {
		world.serveCreate(w, r, target.channel, caller, arrived)
		return
	}
	world.pause(r.Context())
	world.serve(r, target).write(w)
}

// serve answers everything but a create.
func (w *world) serve(r *http.Request, target target) answer {
	switch {
	case target.sid == "" && r.Method == http.MethodGet:
		return w.list(r, target)
	case target.sid == "":
		return refusal(methodNotAllowed())
	case r.Method == http.MethodGet:
		return w.fetch(target)
	case r.Method == http.MethodPost:
		return w.update(r, target)
	case r.Method == http.MethodDelete:
		return w.delete(target)
	default:
		return refusal(methodNotAllowed())
	}
}

// pause lets the behaviour's latency pass, or less when the server is stopping or the client has gone.
func (w *world) pause(ctx context.Context) {
	latency := milliseconds(w.behave().LatencyMS)
	if latency == 0 {
		return
	}
	timer := time.NewTimer(latency)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
