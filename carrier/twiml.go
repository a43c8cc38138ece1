package carrier

import (
	"encoding/xml"
	"fmt"
	"unicode/utf8"

	"github.com/todoku/todoku/notify"
)

// MaxTwiMLCharacters is the longest TwiML that a create of a call may carry
// (https://www.twilio.com/docs/api/errors/32018).
const MaxTwiMLCharacters = 4000

// TooLongError says that a body does not fit into a call.
type TooLongError struct {
	Characters int // of the TwiML that the body became
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("the spoken message is %d characters of TwiML long, at most %d are allowed; shorten it",
		e.Characters, MaxTwiMLCharacters)
}

// TwiML returns the document that speaks body, in a voice of its language. The same body always
// gives the same document, which twilio-go's twiml package does not promise. It returns a
// *TooLongError where the document is longer than Twilio takes; markup in the body counts as it is
// escaped (& is five characters).
func TwiML(body string) (string, error) {
	language, voice := notify.SpeechLanguage(body)
	document, err := xml.Marshal(response{Say: say{Language: language, Voice: voice, Text: body}})
	if err != nil {
		return "", fmt.Errorf("write the TwiML of a call: %w", err)
	}
	if n := utf8.RuneCount(document); n > MaxTwiMLCharacters {
		return "", &TooLongError{Characters: n}
	}
	return string(document), nil
}

type response struct {
	XMLName xml.Name `xml:"Response"`
	Say     say
}

type say struct {
	Language string `xml:"language,attr"`
	Voice    string `xml:"voice,attr"`
	Text     string `xml:",chardata"`
}
