package carrier

import (
	"context"
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
	switch ch {
	case notify.SMS:
		message, err := service.FetchMessage(sid, nil)
		if err := e.failure(err); err != nil {
			return Resource{}, err
		}
		found = fromMessage(message)
	case notify.Call:
		call, err := service.FetchCall(sid, nil)
		if err := e.failure(err); err != nil {
			return Resource{}, err
		}
		found = fromCall(call)
	}
	if problem := found.problem(); problem != "" {
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

func fromMessage(m *openapi.ApiV2010Message) Resource {
	segments, _ := strconv.Atoi(text(m.NumSegments)) // "0" while a Messaging Service has not chosen a number
	errorCode := ""
	if m.ErrorCode != nil {
		errorCode = notify.CarrierErrorCode(strconv.Itoa(*m.ErrorCode))
	}
	return Resource{
		Receipt: notify.Receipt{
			Channel:   notify.SMS,
			SID:       text(m.Sid),
			Word:      text(m.Status),
			ErrorCode: errorCode,
			Segments:  min(max(segments, 0), maxSegments),
			SentAt:    date(m.DateSent),
			Source:    notify.FromPoll,
		},
		To:                  text(m.To),
		From:                text(m.From),
		MessagingServiceSID: text(m.MessagingServiceSid),
		Body:                text(m.Body),
		Direction:           text(m.Direction),
		CreatedAt:           date(m.DateCreated),
	}
}

func fromCall(c *openapi.ApiV2010Call) Resource {
	return Resource{
		Receipt: notify.Receipt{
			Channel:    notify.Call,
			SID:        text(c.Sid),
			Word:       text(c.Status),
			Duration:   seconds(text(c.Duration)),
			AnsweredBy: text(c.AnsweredBy),
			SentAt:     date(c.StartTime),
			Source:     notify.FromPoll,
		},
		To:        text(c.To),
		From:      text(c.From),
		Direction: text(c.Direction),
		CreatedAt: date(c.DateCreated),
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
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
func date(s *string) time.Time {
	if text(s) == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC1123Z, *s)
	if err != nil {
		t, err = mail.ParseDate(*s)
	}
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// maxSegments bounds what the ledger keeps; no message has as many.
const maxSegments = 1000
