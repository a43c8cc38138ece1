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
	// ErrorCode is Twilio's code of twilio_error, which needs it.
	ErrorCode *int `json:"error_code,omitempty"`
	// HTTPStatus is that of twilio_error, 400 by default, and of gateway, 403 by default.
	HTTPStatus *int `json:"http_status,omitempty"`
	// Body is what gateway answers: html (the default), empty, or any text, such as {} or null, to the letter.
	Body *string `json:"body,omitempty"`
	// Forwarded says that gateway answers after the create was accepted.
	Forwarded bool `json:"forwarded,omitempty"`
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
	// TwilioError answers with Twilio's error document and the given code; nothing is created.
	TwilioError FaultKind = "twilio_error"
	// Gateway answers for Twilio without Twilio's code, as proxies and firewalls do, before or after the create.
	Gateway FaultKind = "gateway"
)

var faultKinds = []FaultKind{
	AcceptThenDrop, Refuse, HTTP500AfterAccept, HTTP500, HTML503AfterAccept, HTML503, RateLimited,
	TwilioError, Gateway,
}

// afterAccept reports whether the fault hits a create that was accepted, rather than keeping it out.
func (f *Fault) afterAccept() bool {
	switch f.Kind {
	case AcceptThenDrop, HTTP500AfterAccept, HTML503AfterAccept:
		return true
	}
	return f.Kind == Gateway && f.Forwarded
}

func (f *Fault) validate() error {
	switch {
	case !slices.Contains(faultKinds, f.Kind):
		return fmt.Errorf("kind must be one of %s", join(faultKinds))
	case f.Count != nil && *f.Count < 0:
		return errors.New("count must not be negative; null hits every create")
	case f.RetryAfterS != nil && *f.RetryAfterS < 0:
		return errors.New("retry_after_s must not be negative")
	case (f.ErrorCode != nil) != (f.Kind == TwilioError):
		return errors.New("error_code goes with the kind twilio_error, which needs it")
	case f.ErrorCode != nil && (*f.ErrorCode < 10000 || *f.ErrorCode > 99999):
		return errors.New("error_code must have five digits, as Twilio's have")
	case f.HTTPStatus != nil && f.Kind != TwilioError && f.Kind != Gateway:
		return errors.New("http_status goes with the kinds twilio_error and gateway only")
	case f.HTTPStatus != nil && (*f.HTTPStatus < 200 || *f.HTTPStatus > 599):
		return errors.New("http_status must be between 200 and 599")
	case f.Kind == TwilioError && f.HTTPStatus != nil && *f.HTTPStatus < 400:
		return errors.New("http_status of twilio_error must be at least 400")
	case (f.Body != nil || f.Forwarded) && f.Kind != Gateway:
		return errors.New("body and forwarded go with the kind gateway only")
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
	case TwilioError:
		return refusal(&failure{
			Code: *f.ErrorCode, Message: "The simulator was told to refuse this", Status: f.status(http.StatusBadRequest),
		})
	case Gateway:
		return f.gatewayAnswer()
	default: // AcceptThenDrop, Refuse
		return answer{drop: true}
	}
}

func (f *Fault) status(otherwise int) int {
	if f.HTTPStatus == nil {
		return otherwise
	}
	return *f.HTTPStatus
}

// gatewayAnswer is what something between the client and Twilio answers.
func (f *Fault) gatewayAnswer() answer {
	status := f.status(http.StatusForbidden)
	a := answer{status: status, contentType: "text/html", server: "simulated-gateway"}
	switch {
	case f.Body == nil || *f.Body == "html":
		a.body = fmt.Appendf(nil, "<html><head><title>%d</title></head><body>Blocked by policy</body></html>\n", status)
	case *f.Body == "empty":
	default:
		a.contentType, a.body = "application/json", []byte(*f.Body)
	}
	if status == http.StatusNoContent || status == http.StatusNotModified {
		a.body = nil
	}
	return a
}

// takeFault returns the fault that the next create meets at this stage, if any, and counts it. The world is
// locked.
func (w *world) takeFault(afterAccept bool) *Fault {
	fault := w.behaviour.Fault
	if fault == nil || fault.afterAccept() != afterAccept {
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
