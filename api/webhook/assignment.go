package webhook

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"
	"github.com/twilio/twilio-go/twiml"

	"github.com/todoku/todoku/carrier"
	"github.com/todoku/todoku/notify"
	"github.com/todoku/todoku/store"
)

// instruction is what TaskRouter shall do with an operator that it has chosen
// (https://www.twilio.com/docs/taskrouter/handle-assignment-callbacks). Empty: nothing; whoever made the
// task takes care of it.
type instruction struct {
	Instruction                 string `json:"instruction,omitempty"`
	To                          string `json:"to,omitempty"`   // empty: the operator's contact_uri
	From                        string `json:"from,omitempty"` // what the operator's phone shows
	PostWorkActivitySID         string `json:"post_work_activity_sid,omitempty"`
	EndConferenceOnCustomerExit bool   `json:"end_conference_on_customer_exit,omitempty"`
	URL                         string `json:"url,omitempty"`
	Accept                      bool   `json:"accept,omitempty"`
}

// answerPromise is how long the ledger may take before an assignment callback is answered without it: the
// answer must be there within 5 s.
const answerPromise = 3 * time.Second

// assign says how an operator is connected with a caller. It answers in time even when the database
// does not: that an operator was chosen is told by an event, too.
func (c *Calls) assign(ctx *gin.Context) {
	a, ok := read(c, ctx, carrier.ParseAssignment)
	if !ok {
		return
	}
	recording, cancel := context.WithTimeout(ctx.Request.Context(), answerPromise)
	defer cancel()
	policy, policyErr := c.policies.now(recording)
	change, err := c.events.Do(recording, a.Event)
	if err = errors.Join(err, policyErr); err != nil {
		c.Logger.WarnContext(ctx.Request.Context(), "assignment answered without the ledger", "error", err)
	}
	ctx.JSON(http.StatusOK, c.instruct(ctx.Request.Context(), policy, a, change))
}

func (c *Calls) instruct(ctx context.Context, policy notify.InboundPolicy, a carrier.Assignment, change store.InboundChange) instruction {
	from := cmp.Or(policy.CallerID, a.Event.To)
	if isNumber(a.ContactURI) {
		if err := c.callable(a.ContactURI); err != nil { // nobody is dialed; the reservation times out and the next operator is asked
			c.Logger.ErrorContext(ctx, "an operator's contact_uri may not be called: change it, or the settings", "worker", a.Event.Operator.SID, "error", err)
			return instruction{}
		}
	}
	switch {
	case a.CalledBack != uuid.Nil && c.spokenSince(ctx, a.CalledBack):
		return instruction{} // nobody needs to be called any more
	case a.CalledBack != uuid.Nil:
		return instruction{
			Instruction: "call", To: a.ContactURI, From: from, URL: c.urls.about(callBackPath, a.CalledBack), Accept: true,
			PostWorkActivitySID: policy.PostWorkActivitySID,
		}
	case a.Event.CallSID == "":
		return instruction{}
	case change.State.Final():
		// The caller has gone or is about to, and Twilio cancels the task: the operator's phone must not
		// ring. To reject it would bring the next operator, and the next, until then.
		return instruction{}
	case policy.Instruction == "conference":
		return instruction{
			Instruction: "conference", From: from, PostWorkActivitySID: policy.PostWorkActivitySID, EndConferenceOnCustomerExit: true,
		}
	}
	return instruction{Instruction: "dequeue", From: from, PostWorkActivitySID: policy.PostWorkActivitySID}
}

// spokenSince reports whether an operator has spoken with the caller since that call. Where the ledger cannot tell, the
// caller is called back.
func (c *Calls) spokenSince(ctx context.Context, id uuid.UUID) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	spoken, err := c.Store.SpokenSince(ctx, id)
	return err == nil && spoken
}

// callBack connects an operator who has taken a task of calling back with the caller. The number is
// read from the ledger: it is in no address.
func (c *Calls) callBack(ctx *gin.Context) {
	e, ok := read(c, ctx, carrier.ParseInboundStatus) // of the call to the operator
	if !ok {
		return
	}
	policy, err := c.policies.now(ctx.Request.Context())
	var call store.InboundCall
	id, parseErr := uuid.Parse(ctx.Query("id"))
	if err = errors.Join(err, parseErr); err == nil {
		call, err = c.Store.InboundCall(ctx.Request.Context(), id)
	}
	if err == nil {
		err = c.callable(valueOf(call.From))
	}
	if err != nil || call.To == nil {
		c.Logger.WarnContext(ctx.Request.Context(), "a caller cannot be called back", "call_id", id, "error", err)
		c.write(ctx, say(speaking(policy, c.Region).unanswered), &twiml.VoiceHangup{})
		return
	}
	e.CallID, e.CallSID, e.From, e.To = id, "", "", "" // for the timeline of the call that is answered by this one
	e.Key, e.Kind, e.Word = "called back", "call back", notify.WordCallbackTask
	if _, err := c.events.Do(ctx.Request.Context(), e); err != nil {
		c.Logger.WarnContext(ctx.Request.Context(), "not recorded that a caller is called back", "error", err)
	}
	c.write(ctx, dial(*call.From, cmp.Or(policy.CallerID, *call.To)))
}

// isNumber reports whether a contact is a phone number, and no client: or sip: address.
func isNumber(contact string) bool {
	return contact != "" && !strings.Contains(contact, ":") && !strings.Contains(contact, "@")
}

func valueOf(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
