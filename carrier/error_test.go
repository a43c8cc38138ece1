package carrier

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestAnErrorSaysWhatWasDoneAndRepeatsNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		err  *Error
		want string
	}{
		"Twilio's refusal": {
			&Error{Op: "create SMS", Class: Recipient, HTTPStatus: 400, Code: 21211, Message: "The 'To' number [number] is not a valid phone number.", RequestID: "RQ00000000000000000000000000000001"},
			"create SMS: The 'To' number [number] is not a valid phone number. (Twilio error 21211, HTTP 400, Recipient)",
		},
		"no answer": {
			&Error{Op: "create CALL", Class: Ambiguous, Message: "no answer was read: timed out"},
			"create CALL: no answer was read: timed out (Ambiguous)",
		},
		"the deadline": {
			&Error{Op: "create SMS", Class: SafeToRetry, Message: "nothing was sent", cause: ErrDeadline},
			"create SMS: nothing was sent: the deadline passed before the request was written (SafeToRetry)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.err.Error(); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func TestScrubTakesOutWhatIsPrivate(t *testing.T) {
	private := []string{"a body that stays private", callbackURL, testTo, "OK"}
	for text, want := range map[string]string{
		"Authenticate": "Authenticate",
		"The 'To' number +15555550123 is not valid":                "The 'To' number […] is not valid",
		"The 'To' number 15555550123 is not valid":                 "The 'To' number [number] is not valid",
		"The 'To' number 090-1234-5678 is not valid":               "The 'To' number [number] is not valid",
		"The 'To' number ０９０１２３４５６７８ is not valid":                 "The 'To' number [number] is not valid",
		"From +81 90 1234 5678, To +110.":                          "From [number], To [number]",
		"Account " + testAccount + " is suspended":                 "Account [SID] is suspended",
		"The message " + testMessage + " was not found":            "The message [SID] was not found",
		"See https://www.twilio.com/docs/errors/21211 for more":    "See [URL] for more",
		"The URL " + callbackURL + " is invalid":                   "The URL […] is invalid",
		"postgres://todoku:p4ss@127.0.0.1/todoku":                  "[URL]",
		"Body 'a body that stays private' is spam. OK?":            "Body '[…]' is spam. OK?",
		"Twiml size exceeded maximum allowed value of 4000":        "Twiml size exceeded maximum allowed value of 4000",
		"ValidityPeriod 36001 is out of range (1 to 36000), 21624": "ValidityPeriod 36001 is out of range (1 to 36000), 21624",
		"two\nlines\x00 and \xff":                                  "two lines  and \uFFFD",
		strings.Repeat("あ", 300):                                   strings.Repeat("あ", longestMessage) + "…",
	} {
		if got := scrub(text, private); got != want {
			t.Errorf("%q\nbecame %q\nwant   %q", text, got, want)
		}
	}
}

func TestTwiliosErrorDocumentIsRead(t *testing.T) {
	for body, want := range map[string]struct {
		code    int
		message string
	}{
		twilioRefusal: {21211, "The 'To' number +15555550123 is not a valid phone number."},
		`{"code":21211,"message":"no","details":{"a":[1]},"status":400}`: {21211, "no"},
		`{"code":"21211","message":"no","status":400}`:                   {21211, "no"},
		`{"code":21211,"message":"no"}`:                                  {},
		`{"code":21211,"message":"no","status":403}`:                     {},
		`{"code":21211,"status":400}`:                                    {},
		`{"code":21211,"message":null,"status":400}`:                     {},
		`{"code":400,"message":"Bad Request","status":400}`:              {},
		`{"code":900901,"message":"Invalid Credentials","status":400}`:   {},
		`{"code":21211.5,"message":"no","status":400}`:                   {},
		`{"code":21211,"message":"no","status":"400"}`:                   {},
		`{"code":null,"message":"no","status":404}`:                      {},
		`{"message":"no"}`:                                               {},
		`{"code":2.5}`:                                                   {},
		`{"code":-1}`:                                                    {},
		`{"code":{}}`:                                                    {},
		`{}`:                                                             {},
		`null`:                                                           {},
		`[]`:                                                             {},
		``:                                                               {},
		`<html>`:                                                         {},
	} {
		if code, message := parseErrorBody([]byte(body), 400); code != want.code || message != want.message {
			t.Errorf("%s: %d %q, want %d %q", body, code, message, want.code, want.message)
		}
	}
}

func TestRetryAfterIsSecondsOrADate(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"":                               0,
		"1":                              time.Second,
		" 120 ":                          2 * time.Minute,
		"0":                              0,
		"-5":                             0,
		"1.5":                            0,
		"soon":                           0,
		"Fri, 02 Jan 2026 03:05:05 GMT":  time.Minute,
		"Friday, 02-Jan-26 03:05:05 GMT": time.Minute,
		"Fri, 02 Jan 2026 03:04:00 GMT":  0,
		"999999999":                      longestRetryAfter,
		"99999999999999999999":           0,
		"Fri, 02 Jan 2099 03:04:00 GMT":  longestRetryAfter,
	} {
		if got := parseRetryAfter(header, now); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}

func TestDescribeNamesTheCauseWithoutAddresses(t *testing.T) {
	dial := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4010},
		Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for want, err := range map[string]error{
		"canceled":                          context.Canceled,
		"timed out":                         fmt.Errorf("wait: %w", context.DeadlineExceeded),
		"the connection was closed":         io.ErrUnexpectedEOF,
		"dial: connect: connection refused": dial,
		"the host's name could not be looked up: no such host":                                 &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "api.example.com", Server: "10.0.0.1:53"}},
		"the certificate could not be verified: x509: certificate signed by unknown authority": &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}},
		"something else": errors.New("something else"),
	} {
		if got := describe(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

func TestClassOfForeignErrorsIsEmpty(t *testing.T) {
	for err, want := range map[error]Class{
		nil:                   "",
		io.EOF:                "",
		ErrDeadline:           "",
		&Error{Class: Sender}: Sender,
		fmt.Errorf("send: %w", &Error{Class: Ambiguous}): Ambiguous,
	} {
		if got := ClassOf(err); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}
