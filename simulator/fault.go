package simulator

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// Fault is something that goes wrong with creates, and with nothing else.
type Fault struct {
	Kind FaultKind `json:"kind"`
	// Count is how many creates it hits, from now on; it counts down. Null: all, until the behaviour changes.
	Count *int `json:"count"`
	// RetryAfterS is the Retry-After of rate_limited in seconds; 1 by default.
	RetryAfterS *int `json:"retry_after_s"`
}

// FaultKind is one way for a create to go wrong.
type FaultKind string

const (
	// AcceptThenDrop creates the record and closes the connection without an answer.
	AcceptThenDrop FaultKind = "accept_then_drop"
	// Refuse closes the connection without an answer; nothing is created.
	Refuse FaultKind = "refuse"
	// HTTP500AfterAccept creates the record and answers 500 with Twilio's code 20500.
	HTTP500AfterAccept FaultKind = "http_500_after_accept"
	// HTTP500 answers 500 with Twilio's code 20500; nothing is created.
	HTTP500 FaultKind = "http_500"
	// HTML503AfterAccept creates the record and answers 503 with a page of HTML, as a load balancer does.
	HTML503AfterAccept FaultKind = "html_503_after_accept"
	// HTML503 answers 503 with a page of HTML; nothing is created.
	HTML503 FaultKind = "html_503"
	// RateLimited answers 429 with Twilio's code 20429 and Retry-After; nothing is created.
	RateLimited FaultKind = "rate_limited"
)

var faultKinds = []FaultKind{
	AcceptThenDrop, Refuse, HTTP500AfterAccept, HTTP500, HTML503AfterAccept, HTML503, RateLimited,
}

// afterAccept reports whether the fault hits a create that was accepted, rather than keeping it out.
func (k FaultKind) afterAccept() bool {
	return k == AcceptThenDrop || k == HTTP500AfterAccept || k == HTML503AfterAccept
}

func (f *Fault) validate() error {
	switch {
	case !slices.Contains(faultKinds, f.Kind):
		return fmt.Errorf("kind must be one of %s", join(faultKinds))
	case f.Count != nil && *f.Count < 0:
		return errors.New("count must not be negative; null hits every create")
	case f.RetryAfterS != nil && *f.RetryAfterS < 0:
		return errors.New("retry_after_s must not be negative")
	}
	return nil
}

// answer is what the client gets in place of the one that it expects.
func (f *Fault) answer() answer {
	switch f.Kind {
	case HTTP500, HTTP500AfterAccept:
		return refusal(&failure{
			Code:    20500,
			Message: "An internal server error has occurred",
			Status:  http.StatusInternalServerError,
		})
	case HTML503, HTML503AfterAccept:
		return answer{
			status:      http.StatusServiceUnavailable,
			contentType: "text/html",
			body: []byte("<html><head><title>503 Service Temporarily Unavailable</title></head>" +
				"<body><center><h1>503 Service Temporarily Unavailable</h1></center></body></html>\n"),
		}
	case RateLimited:
		a := refusal(&failure{Code: 20429, Message: "Too Many Requests", Status: http.StatusTooManyRequests})
		a.retryAfter = 1
		if f.RetryAfterS != nil {
			a.retryAfter = *f.RetryAfterS
		}
		return a
	default: // AcceptThenDrop, Refuse
		return answer{drop: true}
	}
}

// takeFault returns the fault that the next create meets at this stage, if any, and counts it. The world is
// locked.
func (w *world) takeFault(afterAccept bool) *Fault {
	fault := w.behaviour.Fault
	if fault == nil || fault.Kind.afterAccept() != afterAccept {
		return nil
	}
	if w.faultsLeft != nil {
		if *w.faultsLeft == 0 {
			return nil
		}
		*w.faultsLeft--
	}
	return fault
}
