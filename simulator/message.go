package simulator

import (
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The limits of https://www.twilio.com/docs/messaging/api/message-resource.
const (
	maxBodyCharacters  = 1600
	maxMedia           = 10
	maxValiditySeconds = 36000
	minScheduleAhead   = 300 * time.Second
	maxScheduleAhead   = 35 * 24 * time.Hour
)

// message is what only messages have.
type message struct {
	service   string // the Messaging Service it goes through, if any
	media     int
	segments  int // 0 until a Messaging Service has queued it
	sendAt    time.Time
	outcome   *MessageOutcome
	errorCode *int
}

var (
	stepQueued      = step{status: "queued"}
	stepSent        = step{status: "sent"}
	stepDelivered   = step{status: "delivered"}
	stepUndelivered = step{status: "undelivered"}
	stepFailed      = step{status: "failed"}
	stepRead        = step{status: "read"}
	stepCanceled    = step{status: "canceled"}
)

// messageSteps are the statuses that lead to each outcome. Twilio tells of all but the initial one, which is
// queued for a number, and accepted or scheduled for a Messaging Service, for which queued comes on top.
// https://www.twilio.com/docs/messaging/guides/outbound-message-status-in-status-callbacks
var messageSteps = map[string][]step{
	"queued":      {},
	"sent":        {stepSent},
	"delivered":   {stepSent, stepDelivered},
	"undelivered": {stepSent, stepUndelivered},
	"failed":      {stepFailed},
	"read":        {stepSent, stepDelivered, stepRead},
}

var messageOutcomeWords = []string{"queued", "sent", "delivered", "undelivered", "failed", "read"}

var messageFields = []field{
	sidOf("MessagingServiceSid", "MG", 21701),
	sidOf("ContentSid", "HX", 21655),
	jsonObject("ContentVariables", 21656),
	sidOf("ApplicationSid", "AP", 0),
	webURL("StatusCallback", 21609),
	webURL("MediaUrl", 21620),
	integerBetween("ValidityPeriod", 1, maxValiditySeconds, 21624),
	integer("Attempt"),
	number("MaxPrice"),
	boolean("ProvideFeedback"),
	boolean("ForceDelivery"),
	boolean("SmartEncoded"),
	boolean("ShortenUrls"),
	boolean("SendAsMms"),
	oneOf("ContentRetention", 0, "retain", "discard"),
	oneOf("AddressRetention", 0, "retain", "obfuscate"),
	oneOf("TrafficType", 0, "free"),
	oneOf("RiskCheck", 0, "enable", "disable"),
	oneOf("ScheduleType", 35126, "fixed"),
	dateTime("SendAt", 35115),
}

// newMessage makes r the message that the form asks for, or fails the form.
func newMessage(r *record, f *form, who caller) {
	r.to, r.from, r.body = f.text("To"), f.text("From"), f.text("Body")
	m := &message{service: f.text("MessagingServiceSid"), media: len(f.values["MediaUrl"])}
	r.kind = m

	switch {
	case r.to == "":
		f.refuse(21604, "A 'To' phone number is required.")
	case r.from == "" && m.service == "":
		f.refuse(21603, "A 'From' phone number is required.")
	case r.body == "" && m.media == 0 && !f.has("ContentSid"):
		f.refuse(21602, "Message body is required.")
	case utf8.RuneCountInString(r.body) > maxBodyCharacters:
		f.refuse(21617, "The concatenated message body exceeds the 1600 character limit.")
	case m.media > maxMedia:
		f.refuse(21623, "Number of media files exceeds allowed limit.")
	}
	f.check(messageFields)
	switch {
	case !isNumber(r.to) || r.to == r.from:
		f.refuse(21211, "The 'To' number %s is not a valid phone number.", r.to)
	case r.from != "" && !isMessageSender(r.from):
		f.refuse(21212, "The 'From' number %s is not a valid phone number, shortcode, or alphanumeric sender ID.", r.from)
	}
	m.sendAt = scheduledFor(f, r.createdAt)
	f.refuseMagicMessage(r.to, r.from)
	if f.failed != nil {
		return
	}

	r.sid = newSID("SM")
	if m.media > 0 {
		r.sid = newSID("MM")
	}
	r.delivery = newDelivery(f.text("StatusCallback"), http.MethodPost, who.token, nil)
	m.outcome = r.behaviour.messageOutcome(r.to)
	r.steps = messageSteps[m.outcome.Status]
	if m.service == "" {
		r.status, r.sender, m.segments = "queued", r.from, segments(r.body)
		return
	}
	r.status, r.sender = "accepted", m.service
	if !m.sendAt.IsZero() {
		r.status = "scheduled"
	}
	if outcome, ok := serviceFailures[r.to]; ok {
		m.outcome, r.steps = outcome, messageSteps[outcome.Status]
	}
	r.steps = append([]step{stepQueued}, r.steps...)
}

// scheduledFor is the time that the form asks the message to be sent at; zero: at once.
func scheduledFor(f *form, now time.Time) time.Time {
	if !f.has("ScheduleType") && !f.has("SendAt") {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, f.text("SendAt"))
	ahead := at.Sub(now)
	switch {
	case !f.has("ScheduleType"):
		f.refuse(35126, "ScheduleType must be 'fixed' where SendAt is given.")
	case !f.has("SendAt") || err != nil:
		f.refuse(35111, "SendAt timestamp is missing.")
	case !f.has("MessagingServiceSid"):
		f.refuse(35118, "MessagingServiceSid is required to schedule a message.")
	case ahead < minScheduleAhead || ahead > maxScheduleAhead:
		f.refuse(35114, "SendAt time must be between 300 seconds and 35 days (3024000 seconds) in the future, inclusive.")
	}
	return at
}

func (m *message) enter(r *record, s step, now time.Time) {
	r.status = s.status
	switch s.status {
	case "queued":
		m.segments = segments(r.body)
		if r.from == "" {
			r.from = servicePoolNumber
		}
	case "sent":
		r.sentAt = now
	case "delivered":
		m.errorCode = m.outcome.ErrorCode
	case "undelivered", "failed":
		m.errorCode = m.outcome.ErrorCode
		if r.sentAt.IsZero() {
			r.sentAt = now
		}
	}
}

// callbackParams are those of
// https://www.twilio.com/docs/messaging/guides/track-outbound-message-status#twilios-request-to-the-statuscallback-url
func (m *message) callbackParams(r *record, s step, now time.Time) params {
	told := append(make(params, 0, 11), param{"AccountSid", r.account}, param{"ApiVersion", apiVersion})
	if m.errorCode != nil {
		told = append(told, param{"ErrorCode", strconv.Itoa(*m.errorCode)})
	}
	if r.from != "" {
		told = append(told, param{"From", r.from})
	}
	told = append(told, param{"MessageSid", r.sid}, param{"MessageStatus", s.status})
	if m.service != "" {
		told = append(told, param{"MessagingServiceSid", m.service})
	}
	if s == stepDelivered || s == stepUndelivered {
		told = append(told, param{"RawDlrDoneDate", now.UTC().Format("0601021504")})
	}
	return append(told, param{"SmsSid", r.sid}, param{"SmsStatus", s.status}, param{"To", r.to})
}

// messageResource is Twilio's JSON of a message, with the types that its clients insist on.
type messageResource struct {
	AccountSID          string       `json:"account_sid"`
	APIVersion          string       `json:"api_version"`
	Body                string       `json:"body"`
	DateCreated         *string      `json:"date_created"`
	DateSent            *string      `json:"date_sent"`
	DateUpdated         *string      `json:"date_updated"`
	Direction           string       `json:"direction"`
	ErrorCode           *int         `json:"error_code"`
	ErrorMessage        *string      `json:"error_message"`
	From                *string      `json:"from"`
	MessagingServiceSID *string      `json:"messaging_service_sid"`
	NumMedia            string       `json:"num_media"`
	NumSegments         string       `json:"num_segments"`
	Price               *string      `json:"price"`
	PriceUnit           string       `json:"price_unit"`
	SID                 string       `json:"sid"`
	Status              string       `json:"status"`
	SubresourceURIs     messageParts `json:"subresource_uris"`
	To                  string       `json:"to"`
	URI                 string       `json:"uri"`
}

// messageParts are the URIs of what belongs to a message.
type messageParts struct {
	Media string `json:"media"`
}

func (m *message) resource(r *record) any {
	uri := target{account: r.account, channel: sms, sid: r.sid}.uri()
	return messageResource{
		AccountSID:          r.account,
		APIVersion:          apiVersion,
		Body:                r.body,
		DateCreated:         twilioDate(r.createdAt),
		DateSent:            twilioDate(r.sentAt),
		DateUpdated:         twilioDate(r.updatedAt),
		Direction:           "outbound-api",
		ErrorCode:           m.errorCode,
		ErrorMessage:        errorMessage(m.errorCode),
		From:                orNull(r.from),
		MessagingServiceSID: orNull(m.service),
		NumMedia:            strconv.Itoa(m.media),
		NumSegments:         strconv.Itoa(m.segments),
		PriceUnit:           "USD",
		SID:                 r.sid,
		Status:              r.status,
		SubresourceURIs:     messageParts{Media: strings.TrimSuffix(uri, ".json") + "/Media.json"},
		To:                  r.to,
		URI:                 uri,
	}
}

// errorMessages are Twilio's words for the codes that a message most often ends with.
// https://www.twilio.com/docs/api/errors
var errorMessages = map[int]string{
	21610: "Attempt to send to unsubscribed recipient",
	21612: "Message cannot be sent with the current combination of 'To' and/or 'From' parameters",
	30001: "Queue overflow",
	30002: "Account suspended",
	30003: "Unreachable destination handset",
	30004: "Message blocked",
	30005: "Unknown destination handset",
	30006: "Landline or unreachable carrier",
	30007: "Carrier violation",
	30008: "Unknown error",
}

func errorMessage(code *int) *string {
	if code == nil {
		return nil
	}
	return orNull(errorMessages[*code])
}

// updateMessage redacts a message (an empty Body) or cancels a scheduled one (Status=canceled). The world is
// locked.
func (w *world) updateMessage(r *record, f *form) {
	f.check([]field{oneOf("Status", 0, "canceled")})
	switch {
	case f.text("Body") != "":
		f.refuse(20001, "Bad request: Body can only be emptied, which redacts the message.")
	case f.has("Status") && r.status != "scheduled":
		f.refuse(30409, "This message cannot be canceled.")
	case f.values.Has("Body") && !r.complete():
		f.refuse(20009, "Cannot redact this resource before it is complete.")
	}
	if f.failed != nil {
		return
	}
	if f.has("Status") {
		r.steps = []step{stepCanceled}
		w.send(r, w.advance(r))
	}
	if f.values.Has("Body") {
		r.body = ""
		r.updatedAt = time.Now()
	}
}
