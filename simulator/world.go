package simulator

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// callbackConnections is how many callbacks are in flight at most.
	callbackConnections = 256
	// closeGrace is how long a world that ends waits for callbacks in flight before it breaks them off.
	closeGrace = time.Second
)

// world is everything since the last reset: a reset makes a new one, so nothing of the old one can leak into it.
type world struct {
	end       context.CancelFunc // ends what the poster has in flight
	timetable *timetable
	couriers  *pool
	poster    *poster
	logger    *slog.Logger

	inFlight sync.WaitGroup  // callbacks, and what else runs in the background
	living   context.Context // of callers and their waiting; done as soon as the world ends
	kill     context.CancelFunc

	mu         sync.Mutex
	closing    bool // no callback is made any more
	behaviour  *Behaviour
	faultsLeft *int // of behaviour.Fault; nil: no end to them
	ledgers    map[channel]*ledger
	drained    map[queue]time.Time // when the next one of a queue may leave it, see queue.go
	callbacks  int                 // attempts, over all records

	// TaskRouter and Studio, see account.go, and those who ring in, see inbound.go.
	accounts    map[string]*account
	writes      int // creates, updates and deletes there that were done
	events      int // attempts to tell of TaskRouter's events
	assignments []assignment
	dialed      []string // numbers that operators were connected with by a document
	expected    int      // inbound calls that were asked for
	inbound     []*inboundCall
	inboundCall map[string]*inboundCall // by SID
	lines       map[string]*line        // of callers who wait, by workflow
}

func newWorld(logger *slog.Logger) *world {
	ctx, end := context.WithCancel(context.Background())
	living, kill := context.WithCancel(ctx)
	w := &world{
		end:       end,
		living:    living,
		kill:      kill,
		timetable: newTimetable(),
		couriers:  &pool{limit: callbackConnections},
		poster:    newPoster(ctx),
		logger:    logger,
		ledgers:   map[channel]*ledger{sms: newLedger(), call: newLedger()},
		drained:   make(map[queue]time.Time),

		accounts:    make(map[string]*account),
		inboundCall: make(map[string]*inboundCall),
		lines:       make(map[string]*line),
	}
	behaviour := DefaultBehaviour()
	w.behaviour = &behaviour
	return w
}

// close ends the world: what is pending is forgotten, and what is in flight is waited for, so that nobody hears of
// the world once it is over.
func (w *world) close() {
	w.mu.Lock()
	w.closing = true
	w.mu.Unlock()
	w.kill()
	w.timetable.close()
	grace := time.AfterFunc(closeGrace, w.end)
	defer grace.Stop()
	w.couriers.close()
	w.inFlight.Wait()
	w.end()
}

// behave is the present behaviour, which nobody changes.
func (w *world) behave() *Behaviour {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.behaviour
}

// background runs do beside everything else, unless the world is ending. The world is locked, and do locks it itself.
func (w *world) background(do func()) {
	if !w.closing {
		w.inFlight.Go(do)
	}
}

// begin lets a record take its first step after a delay, and the others after that.
func (w *world) begin(r *record, delay time.Duration) {
	w.timetable.after(delay, func() { w.step(r) })
}

// step takes the record's next step, hands the callbacks that follow from it to the couriers, and comes back for
// the step after it.
func (w *world) step(r *record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(r.steps) == 0 {
		return // it was canceled or hung up in between
	}
	if wait := w.untilDrained(r); wait > 0 {
		w.timetable.after(wait, func() { w.step(r) })
		return
	}
	w.send(r, w.advance(r))
	if len(r.steps) > 0 {
		w.timetable.after(r.behaviour.callbackDelay(), func() { w.step(r) })
	}
}

// now is what Twilio's clock shows.
func (w *world) now() time.Time { return time.Now().Add(milliseconds(w.behave().ClockOffsetMS)) }

// advance moves the record to its next status and returns the callbacks that are due then. The world is locked.
func (w *world) advance(r *record) []callback {
	s := r.steps[0]
	r.steps = r.steps[1:]
	now := time.Now().Add(milliseconds(w.behaviour.ClockOffsetMS))
	unsent := r.sentAt.IsZero()
	r.kind.enter(r, s, now)
	r.updatedAt = now
	if unsent && !r.sentAt.IsZero() {
		w.ledgers[sms].markSent(r)
	}
	if r.delivery == nil {
		return nil
	}
	return r.delivery.tell(r, s, now)
}

// rush takes all steps of a record at once and sees each callback answered before the next step.
func (w *world) rush(r *record) {
	for {
		w.mu.Lock()
		if len(r.steps) == 0 {
			w.mu.Unlock()
			return
		}
		due := w.advance(r)
		r.forgetDelivery()
		w.mu.Unlock()
		for _, c := range due {
			w.attempt(recordSubject{w, r}, c)
		}
	}
}
