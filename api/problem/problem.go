// Package problem is how the API says no: application/problem+json (RFC 9457) with a stable code. A
// problem names fields and what to do about them, and never repeats a value, which may be a number.
package problem

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
)

// ContentType is the media type of every problem.
const ContentType = "application/problem+json"

// Problem is an answer that says why a request was not done.
type Problem struct {
	Type   string   `json:"type" format:"uri-reference" doc:"Where the code is explained." example:"/docs#phone_number_too_short"`
	Title  string   `json:"title" doc:"What happened, the same for each code." example:"The phone number is too short"`
	Status int      `json:"status" doc:"The HTTP status." example:"422"`
	Detail string   `json:"detail" doc:"What happened this time, and what to do." example:"the phone number has too few digits: write all of it, with its area code"`
	Code   Code     `json:"code" doc:"The stable name of the problem; that of the only error, or validation_failed when there are several." example:"phone_number_too_short"`
	Errors []Detail `json:"errors,omitempty" nullable:"false" doc:"For a body that can be read and is wrong: everything that is wrong with it."`

	header http.Header
}

// Detail is one thing that is wrong with a body.
type Detail struct {
	Pointer string `json:"pointer" format:"json-pointer" doc:"The field, as a JSON pointer (RFC 6901); empty for the whole body." example:"/to"`
	Code    Code   `json:"code" doc:"The stable name of the problem." example:"phone_number_too_short"`
	Detail  string `json:"detail" doc:"What to do about it. It does not repeat the value."`
}

// New describes one problem that does not belong to a field. The code must be one of Codes.
func New(code Code, detail string) *Problem {
	e, ok := Lookup(code)
	if !ok {
		panic("problem: " + string(code) + " is not in the table of codes")
	}
	return &Problem{Type: "/docs#" + string(code), Title: e.Title, Status: e.Status, Detail: detail, Code: code}
}

// Newf is New with a format.
func Newf(code Code, format string, args ...any) *Problem {
	return New(code, fmt.Sprintf(format, args...))
}

// Unavailable says that the database cannot be reached just now.
func Unavailable() *Problem { return UnavailableBecause("the database cannot be reached") }

// UnavailableBecause says why the database cannot serve just now.
func UnavailableBecause(reason string) *Problem {
	return New(DatabaseUnavailable, reason+": try again in a few seconds").
		WithHeader("Retry-After", strconv.Itoa(int(RetryAfter/time.Second)))
}

// TookTooLong says that the request was ended by a time limit of ours while the database was at work.
func TookTooLong() *Problem {
	return New(TimeLimit, "the request took longer than it may, and was ended: try again in a few seconds, with the same "+
		"Idempotency-Key where it has one; if it stays, ask for less at once, or see whether the database is busy").
		WithHeader("Retry-After", strconv.Itoa(int(RetryAfter/time.Second)))
}

// Leaving says that the process is being stopped; by the time the caller asks again, another one runs.
func Leaving() *Problem {
	return New(Stopping, "this process is being stopped: send the request again in a second").WithHeader("Retry-After", "1")
}

// RetryAfter is how long a caller should wait while the database is away.
const RetryAfter = 5 * time.Second

// NoNotification says that no notification has the id of the path.
func NoNotification() *Problem {
	return New(NotificationNotFound, "there is no notification with the id in the path: it is the UUID that the answer to the POST gave")
}

// WithHeader adds a header to the answer.
func (p *Problem) WithHeader(name, value string) *Problem {
	if p.header == nil {
		p.header = make(http.Header)
	}
	p.header.Set(name, value)
	return p
}

// WithStatus gives the answer another status than the code's usual one.
func (p *Problem) WithStatus(status int) *Problem {
	p.Status = status
	return p
}

// Error is the detail.
func (p *Problem) Error() string { return p.Detail }

// GetStatus makes a Problem an error that huma answers with.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders are what huma adds to the answer.
func (p *Problem) GetHeaders() http.Header { return p.header }

// ContentType makes huma answer with the media type of problems.
func (p *Problem) ContentType(string) string { return ContentType }

// Write answers a request with the problem.
func Write(w http.ResponseWriter, p *Problem) {
	body, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Errorf("write a problem: %w", err)) // it has only strings and a number
	}
	for name, values := range p.header {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", ContentType)
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // a client that has gone needs no answer
}

// Details collects what is wrong with a body, so that one answer says it all.
type Details []Detail

// Add notes one thing.
func (d *Details) Add(pointer string, code Code, detail string) {
	*d = append(*d, Detail{pointer, code, detail})
}

// At reports whether something is wrong with the field, or with a part of it.
func (d Details) At(pointer string) bool {
	for _, detail := range d {
		if detail.Pointer == pointer || strings.HasPrefix(detail.Pointer, pointer+"/") {
			return true
		}
	}
	return false
}

// Only is the answer to a body with one thing wrong.
func Only(pointer string, code Code, detail string) *Problem {
	p := New(code, detail)
	p.Status, p.Errors = http.StatusUnprocessableEntity, Details{{pointer, code, detail}}
	return p
}

// Problem is the answer, or nil when nothing is wrong.
func (d Details) Problem() error {
	switch len(d) {
	case 0:
		return nil
	case 1:
		return Only(d[0].Pointer, d[0].Code, d[0].Detail)
	}
	p := Newf(ValidationFailed, "%d things are wrong with the request: see errors", len(d))
	p.Errors = d
	return p
}

// huma has errors of its own, which repeat the value; here they become problems that do not.
func init() { huma.NewError = fromHuma }

// bodyUnread is huma's word for a body that breaks off or is malformed on its way.
const bodyUnread = "cannot read request body"

func fromHuma(status int, message string, errs ...error) huma.StatusError {
	for _, err := range errs {
		if p, ok := err.(*Problem); ok {
			return p
		}
	}
	if message == bodyUnread {
		return New(MalformedJSON, "the body breaks off before its end: send it again, whole")
	}
	switch status {
	case http.StatusBadRequest:
		return New(RequestEmpty, "the request has no body: send a JSON object")
	case http.StatusRequestTimeout:
		return New(RequestTimeout, "the body did not arrive in time: send it again")
	case http.StatusRequestEntityTooLarge:
		return TooLarge()
	case http.StatusUnprocessableEntity:
		return fromParameters(errs)
	}
	return New(Internal, "something went wrong: try again")
}

// MaxBodyBytes is how much of a body is read, in bytes.
const MaxBodyBytes = 1 << 20

// TooLarge says how large a body may be.
func TooLarge() *Problem {
	return Newf(RequestTooLarge, "the body is over %d bytes (1 MB), the most that is read: send less", MaxBodyBytes)
}

// fromParameters describes parameters of the path or the query. A path that cannot be read names
// nothing that exists.
func fromParameters(errs []error) *Problem {
	var wrong []string
	for _, err := range errs {
		detailer, ok := err.(huma.ErrorDetailer)
		if !ok {
			continue
		}
		detail := detailer.ErrorDetail()
		where, name, _ := strings.Cut(detail.Location, ".")
		if where == "path" {
			return New(NotFound, "the id in the path cannot be one: check it")
		}
		if detail.Message == "unknown query parameter" {
			wrong = append(wrong, "the query has a parameter that this address does not know: remove it")
			continue
		}
		wrong = append(wrong, fmt.Sprintf("%s: %s", name, detail.Message))
	}
	return New(ParameterInvalid, strings.Join(wrong, "; "))
}
