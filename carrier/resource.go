package carrier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/mail"
	"strconv"
	"time"

	openapi "github.com/twilio/twilio-go/rest/api/v2010"

	"github.com/todoku/todoku/notify"
)

// Resource is a message or a call as Twilio holds it when it is asked.
type Resource struct {
	notify.Receipt // SentAt is when the message was sent, or the call was dialed; zero before that

	To                  string
	From                string // empty while a Messaging Service has not chosen a number
	MessagingServiceSID string // SMS only
	Body                string // SMS only; empty after it was redacted
	Direction           string // "outbound-api" for what we created; "inbound", "outbound-reply", "outbound-dial", …
	CreatedAt           time.Time
}

// Fetch asks Twilio for the message or the call with the SID. An *Error whose NotFound is true says
// that Twilio has none.
func (c *Client) Fetch(ctx context.Context, ch notify.Channel, sid string) (Resource, error) {
	e, service := c.begin(ctx, "fetch "+string(ch))
	e.private = []string{sid, c.accountSID, c.authToken}
	if !notify.ValidSID(ch, sid) {
		return Resource{}, e.fail(Request, "the SID is not one of the channel", nil)
	}
	var found Resource
	var account string
	switch ch {
	case notify.SMS:
		var m messageAnswer
		e.answer = &m
		_, err := service.FetchMessage(sid, nil)
		if err := e.failure(err); err != nil {
			return Resource{}, err
		}
		found, account = m.resource(), m.AccountSID
	case notify.Call:
		var call callAnswer
		e.answer = &call
		_, err := service.FetchCall(sid, nil)
		if err := e.failure(err); err != nil {
			return Resource{}, err
		}
		found, account = call.resource(), call.AccountSID
	}
	if problem := cmp.Or(found.problem(), c.foreign(account)); problem != "" {
		return Resource{}, e.undecodable(problem)
	}
	if found.SID != sid {
		return Resource{}, e.undecodable("it has another SID")
	}
	return found, nil
}

// problem says why what Twilio returned cannot be used, or is empty.
func (r Resource) problem() string {
	switch {
	case !notify.ValidSID(r.Channel, r.SID):
		return "its SID is not one of the channel"
	case r.Word == "":
		return "it has no status"
	}
	return ""
}

// foreign says that a resource of the account is not of ours, or is empty. What another account shows or
// lacks says nothing about ours. What stands in for Twilio may leave its account out.
func (c *Client) foreign(account string) string {
	if account != "" && account != c.accountSID {
		return "it belongs to another account"
	}
	return ""
}

// messageAnswer is what is read of one of Twilio's messages: to read all of it into twilio-go's type takes far
// longer, and a list has a thousand a page. A field that may have any type is unknown where its type is
// another than Twilio documents: one such resource keeps nobody from reading the others. By the fields of
// one type sends are told apart, and a list that lacks them is no list.
type messageAnswer struct {
	SID                 string `json:"sid"`
	AccountSID          string `json:"account_sid"`
	Status              string `json:"status"`
	ErrorCode           any    `json:"error_code"`   // a number
	NumSegments         any    `json:"num_segments"` // a text: "0" while a Messaging Service has not chosen a number
	DateSent            string `json:"date_sent"`
	DateCreated         string `json:"date_created"`
	To                  string `json:"to"`
	From                string `json:"from"`
	MessagingServiceSID string `json:"messaging_service_sid"`
	Body                string `json:"body"`
	Direction           string `json:"direction"`
}

func (m messageAnswer) resource() Resource {
	segments, _ := strconv.Atoi(textIn(m.NumSegments))
	code := codeIn(m.ErrorCode)
	return Resource{
		Receipt: notify.Receipt{
			Channel:     notify.SMS,
			SID:         m.SID,
			Word:        m.Status,
			ErrorCode:   notify.CarrierErrorCode(code),
			UnknownCode: notify.QuotableCode(code),
			Segments:    min(max(segments, 0), maxSegments),
			SentAt:      date(m.DateSent),
			Source:      notify.FromPoll,
		},
		To:                  m.To,
		From:                m.From,
		MessagingServiceSID: m.MessagingServiceSID,
		Body:                m.Body,
		Direction:           m.Direction,
		CreatedAt:           date(m.DateCreated),
	}
}

// codeIn is an error code as Twilio wrote it. Documented are a number, and null for no error.
func codeIn(code any) string {
	switch code := code.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(code, 'f', -1, 64)
	}
	return fmt.Sprint(code)
}

// callAnswer is what is read of one of Twilio's calls.
type callAnswer struct {
	SID         string `json:"sid"`
	AccountSID  string `json:"account_sid"`
	Status      string `json:"status"`
	Duration    any    `json:"duration"`    // a text
	AnsweredBy  any    `json:"answered_by"` // a text
	StartTime   string `json:"start_time"`
	DateCreated string `json:"date_created"`
	To          string `json:"to"`
	From        string `json:"from"`
	Direction   string `json:"direction"`
}

func (c callAnswer) resource() Resource {
	return Resource{
		Receipt: notify.Receipt{
			Channel:    notify.Call,
			SID:        c.SID,
			Word:       c.Status,
			Duration:   seconds(textIn(c.Duration)),
			AnsweredBy: textIn(c.AnsweredBy),
			SentAt:     date(c.StartTime),
			Source:     notify.FromPoll,
		},
		To:        c.To,
		From:      c.From,
		Direction: c.Direction,
		CreatedAt: date(c.DateCreated),
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// textIn is empty for what is no text.
func textIn(v any) string {
	s, _ := v.(string)
	return s
}

// seconds reads a duration as Twilio writes it. An empty one is not 0: the call was not answered,
// or has not ended, or Twilio does not know yet.
func seconds(s string) *int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > longestCall {
		return nil
	}
	return &n
}

// longestCall is more than Twilio lets any call last, in seconds: 24 hours
// (https://www.twilio.com/docs/voice/api/call-resource, TimeLimit). What is longer was not a duration.
const longestCall = 7 * 24 * 60 * 60

// date reads an RFC 2822 date; it is zero where there is none. A list has thousands, in the form in which
// Twilio writes them; package mail tries others first.
func date(s string) time.Time {
	if s == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC1123Z, s)
	if err != nil {
		t, err = mail.ParseDate(s)
	}
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// maxSegments bounds what the ledger keeps; no message has as many.
const maxSegments = 1000

// CancelCall asks Twilio to cancel a call that it has queued, and returns the call as Twilio has it then. A call that has
// left the queue in the meantime is returned as it was.
func (c *Client) CancelCall(ctx context.Context, queued Resource) (Resource, error) {
	e, service := c.begin(ctx, "cancel "+string(notify.Call))
	e.private = []string{queued.SID, c.accountSID, c.authToken}
	var answer callAnswer
	e.answer = &answer
	_, err := service.UpdateCall(queued.SID, new(openapi.UpdateCallParams).SetStatus("canceled"))
	if err := e.failure(err); err != nil {
		if failure, ok := errors.AsType[*Error](err); ok && failure.Code == codeCallNotInProgress {
			return queued, nil
		}
		return Resource{}, err
	}
	canceled := answer.resource()
	if problem := canceled.problem(); problem != "" {
		return Resource{}, e.undecodable(problem)
	}
	return canceled, nil
}

// codeCallNotInProgress is Twilio's refusal to update a call that has ended: https://www.twilio.com/docs/api/errors/21220.
const codeCallNotInProgress = 21220
