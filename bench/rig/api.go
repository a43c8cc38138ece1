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
		Timeout:   20 * time.Second,
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
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base+"/api/v1/notifications", bytes.NewReader(body))
	if err != nil {
		return accepted, err
	}
	post.Header.Set("Authorization", "Bearer "+a.key)
	post.Header.Set("Content-Type", "application/json")
	if request.IdempotencyKey != "" {
		post.Header.Set("Idempotency-Key", request.IdempotencyKey)
	}
	accepted.BeganAt = time.Now()
	answer, err := a.http.Do(post)
	if err != nil {
		return accepted, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	accepted.Took = time.Since(accepted.BeganAt)
	if err != nil {
		return accepted, err
	}
	if answer.StatusCode != http.StatusAccepted {
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After")) // a number of seconds, or not there
		return accepted, &Refusal{Status: answer.StatusCode, RetryAfter: time.Duration(seconds) * time.Second, Body: string(text)}
	}
	var shown struct{ ID uuid.UUID }
	err = json.Unmarshal(text, &shown)
	accepted.ID = shown.ID
	return accepted, err
}

// SendWithin is how long Send goes on, longer than any outage that a rig is put through.
const SendWithin = 3 * time.Minute

// Send repeats the call, under the same key, until it is accepted: after what a refusal asks for, and
// soon after an answer that was lost. It gives up on a refusal that asks for nothing, and after
// SendWithin.
func (a *API) Send(ctx context.Context, request Request) (Accepted, error) {
	began := time.Now()
	for tries := 1; ; tries++ {
		accepted, err := a.Post(ctx, request)
		accepted.Tries = tries
		if err == nil {
			return accepted, nil
		}
		pause := 250 * time.Millisecond
		refusal, answered := errors.AsType[*Refusal](err)
		if answered {
			pause = refusal.RetryAfter
		}
		if pause == 0 || ctx.Err() != nil || time.Since(began) > SendWithin {
			return accepted, fmt.Errorf("not accepted by %d calls in %v: %w", tries, time.Since(began).Round(time.Second), err)
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
