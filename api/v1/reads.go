package v1

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/panics"
	"github.com/todoku/todoku/store"
)

// reads bounds how many connections to the database are read with at the same time, so that what is accepted and what
// Twilio reports finds one, however much is asked.
type reads struct {
	single  chan struct{} // GETs that are answered at once
	exports chan struct{} // files
	batches *batchReads
}

// readWait is how long a request waits for its turn to read.
const readWait = 5 * time.Second

func newReads(s *store.Store) *reads {
	connections := s.MaxConnections()
	shared := make(chan struct{}, max(connections/8, 1))
	return &reads{
		single:  make(chan struct{}, max(connections*3/8, 1)),
		exports: make(chan struct{}, max(connections/8, 1)),
		batches: &batchReads{read: func(ctx context.Context, id uuid.UUID) (store.Batch, error) {
			if err := takeTurn(ctx, shared); err != nil {
				return store.Batch{}, err
			}
			defer func() { <-shared }()
			return s.Batch(ctx, id)
		}},
	}
}

// takeTurn waits for a place. Its error is an answer.
func takeTurn(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(readWait)
	defer timer.Stop()
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
	case <-timer.C:
	}
	return problem.New(problem.ReadsBusy, "too many requests read at the same time: try again after the seconds in Retry-After, and ask less often").
		WithHeader("Retry-After", "5")
}

// limit lets a GET wait for its turn. It is a middleware of huma's.
func (r *reads) limit(ctx huma.Context, next func(huma.Context)) {
	if ctx.Method() == http.MethodGet {
		if err := takeTurn(ctx.Context(), r.single); err != nil {
			refuse(ctx, err)
			return
		}
		defer func() { <-r.single }()
	}
	next(ctx)
}

// batchReads reads a batch once for all that ask for it at the same time. It is safe for concurrent use.
type batchReads struct {
	read func(context.Context, uuid.UUID) (store.Batch, error)

	mu     sync.Mutex
	latest map[uuid.UUID]*batchRead
}

// batchRead is one statement, and the one after it.
type batchRead struct {
	done  chan struct{}
	batch store.Batch
	err   error
	began time.Time
	ended bool
	next  *batchRead // for those that came after this one began; nil: there are none
}

// fresh gives the batch as it is at some time after the call.
func (r *batchReads) fresh(ctx context.Context, id uuid.UUID) (store.Batch, error) {
	r.mu.Lock()
	read := r.latest[id]
	switch {
	case read == nil || read.ended:
		read = r.begin(id)
	case read.next == nil:
		read.next = &batchRead{done: make(chan struct{})}
		read = read.next
	default:
		read = read.next
	}
	r.mu.Unlock()
	return read.wait(ctx)
}

// recent gives the batch as it was at most maxAge ago.
func (r *batchReads) recent(ctx context.Context, id uuid.UUID, maxAge time.Duration) (store.Batch, error) {
	r.mu.Lock()
	read := r.latest[id]
	if read == nil || read.ended && (read.err != nil || time.Since(read.began) > maxAge) {
		read = r.begin(id)
	}
	r.mu.Unlock()
	return read.wait(ctx)
}

func (b *batchRead) wait(ctx context.Context) (store.Batch, error) {
	select {
	case <-b.done:
		return b.batch, b.err
	case <-ctx.Done():
		return store.Batch{}, ctx.Err()
	}
}

// begin starts a statement, and forgets those that are too old for anybody.
func (r *batchReads) begin(id uuid.UUID) *batchRead {
	if r.latest == nil {
		r.latest = make(map[uuid.UUID]*batchRead)
	}
	for other, read := range r.latest {
		if read.ended && time.Since(read.began) > progressInterval {
			delete(r.latest, other)
		}
	}
	read := &batchRead{done: make(chan struct{})}
	r.start(id, read)
	return read
}

func (r *batchReads) start(id uuid.UUID, read *batchRead) {
	read.began = time.Now()
	r.latest[id] = read
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), sharedReadLimit)
		defer cancel()
		batch, err := r.readOne(ctx, id)
		r.mu.Lock()
		defer r.mu.Unlock()
		read.batch, read.err, read.ended = batch, err, true
		close(read.done)
		if read.next != nil {
			r.start(id, read.next)
			read.next = nil
		}
	}()
}

// readOne makes an error of a panic, which would end the process and not only the requests.
func (r *batchReads) readOne(ctx context.Context, id uuid.UUID) (batch store.Batch, err error) {
	err = panics.Catch(func() error {
		var failure error
		batch, failure = r.read(ctx, id)
		return failure
	})
	return batch, err
}

// sharedReadLimit bounds a statement that no single request waits for alone.
const sharedReadLimit = 10 * time.Second
