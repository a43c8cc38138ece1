package webhook

import (
	"github.com/google/uuid"

	"github.com/todoku/todoku/notify"
)

// The paths that callbacks come to. The query has the notification's id.
const (
	smsStatusPath  = "/api/twilio/webhook/sms-status"
	callStatusPath = "/api/twilio/webhook/call-status"
)

// repeat asks Twilio to post a callback again, up to 5 times, whatever went wrong: without it Twilio
// does not repeat one that was answered with 5xx
// (https://www.twilio.com/docs/usage/webhooks/webhooks-connection-overrides). As the URL's fragment
// it is not part of what Twilio posts to or signs.
const repeat = "rc=5&rp=all"

// CallbackURL makes the address at which Twilio reports what becomes of a notification. publicURL is
// that of TODOKU_PUBLIC_URL, without a slash at its end.
func CallbackURL(publicURL string) func(notify.Channel, uuid.UUID) string {
	return func(channel notify.Channel, id uuid.UUID) string {
		path := smsStatusPath
		if channel == notify.Call {
			path = callStatusPath
		}
		return publicURL + path + "?id=" + id.String() + "#" + repeat
	}
}
