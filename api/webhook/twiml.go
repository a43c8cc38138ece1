package webhook

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"github.com/twilio/twilio-go/twiml"

	"github.com/todoku/todoku/notify"
)

// say speaks a text in a voice of its language.
func say(text string) twiml.Element {
	language, voice := notify.SpeechLanguage(text)
	return &twiml.VoiceSay{Message: text, Language: language, Voice: voice}
}

// prompt is what the policy lets a caller hear, or a sentence of ours.
func prompt(p notify.Prompt, otherwise string) []twiml.Element {
	switch {
	case p.Play != "":
		return []twiml.Element{&twiml.VoicePlay{Url: p.Play}}
	case p.Say != "":
		return []twiml.Element{say(p.Say)}
	case otherwise != "":
		return []twiml.Element{say(otherwise)}
	}
	return nil
}

// keyed lets a caller press one key while it hears something and for some seconds after that.
func keyed(action string, seconds int, hears []twiml.Element) twiml.Element {
	return &twiml.VoiceGather{
		Input: "dtmf", NumDigits: "1", Timeout: strconv.Itoa(seconds), Action: action, Method: http.MethodPost, InnerElements: hears,
	}
}

// enqueue puts a call into TaskRouter's queue. Its task has the attributes of the policy beside those
// that Twilio gives it.
func (c *Calls) enqueue(p notify.InboundPolicy, id uuid.UUID) (twiml.Element, error) {
	attributes := maps.Clone(p.TaskAttributes)
	if attributes == nil {
		attributes = map[string]any{}
	}
	attributes["todoku_call"] = id
	text, err := json.Marshal(attributes)
	if err != nil {
		return nil, fmt.Errorf("write the attributes of a task: %w", err)
	}
	return &twiml.VoiceEnqueue{
		WorkflowSid: p.WorkflowSID,
		Action:      c.urls.of(queueResultPath), Method: http.MethodPost,
		WaitUrl: c.urls.of(waitPath), WaitUrlMethod: http.MethodPost,
		InnerElements: []twiml.Element{&twiml.VoiceTask{Body: string(text)}},
	}, nil
}

const (
	keyPatience = 5  // seconds in which a key may be pressed after the offer
	holdPause   = 15 // seconds of silence where there is no hold music
)

// callbackKey is the key that asks to be called back. Empty: that is not offered, or not to a caller who showed no
// number, or one that may not be called: nobody could keep the promise.
func (c *Calls) callbackKey(p notify.InboundPolicy, from string) string {
	if c.callable(from) != nil {
		return ""
	}
	return p.CallbackKey
}

// callable says why a number may not be dialed, by operators as little as by us; nil: it may.
func (c *Calls) callable(number string) error {
	caller, err := notify.ParseCaller(number)
	if err != nil {
		return err
	}
	return caller.Accepts(notify.Call, c.Countries, c.NumberKinds...)
}

// apologise tells a caller why there is nobody, and offers to call back.
func (c *Calls) apologise(p notify.InboundPolicy, from string, words notify.Prompt, otherwise string) []twiml.Element {
	s := speaking(p, c.Region)
	hears := prompt(words, otherwise)
	key := c.callbackKey(p, from)
	if key == "" {
		return append(hears, say(s.goodbye), &twiml.VoiceHangup{})
	}
	return []twiml.Element{
		keyed(c.urls.of(turnedAwayKeyPath), keyPatience, append(hears, say(s.offer(key)))),
		say(s.goodbye), &twiml.VoiceHangup{},
	}
}

// sorry is what a caller hears who was turned away for a reason.
func (c *Calls) sorry(p notify.InboundPolicy, from, reason string) []twiml.Element {
	s := speaking(p, c.Region)
	switch reason {
	case notify.TurnedAwayClosed:
		return c.apologise(p, from, p.Closed, s.closed)
	case notify.TurnedAwayNotSetUp:
		return []twiml.Element{say(s.notSetUp), &twiml.VoiceHangup{}}
	}
	return c.apologise(p, from, p.Busy, s.busy)
}

// write answers with TwiML. The order of attributes in it is twilio-go's, which is random.
func (c *Calls) write(ctx *gin.Context, elements ...twiml.Element) {
	document, err := twiml.Voice(elements)
	if err != nil {
		c.Logger.ErrorContext(ctx.Request.Context(), "TwiML not written", "error", err)
		document = `<?xml version="1.0" encoding="UTF-8"?><Response/>`
	}
	ctx.Data(http.StatusOK, "text/xml; charset=utf-8", []byte(document))
}

const (
	dialPatience = 30      // seconds for which the other phone rings
	longestTalk  = 60 * 60 // seconds after which Twilio ends a call that was dialed for an operator
)

// dial connects an operator with a number, which is shown where the call comes from.
func dial(number, callerID string) twiml.Element {
	return &twiml.VoiceDial{CallerId: callerID, Timeout: strconv.Itoa(dialPatience), TimeLimit: strconv.Itoa(longestTalk), InnerElements: []twiml.Element{&twiml.VoiceNumber{PhoneNumber: number}}}
}
