package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/todoku/todoku/simulator"
)

// Simulator is the stand-in for Twilio, seen from its controls.
type Simulator struct {
	URL  string
	http *http.Client
}

func newSimulator(url string) *Simulator {
	return &Simulator{URL: url, http: &http.Client{Timeout: time.Minute}}
}

// A Create is an SMS or a call that the simulator has accepted.
type Create struct {
	SID       string    `json:"sid"`
	To        string    `json:"to"`
	From      string    `json:"from"`
	Status    string    `json:"status"`
	CreatedAt time.Time `json:"created_at"` // when the request arrived
	Callbacks []struct {
		Status     string    `json:"status"`
		At         time.Time `json:"at"`
		HTTPStatus *int      `json:"http_status"`
	} `json:"callbacks"`
}

// Messages are all SMS since the last reset, in the order of their arrival.
func (s *Simulator) Messages(ctx context.Context) ([]Create, error) {
	return s.creates(ctx, "messages")
}

// Calls are all calls since the last reset, in the order of their arrival.
func (s *Simulator) Calls(ctx context.Context) ([]Create, error) { return s.creates(ctx, "calls") }

func (s *Simulator) creates(ctx context.Context, kind string) ([]Create, error) {
	var answer struct{ Items []Create }
	err := s.control(ctx, http.MethodGet, kind, nil, &answer)
	return answer.Items, err
}

// ByNumber are all SMS and calls since the last reset, by recipient.
func (s *Simulator) ByNumber(ctx context.Context) (map[string][]Create, error) {
	messages, err := s.Messages(ctx)
	if err != nil {
		return nil, err
	}
	calls, err := s.Calls(ctx)
	if err != nil {
		return nil, err
	}
	by := map[string][]Create{}
	for _, create := range slices.Concat(messages, calls) {
		by[create.To] = append(by[create.To], create)
	}
	return by, nil
}

// Count is how many SMS and calls there were since the last reset, and how many of those went to a number that
// had got one already.
func (s *Simulator) Count(ctx context.Context) (creates, duplicates int, err error) {
	var stats struct{ Creates, Duplicates int }
	err = s.control(ctx, http.MethodGet, "stats", nil, &stats)
	return stats.Creates, stats.Duplicates, err
}

// Reset makes the simulator forget everything, its behaviour too.
func (s *Simulator) Reset(ctx context.Context) error {
	return s.control(ctx, http.MethodPost, "reset", nil, nil)
}

// Behave sets how it behaves from now on; change is applied to its defaults.
func (s *Simulator) Behave(ctx context.Context, change func(*simulator.Behaviour)) error {
	behaviour := simulator.DefaultBehaviour()
	change(&behaviour)
	return s.control(ctx, http.MethodPut, "behaviour", behaviour, nil)
}

// FaultsLeft is how many creates the present fault is still to hit.
func (s *Simulator) FaultsLeft(ctx context.Context) (int, error) {
	var now simulator.Behaviour
	if err := s.control(ctx, http.MethodGet, "behaviour", nil, &now); err != nil || now.Fault == nil || now.Fault.Count == nil {
		return 0, err
	}
	return *now.Fault.Count, nil
}

func (s *Simulator) control(ctx context.Context, method, name string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, s.URL+"/_simulator/"+name, bytes.NewReader(text))
	if err != nil {
		return err
	}
	answer, err := s.http.Do(request)
	if err != nil {
		return fmt.Errorf("ask the simulator: %w", err)
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return fmt.Errorf("ask the simulator: %w", err)
	case answer.StatusCode > 299:
		return fmt.Errorf("the simulator answered %d to %s %s: %s", answer.StatusCode, method, name, text)
	case into == nil:
		return nil
	}
	return json.Unmarshal(text, into)
}
