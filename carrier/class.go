package carrier

import (
	"net/http"
	"strconv"
)

// Class is what an error means for the next try. It is a word, so that it can be the type of a
// Temporal error and the label of a metric.
type Class string

const (
	// SafeToRetry: Twilio did not process the request, or the request changes nothing. Repeating
	// it sends nothing twice.
	SafeToRetry Class = "SafeToRetry"

	// Ambiguous: the request may have been carried out. It must not be repeated before it was
	// looked for at Twilio, because Twilio has no idempotency key for messages and calls
	// (https://www.twilio.com/docs/api/errors/20500).
	Ambiguous Class = "Ambiguous"

	// Recipient: this recipient cannot be reached from this sender. Final for the notification.
	Recipient Class = "Recipient"

	// Request: something in the request is wrong. Final for the notification.
	Request Class = "Request"

	// Sender: the sender, or what the account may do with it, is at fault. Other notifications of
	// the sender would fail too, so it stops until somebody has looked.
	Sender Class = "Sender"

	// AllSenders: the account's credentials or standing are at fault. All senders stop.
	AllSenders Class = "AllSenders"

	// Undelivered: accepted and then not delivered. Only callbacks and polled resources carry such
	// codes. Final for the notification; a new one may fare better.
	Undelivered Class = "Undelivered"
)

// classes sorts Twilio's error codes (https://www.twilio.com/docs/api/errors). A message that is
// sent through a Messaging Service is accepted first and refused by callback, so the codes of
// creates appear there too.
var classes = map[int]Class{
	20429: SafeToRetry, // too many requests: "never processed and is always safe to retry"
	20423: SafeToRetry, // locked: "never processed and is always safe to retry"
	21611: SafeToRetry, // the sender's message queue is full
	21730: SafeToRetry, // maintenance
	22005: SafeToRetry, // the call queue is full
	10004: SafeToRetry, // too many calls at the same time

	20500: Ambiguous, // internal server error
	20503: Ambiguous, // service unavailable

	21211: Recipient, // invalid To, and To equal to From
	21214: Recipient, // To cannot be reached by a call
	21215: Recipient, // calls to this country are not permitted
	21216: Recipient, // calls to this number are blocked
	21217: Recipient, // To is not a number for a call
	21408: Recipient, // messages to this country are not permitted
	21610: Recipient, // the recipient has opted out
	21612: Recipient, // no route from this sender to To
	21614: Recipient, // To is not a mobile number
	13223: Recipient, // <Dial>: invalid number
	13224: Recipient, // <Dial>: number not supported
	13225: Recipient, // <Dial>: number blocked
	13226: Recipient, // <Dial>: invalid country code
	13227: Recipient, // <Dial>: country not permitted

	20001: Request, // unknown parameters
	21205: Request, // invalid URL
	21602: Request, // no body
	21603: Request, // no From
	21604: Request, // no To
	21609: Request, // invalid StatusCallback
	21617: Request, // body over 1,600 characters
	21619: Request, // neither body nor media
	21623: Request, // too many media
	21624: Request, // invalid ValidityPeriod
	21626: Request, // invalid StatusCallbackEvent
	21654: Request, // ContentSid missing
	21655: Request, // invalid ContentSid
	21656: Request, // invalid ContentVariables
	21657: Request, // content of another kind
	21658: Request, // a parameter is too long
	32018: Request, // TwiML over 4,000 characters
	35111: Request, // SendAt out of its window
	35114: Request, // SendAt missing
	35115: Request, // SendAt out of its window
	35117: Request, // SendAt out of its window
	35118: Request, // scheduling needs a Messaging Service

	10001: AllSenders, // the account is not active
	20003: AllSenders, // authentication failed, or the account is suspended
	20005: AllSenders, // the account is not active
	20006: AllSenders, // access denied
	20010: AllSenders, // the account is suspended
	30002: AllSenders, // the account was suspended after the message was accepted
	30454: AllSenders, // the trial account's number of messages
	63038: AllSenders, // the account's number of messages for 24 hours
	90010: AllSenders, // the account is not active

	10002: Sender, // trial account: it lacks this feature
	20404: Sender, // at a create: the account or the API's address is not Twilio's
	21210: Sender, // From is not verified for calls
	21212: Sender, // invalid From
	21219: Sender, // trial account: To of a call is not verified
	21606: Sender, // From cannot send messages
	21608: Sender, // trial account: To of a message is not verified
	21659: Sender, // From is not a number of the account
	21660: Sender, // From and account do not match
	21701: Sender, // the Messaging Service does not exist
	21703: Sender, // the Messaging Service has no numbers
	21704: Sender, // the Messaging Service has no number for this message
	21705: Sender, // invalid Messaging Service
	30023: Sender, // the sender's number of messages for the day (10DLC)
	30024: Sender, // the number is not provisioned with the carrier
	30027: Sender, // the sender's number of messages for the day (10DLC, T-Mobile)
	30032: Sender, // the toll-free number is not verified
	30034: Sender, // the number is not registered (10DLC)
	30990: Sender, // the campaign is suspended (10DLC)

	30001: Undelivered, // the queue overflowed
	30003: Undelivered, // the handset is switched off or unreachable
	30004: Undelivered, // blocked
	30005: Undelivered, // unknown handset
	30006: Undelivered, // landline, or the carrier cannot be reached
	30007: Undelivered, // filtered
	30008: Undelivered, // unknown error
	30017: Undelivered, // the carrier's network is congested
	30022: Undelivered, // the carrier's rate limit (10DLC)
	30036: Undelivered, // the validity period expired
	30410: Undelivered, // the provider timed out; it may have been delivered nevertheless
	30450: Undelivered, // blocked to prevent message pumping
	30500: Undelivered, // Twilio's internal error
	63017: Undelivered, // the account's message rate
	63018: Undelivered, // the sender's message rate
}

// Classify tells the class of an answer that is not 2xx. code is Twilio's error code, 0 when the answer does
// not carry Twilio's error document: then something in between wrote it, perhaps after it had forwarded the
// request, and nobody knows, whatever the HTTP status says. Nor does anybody after a 5xx of Twilio's. Below
// that the code decides, and the HTTP status only where the code is not known.
func Classify(code, httpStatus int) Class {
	if code == 0 || httpStatus >= 500 || httpStatus < 400 || httpStatus == http.StatusRequestTimeout {
		return Ambiguous
	}
	class, known := classes[code]
	tooMany := httpStatus == http.StatusTooManyRequests // Twilio's own was never processed
	switch {
	case known && !(tooMany && (class == Ambiguous || class == Undelivered)):
		return class
	case tooMany:
		return SafeToRetry
	}
	switch httpStatus {
	case http.StatusUnauthorized:
		return AllSenders
	case http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed:
		return Sender
	}
	return Request
}

// ClassOfCode tells the class of an error code as callbacks and ledger rows write it, in decimal
// digits. It is "" for a code that is not known.
func ClassOfCode(code string) Class {
	n, err := strconv.Atoi(code)
	if err != nil {
		return ""
	}
	return classes[n]
}

// StopsSender reports whether the code concerns the sender, or with all every sender, and not one notification.
func StopsSender(code string) (stops, all bool) {
	class := ClassOfCode(code)
	return class == Sender || class == AllSenders, class == AllSenders
}
