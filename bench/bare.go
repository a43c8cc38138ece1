package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
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

// bareLoop posts n messages with twilio-go and nothing else, and returns how many a second.
func bareLoop(ctx context.Context, r *rig.Rig, n, connections int) (float64, error) {
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
				if _, err := api.CreateMessage(new(openapi.CreateMessageParams).SetTo(to).SetFrom(sender).SetBody(text)); err != nil {
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
	err = loop.Wait()
	rate := float64(n) / time.Since(began).Seconds()
	if err != nil {
		return 0, err
	}
	return rate, arrived(ctx, r, n)
}

// arrived fails unless the carrier has got exactly n messages.
func arrived(ctx context.Context, r *rig.Rig, n int) error {
	creates, err := r.Simulator.Messages(ctx)
	if err == nil && len(creates) != n {
		err = fmt.Errorf("the carrier got %d creates for %d messages", len(creates), n)
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
