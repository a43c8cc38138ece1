package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
)

// API is a client of the REST API on keep-alive connections. It is safe for concurrent use.
type API struct {
	base, key string
	http      *http.Client
}

func newAPI(base, key string) *API {
	return &API{base: base, key: key, http: &http.Client{
		Timeout:   time.Minute, // a batch of a million takes a while
		Transport: &http.Transport{MaxIdleConns: 256, MaxIdleConnsPerHost: 256},
	}}
}

// A Request is the body of POST /api/v1/notifications, and the key under which it is repeated.
type Request struct {
	Channel   string `json:"channel"`
	To        string `json:"to"`
	Body      string `json:"body"`
	Reference string `json:"reference,omitempty"`

	IdempotencyKey string `json:"-"`
}

// Number is the i-th of a row of numbers that people in Japan may have, each for one recipient. They
// only ever reach the simulator.
func Number(i int) string { return fmt.Sprintf("+8190%08d", 10_000_000+i) }

// An Accepted notification was answered 202.
type Accepted struct {
	ID      uuid.UUID
	To      string
	BeganAt time.Time     // when the call that was answered began
	Took    time.Duration // that call
	Tries   int
}

// A Refusal is an answer other than 202.
type Refusal struct {
	Status     int
	RetryAfter time.Duration // 0: the answer does not ask for another try
	Body       string
}

func (r *Refusal) Error() string { return fmt.Sprintf("the API answered %d: %s", r.Status, r.Body) }

// Post makes one call. Its error is a *Refusal when it was answered.
func (a *API) Post(ctx context.Context, request Request) (Accepted, error) {
	accepted := Accepted{To: request.To, Tries: 1}
	body, err := json.Marshal(request)
	if err != nil {
		return accepted, err
	}
	var shown struct{ ID uuid.UUID }
	accepted.BeganAt = time.Now()
	err = a.call(ctx, exchange{
		method: http.MethodPost, path: "/notifications", media: "application/json", body: body,
		key: request.IdempotencyKey, want: http.StatusAccepted, into: &shown,
	})
	accepted.Took = time.Since(accepted.BeganAt)
	accepted.ID = shown.ID
	return accepted, err
}

// exchange is one call and what its answer must be.
type exchange struct {
	method, path string
	media        string // of the body
	body         []byte
	key          string // Idempotency-Key; empty: none
	want         int
	into         any
}

// call makes one call. Its error is a *Refusal when it was answered.
func (a *API) call(ctx context.Context, e exchange) error {
	request, err := http.NewRequestWithContext(ctx, e.method, a.base+"/api/v1"+e.path, bytes.NewReader(e.body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+a.key)
	if e.media != "" {
		request.Header.Set("Content-Type", e.media)
	}
	if e.key != "" {
		request.Header.Set("Idempotency-Key", e.key)
	}
	answer, err := a.http.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != e.want {
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After")) // a number of seconds, or not there
		return &Refusal{Status: answer.StatusCode, RetryAfter: time.Duration(seconds) * time.Second, Body: string(text)}
	}
	return json.Unmarshal(text, e.into)
}

// SendWithin is how long Send goes on, longer than any outage that a rig is put through.
const SendWithin = 3 * time.Minute

// Send repeats the call, under the same key, until it is accepted: after what a refusal asks for, and
// soon after an answer that was lost. It gives up on a refusal that asks for nothing, and after
// SendWithin.
func (a *API) Send(ctx context.Context, request Request) (accepted Accepted, err error) {
	tries, err := a.repeat(ctx, func() (err error) {
		accepted, err = a.Post(ctx, request)
		return err
	})
	accepted.Tries = tries
	return accepted, err
}

func (a *API) repeat(ctx context.Context, once func() error) (tries int, err error) {
	began := time.Now()
	for tries = 1; ; tries++ {
		if err = once(); err == nil {
			return tries, nil
		}
		pause := 250 * time.Millisecond
		refusal, answered := errors.AsType[*Refusal](err)
		if answered {
			pause = refusal.RetryAfter
		}
		if pause == 0 || ctx.Err() != nil || time.Since(began) > SendWithin {
			return tries, fmt.Errorf("not accepted by %d calls in %v: %w", tries, time.Since(began).Round(time.Second), err)
		}
		sleep(ctx, pause)
	}
}

// SendAll sends the requests over so many connections at once, and returns what was accepted and the
// first error.
func (a *API) SendAll(ctx context.Context, connections int, requests []Request) ([]Accepted, error) {
	var mu sync.Mutex
	var all []Accepted
	var failed error
	queue := make(chan Request)
	var lanes sync.WaitGroup
	for range connections {
		lanes.Go(func() {
			for request := range queue {
				accepted, err := a.Send(ctx, request)
				mu.Lock()
				if err == nil {
					all = append(all, accepted)
				} else if failed == nil {
					failed = err
				}
				mu.Unlock()
			}
		})
	}
	for _, request := range requests {
		queue <- request
	}
	close(queue)
	lanes.Wait()
	return all, failed
}
