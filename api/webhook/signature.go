package webhook

import (
	"errors"
	"net/http"

	"github.com/todoku/todoku/api/problem"
	"github.com/todoku/todoku/carrier"
)

// Why callbacks are rejected: the values of a metric's label.
const (
	reasonOff        = "not_configured"
	reasonUnsigned   = "unsigned"
	reasonForged     = "forged"
	reasonTooLong    = "too_long"
	reasonUnreadable = "unreadable"
	reasonMalformed  = "malformed"
)

// verify reads the form of a callback that Twilio signed, or says why it is refused.
func verify(validator *carrier.SignatureValidator, r *http.Request) (form carrier.Form, reason string, refusal *problem.Problem) {
	if validator == nil {
		return nil, reasonOff, problem.New(problem.CallbacksOff, "callbacks are not set up here: set TODOKU_PUBLIC_URL and TWILIO_AUTH_TOKEN")
	}
	form, err := validator.Receive(r)
	switch {
	case err == nil:
		return form, "", nil
	case errors.Is(err, carrier.ErrUnsigned):
		return nil, reasonUnsigned, problem.New(problem.UnsignedCallback, "the request has no X-Twilio-Signature: only Twilio may call this address")
	case errors.Is(err, carrier.ErrForged):
		return nil, reasonForged, problem.New(problem.ForgedCallback, "the signature is not Twilio's: if Twilio did send this, check TODOKU_PUBLIC_URL and TWILIO_AUTH_TOKEN")
	case errors.Is(err, carrier.ErrCallbackTooLong):
		return nil, reasonTooLong, problem.New(problem.RequestTooLarge, "the body of a callback has at most 64 kB")
	}
	return nil, reasonUnreadable, problem.New(problem.MalformedCallback, "the body cannot be read as a form")
}
