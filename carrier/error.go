package carrier

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Error is a request that did not succeed. Nothing in it repeats an account SID, a number, a URL
// or a body, so it may be logged and may travel in a workflow's history.
type Error struct {
	Op         string        // what was being done: "create SMS"
	Class      Class         // what it means for the next try
	HTTPStatus int           // 0 when no answer was read
	Code       int           // Twilio's error code; 0 when the answer carries none
	Message    string        // Twilio's words or ours, scrubbed
	RetryAfter time.Duration // how long Twilio asks to wait; 0 when it does not say
	RequestID  string        // Twilio-Request-Id, to be quoted to Twilio's support; may be empty
	Gateway    string        // who answered, where the answer is not Twilio's: "HTTP 403, Server: nginx"; else empty

	cause error
}

func (e *Error) Error() string {
	var about []string
	if e.Code != 0 {
		about = append(about, fmt.Sprintf("Twilio error %d", e.Code))
	}
	if e.HTTPStatus != 0 {
		about = append(about, fmt.Sprintf("HTTP %d", e.HTTPStatus))
	}
	about = append(about, string(e.Class))
	message := e.Message
	for _, why := range []error{ErrDeadline, ErrHeld} {
		if errors.Is(e.cause, why) {
			message += ": " + why.Error()
		}
	}
	return fmt.Sprintf("%s: %s (%s)", e.Op, message, strings.Join(about, ", "))
}

// Unwrap returns what went wrong below HTTP: a context's error, ErrDeadline, ErrHeld, a network error, a
// *TooLongError, or nil.
func (e *Error) Unwrap() error { return e.cause }

// NotFound reports whether Twilio itself says that it has no such resource. A 404 of something in
// between, which lacks Twilio's code, proves nothing.
func (e *Error) NotFound() bool { return e.HTTPStatus == http.StatusNotFound && e.Code == codeNotFound }

const codeNotFound = 20404 // https://www.twilio.com/docs/api/errors/20404

// ClassOf returns the class of an error that this package returned, and "" for any other error.
func ClassOf(err error) Class {
	if failed, ok := errors.AsType[*Error](err); ok {
		return failed.Class
	}
	return ""
}

// parseErrorBody reads Twilio's error document: {"code":21211,"message":"…","more_info":"…","status":400}.
// The code is 0 when the body is something else, such as a proxy's HTML. Gateways write JSON with a code
// too: theirs are not of five digits, or lack the HTTP status of the answer.
func parseErrorBody(body []byte, httpStatus int) (code int, message string) {
	var document struct {
		Code    json.Number `json:"code"` // a number or a string of digits
		Message *string     `json:"message"`
		Status  int         `json:"status"`
	}
	if err := json.Unmarshal(body, &document); err != nil || document.Message == nil || document.Status != httpStatus {
		return 0, ""
	}
	code, err := strconv.Atoi(document.Code.String())
	if err != nil || code < lowestCode || code > highestCode {
		return 0, ""
	}
	return code, *document.Message
}

// Twilio's error codes have five digits (https://www.twilio.com/docs/api/errors).
const (
	lowestCode  = 10_000
	highestCode = 99_999
)

// gateway names whoever wrote an answer that is not Twilio's, as far as the answer says it.
func gateway(status int, header http.Header) string {
	name := fmt.Sprintf("HTTP %d", status)
	for _, field := range []string{"Server", "Via"} {
		if value := productName(header.Get(field)); value != "" {
			name += ", " + field + ": " + value
		}
	}
	return name
}

const longestGatewayName = 60 // bytes of one header

// productName keeps of a header what the name of a program or a host is made of.
func productName(header string) string {
	kept := strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(" ./-_()", r)) {
			return r
		}
		return -1
	}, header)
	return strings.TrimSpace(kept[:min(len(kept), longestGatewayName)])
}

const longestRetryAfter = 24 * time.Hour

// parseRetryAfter reads the header in both of its forms, seconds and an HTTP date (RFC 9110,
// section 10.2.3). What cannot be read, or lies in the past, is 0.
func parseRetryAfter(header string, now time.Time) time.Duration {
	header = strings.TrimSpace(header)
	var wait time.Duration
	if seconds, err := strconv.ParseInt(header, 10, 32); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), longestRetryAfter)
}

// describe says in a few words why an exchange broke off, without addresses.
func describe(err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "timed out"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed"
	}
	if lookup, ok := errors.AsType[*net.DNSError](err); ok {
		return "the host's name could not be looked up: " + lookup.Err
	}
	if verification, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the certificate could not be verified: " + verification.Err.Error()
	}
	if operation, ok := errors.AsType[*net.OpError](err); ok && operation.Err != nil {
		return operation.Op + ": " + operation.Err.Error()
	}
	return err.Error()
}

const (
	longestMessage  = 200 // characters of Twilio's words that an error keeps
	shortestPrivate = 4   // bytes; a shorter value, such as the body "OK", is part of ordinary words
)

var (
	urlPattern    = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://\S+`)
	sidPattern    = regexp.MustCompile(`[A-Z]{2}[0-9a-fA-F]{32}`)
	numberPattern = regexp.MustCompile(`\+[0-9０-９][0-9０-９ ().-]*|[0-9０-９][0-9０-９ ().-]{4,}[0-9０-９]`)
)

// scrub takes out of a text what an error must not repeat: the private values of the request, and
// whatever looks like a URL, a SID or a number.
func scrub(text string, private []string) string {
	for _, value := range private {
		if len(value) >= shortestPrivate {
			text = strings.ReplaceAll(text, value, "[…]")
		}
	}
	text = urlPattern.ReplaceAllString(text, "[URL]")
	text = sidPattern.ReplaceAllString(text, "[SID]")
	text = numberPattern.ReplaceAllString(text, "[number]")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if characters := []rune(text); len(characters) > longestMessage {
		text = string(characters[:longestMessage]) + "…"
	}
	return text
}
