package carrier

import (
	"context"
	"time"

	openapi "github.com/twilio/twilio-go/rest/api/v2010"

	"github.com/todoku/todoku/notify"
)

// Create is one SMS or one call to be made.
type Create struct {
	Channel notify.Channel
	To      string // E.164

	// An SMS is sent from a number, from a Messaging Service, or from one number of a Messaging
	// Service; a call from a number.
	From                string
	MessagingServiceSID string

	// Body is the text of an SMS, or what a call says.
	Body string

	// StatusCallback is where Twilio reports what becomes of it, with the connection overrides in
	// its fragment: "https://…?id=…#rc=5&rp=all". Empty: no reports.
	StatusCallback string

	// DetectMachine asks who answered a call, a person or a machine.
	DetectMachine bool

	// ValidityPeriod is how long an SMS may wait at Twilio before it is given up, in whole seconds
	// up to 10 hours. Zero leaves it to Twilio: 10 hours.
	ValidityPeriod time.Duration

	// Deadline is when the claim of the sender's worker runs out: nothing is written to the wire
	// after it, and the answer is awaited until shortly before. Zero: no deadline.
	Deadline time.Time

	// Held reports, just before the request is written, that it may not be: its sender was stopped
	// meanwhile. Nil: nothing holds it.
	Held func() bool
}

const longestValidityPeriod = 10 * time.Hour

// What a call reports: each of these as it happens. Every end of a call, busy and unanswered ones
// too, is a completed event (https://www.twilio.com/docs/voice/api/call-resource#statuscallbackevent).
var callEvents = []string{"initiated", "ringing", "answered", "completed"}

// Create makes the SMS or the call, once. The receipt says what Twilio made of it; its SentAt is
// the moment at which the request was written. A failure is an *Error: only one whose class is
// SafeToRetry may be repeated at once.
func (c *Client) Create(ctx context.Context, req Create) (notify.Receipt, error) {
	e, service := c.begin(ctx, "create "+string(req.Channel))
	e.deadline, e.held = req.Deadline, req.Held
	e.private = []string{req.Body, req.StatusCallback, req.To, req.From, req.MessagingServiceSID, c.accountSID, c.authToken}

	if problem := req.problem(); problem != "" {
		return notify.Receipt{}, e.fail(Request, problem, nil)
	}
	var made created
	e.answer = &made
	var err error
	switch req.Channel {
	case notify.SMS:
		_, err = service.CreateMessage(req.message())
	case notify.Call:
		var twiml string
		if twiml, err = TwiML(req.Body); err != nil {
			return notify.Receipt{}, e.fail(Request, err.Error(), err)
		}
		_, err = service.CreateCall(req.call(twiml))
	}
	if err := e.failure(err); err != nil {
		return notify.Receipt{}, err
	}
	if made.AccountSID != "" && made.AccountSID != c.accountSID {
		return notify.Receipt{}, e.undecodable("it is of another account")
	}
	resource := made.resource(req.Channel)
	if problem := resource.problem(); problem != "" {
		return notify.Receipt{}, e.undecodable(problem)
	}
	resource.Source = notify.FromCreate
	resource.SentAt = e.writtenAt
	return resource.Receipt, nil
}

// created is what counts of the answer to a create. Whatever the type of the rest is, the SID says that
// Twilio has it.
type created struct {
	AccountSID  string `json:"account_sid"`
	SID         string `json:"sid"`
	Status      string `json:"status"`
	NumSegments any    `json:"num_segments"` // of an SMS
	ErrorCode   any    `json:"error_code"`   // of an SMS
}

func (c created) resource(ch notify.Channel) Resource {
	if ch == notify.Call {
		return callAnswer{SID: c.SID, Status: c.Status}.resource()
	}
	return messageAnswer{SID: c.SID, Status: c.Status, NumSegments: c.NumSegments, ErrorCode: c.ErrorCode}.resource()
}

// problem names what is missing in the request, or is empty.
func (req Create) problem() string {
	switch {
	case !req.Channel.Enabled():
		return "the channel is neither SMS nor CALL"
	case req.To == "":
		return "no recipient is given"
	case req.Body == "":
		return "no body is given"
	case req.Channel == notify.Call && req.From == "":
		return "a call needs a number to call from"
	case req.From == "" && req.MessagingServiceSID == "":
		return "neither a number nor a Messaging Service is given to send from"
	case req.ValidityPeriod < 0 || req.ValidityPeriod > longestValidityPeriod || req.ValidityPeriod%time.Second != 0:
		return "the validity period is not a number of whole seconds up to 10 hours"
	}
	return ""
}

func (req Create) message() *openapi.CreateMessageParams {
	params := new(openapi.CreateMessageParams).SetTo(req.To).SetBody(req.Body)
	if req.From != "" {
		params.SetFrom(req.From)
	}
	if req.MessagingServiceSID != "" {
		params.SetMessagingServiceSid(req.MessagingServiceSID)
	}
	if req.StatusCallback != "" {
		params.SetStatusCallback(req.StatusCallback)
	}
	if req.ValidityPeriod != 0 {
		params.SetValidityPeriod(int(req.ValidityPeriod / time.Second))
	}
	return params
}

func (req Create) call(twiml string) *openapi.CreateCallParams {
	params := new(openapi.CreateCallParams).SetTo(req.To).SetFrom(req.From).SetTwiml(twiml)
	if req.StatusCallback != "" {
		params.SetStatusCallback(req.StatusCallback).SetStatusCallbackEvent(callEvents)
	}
	if req.DetectMachine {
		params.SetMachineDetection("Enable")
	}
	return params
}
