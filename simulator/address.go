package simulator

import (
	"regexp"
	"strings"
)

var (
	e164         = regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`)
	shortCode    = regexp.MustCompile(`^[0-9]{3,8}$`)
	alphanumeric = regexp.MustCompile(`^[A-Za-z0-9 +&_-]*[A-Za-z][A-Za-z0-9 +&_-]*$`)
)

// maxSenderID is the length of an alphanumeric sender ID at most.
const maxSenderID = 11

func isNumber(s string) bool { return e164.MatchString(s) }

// isMessageSender reports whether a message can be sent from s: a number in E.164, a short code or an
// alphanumeric sender ID. Every such sender belongs to every account here.
func isMessageSender(s string) bool {
	return isNumber(s) || shortCode.MatchString(s) || len(s) <= maxSenderID && alphanumeric.MatchString(s)
}

// isEndpoint reports whether a call can have s at one end: a number in E.164, a SIP address or a client.
func isEndpoint(s string) bool {
	for _, prefix := range []string{"sip:", "client:"} {
		if name, ok := strings.CutPrefix(s, prefix); ok {
			return name != ""
		}
	}
	return isNumber(s)
}

// formatted is a number as Twilio shows it beside the E.164 form: national for North America, else unchanged.
func formatted(number string) string {
	if len(number) != len("+15005550006") || !strings.HasPrefix(number, "+1") {
		return number
	}
	return "(" + number[2:5] + ") " + number[5:8] + "-" + number[8:]
}
