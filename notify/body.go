package notify

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxSMSCharacters is the longest SMS that Twilio takes (error 21617), in Unicode code points.
	MaxSMSCharacters = 1600
	// MaxCallCharacters bounds what a call can say. Twilio allows 4,000 characters of TwiML (error
	// 32018), and the body is only a part of them; the carrier checks the rest.
	MaxCallCharacters = 4000
)

var maxCharacters = map[Channel]int{SMS: MaxSMSCharacters, Call: MaxCallCharacters}

// The codes of a [BodyError]. They are part of the API and do not change.
const (
	CodeBodyEmpty             = "body_empty"
	CodeBodyTooLong           = "body_too_long"
	CodeBodyControlCharacters = "body_has_control_characters"
	CodeBodyNotUTF8           = "body_not_utf8"
)

// BodyError says why a body cannot be sent. Its text does not repeat the body.
type BodyError struct {
	Code       string
	Channel    Channel
	Characters int // of a body that is too long
	Limit      int // of a body that is too long
}

func (e *BodyError) Error() string {
	switch e.Code {
	case CodeBodyEmpty:
		return "the body is empty: write what the recipient shall read or hear"
	case CodeBodyTooLong:
		return fmt.Sprintf("the body has %d characters, and %s allows %d: shorten it", e.Characters, e.Channel, e.Limit)
	case CodeBodyControlCharacters:
		return "the body has control characters: remove all but line breaks and tabs"
	default:
		return "the body is not valid UTF-8: send text in UTF-8"
	}
}

// CheckBody refuses a body that cannot be sent on the channel: blank as [IsBlank] has it, too long,
// not UTF-8, or with control characters other than line breaks and tabs (NUL above all, which
// Postgres cannot store). The error is a [*BodyError].
func CheckBody(channel Channel, body string) error {
	if !utf8.ValidString(body) {
		return &BodyError{Code: CodeBodyNotUTF8, Channel: channel}
	}
	characters := utf8.RuneCountInString(body)
	if limit, ok := maxCharacters[channel]; ok && characters > limit {
		return &BodyError{Code: CodeBodyTooLong, Channel: channel, Characters: characters, Limit: limit}
	}
	if strings.ContainsFunc(body, forbiddenInBody) {
		return &BodyError{Code: CodeBodyControlCharacters, Channel: channel}
	}
	if IsBlank(body) {
		return &BodyError{Code: CodeBodyEmpty, Channel: channel}
	}
	return nil
}

func forbiddenInBody(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t'
}
