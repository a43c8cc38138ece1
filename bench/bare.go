package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"time"

	twilio "github.com/twilio/twilio-go/client"
	openapi "github.com/twilio/twilio-go/rest/api/v2010"
	"golang.org/x/sync/errgroup"

	"github.com/todoku/todoku/bench/rig"
)

const (
	account = "AC00000000000000000000000000000000"
	sender  = "+15005550006"
	text    = "ご予約は明日10時です。"
)

// bareLoop posts n messages with twilio-go, has an HTTP server count their callbacks, and does nothing
// else. It returns how many a second were posted and reported as delivered.
func bareLoop(ctx context.Context, r *rig.Rig, n, connections int) (float64, error) {
	delivered, done := atomic.Int64{}, make(chan struct{})
	callbacks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.PostFormValue("MessageStatus") == "delivered" && delivered.Add(1) == int64(n) {
			close(done)
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer callbacks.Close()
	base, err := url.Parse(r.Simulator.URL)
	if err != nil {
		return 0, err
	}
	client := &twilio.Client{
		Credentials: twilio.NewCredentials(account, "simulator"),
		HTTPClient:  &http.Client{Transport: elsewhere{base, &http.Transport{MaxIdleConnsPerHost: connections}}},
	}
	client.SetAccountSid(account)
	api := openapi.NewApiService(&twilio.RequestHandler{Client: client})

	numbers := make(chan string)
	loop, looping := errgroup.WithContext(ctx)
	began := time.Now()
	for range connections {
		loop.Go(func() error {
			for to := range numbers {
				message := new(openapi.CreateMessageParams).SetTo(to).SetFrom(sender).SetBody(text).SetStatusCallback(callbacks.URL)
				if _, err := api.CreateMessage(message); err != nil {
					return fmt.Errorf("create a message in the bare loop: %w", err)
				}
			}
			return nil
		})
	}
	loop.Go(func() error {
		defer close(numbers)
		for i := range n {
			select {
			case numbers <- rig.Number(i):
			case <-looping.Done():
				return looping.Err()
			}
		}
		return nil
	})
	if err := loop.Wait(); err != nil {
		return 0, err
	}
	select {
	case <-done:
	case <-time.After(patience):
		return 0, fmt.Errorf("of %d messages of the bare loop %d were reported as delivered", n, delivered.Load())
	}
	rate := float64(n) / time.Since(began).Seconds()
	return rate, arrived(ctx, r, n)
}

// arrived fails unless the carrier has got exactly n messages, each for another number.
func arrived(ctx context.Context, r *rig.Rig, n int) error {
	creates, duplicates, err := r.Simulator.Count(ctx)
	if err == nil && (creates != n || duplicates > 0) {
		err = fmt.Errorf("the carrier got %d creates for %d messages, %d to a number that had got one", creates, n, duplicates)
	}
	return err
}

// elsewhere sends requests to another address than the one that they name.
type elsewhere struct {
	base *url.URL
	by   http.RoundTripper
}

func (e elsewhere) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = e.base.Scheme, e.base.Host
	return e.by.RoundTrip(r)
}
