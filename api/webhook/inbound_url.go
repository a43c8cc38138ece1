package webhook

import (
	"net/url"

	"github.com/google/uuid"

	"github.com/todoku/todoku/taskrouter"
)

// The paths that Twilio calls about calls that come in. Four of them are given to Twilio when
// TaskRouter is set up; the others are in the TwiML of our own answers.
const (
	VoicePath       = "/api/twilio/webhook/voice"            // "a call comes in" of a number
	VoiceStatusPath = "/api/twilio/webhook/voice-status"     // the status callback of a number
	AssignmentPath  = "/api/twilio/webhook/assignment"       // AssignmentCallbackUrl of a TaskRouter workflow
	TaskEventPath   = "/api/twilio/webhook/taskrouter-event" // EventCallbackUrl of a workspace

	waitPath          = "/api/twilio/webhook/wait"
	waitKeyPath       = "/api/twilio/webhook/wait-key"
	queueResultPath   = "/api/twilio/webhook/queue-result"
	turnedAwayKeyPath = "/api/twilio/webhook/turned-away-key"
	callBackPath      = "/api/twilio/webhook/call-back"
)

// InboundURL is the address of one of the paths, for Twilio. It asks Twilio to call again when no
// good answer comes.
func InboundURL(publicURL, path string) string { return publicURL + path + "#" + repeat }

// TaskRouterURLs are the addresses that Twilio is given when TaskRouter is set up.
func TaskRouterURLs(publicURL string) taskrouter.URLs {
	return taskrouter.URLs{
		Voice:       InboundURL(publicURL, VoicePath),
		VoiceStatus: InboundURL(publicURL, VoiceStatusPath),
		Wait:        InboundURL(publicURL, waitPath),
		Assignment:  InboundURL(publicURL, AssignmentPath),
		Events:      InboundURL(publicURL, TaskEventPath),
	}
}

// addresses makes the addresses in our answers. Those about a call whose row is already known carry
// nothing but its id.
type addresses struct{ publicURL string }

func (a addresses) of(path string) string { return InboundURL(a.publicURL, path) }

func (a addresses) about(path string, id uuid.UUID) string {
	return InboundURL(a.publicURL, path+"?"+url.Values{"id": {id.String()}}.Encode())
}

func (a addresses) again(try string) string {
	return InboundURL(a.publicURL, VoicePath+"?"+url.Values{"try": {try}}.Encode())
}
